#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "coccl/transport.hpp"

namespace coccl {

// How a caller moves bytes in host memory. Both return when the bytes are there.
struct ExternalCalls {
  // Messages have bytes, and are never to oneself; one of the lists may be empty.
  std::function<void(std::span<const Send>, std::span<const Recv>)> exchange;
  // Optional: (send, recv, bytes), as Transport::all_gather. Only called when there are peers.
  std::function<void(const void*, void*, std::size_t)> all_gather;
};

// A transport over a caller's own engine, for host memory alone. What a call of theirs throws
// closes the transport, and goes on to the caller unchanged. close() cannot wake a call that waits
// in their engine.
std::unique_ptr<Transport> make_external(Topology topology, ExternalCalls calls);

}  // namespace coccl
