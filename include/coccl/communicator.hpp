#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "coccl/compressor.hpp"
#include "coccl/transport.hpp"
#include "coccl/types.hpp"

namespace coccl {

// What an algorithm's table row says to people and tests.
struct AlgorithmInfo {
  Collective collective;
  std::string_view name;
  std::string_view story;  // one line: exchanges and bytes
  // Most times that one element is encoded on its way, for the published error bound.
  int (*encodings)(const Topology&);
};

// Every algorithm of this build, by collective, then in order of preference.
std::span<const AlgorithmInfo> algorithms();

// A call's buffers. all_reduce: `count` elements each; reduce_scatter: size·count in, count out;
// all_gather: count in, size·count out. `output` may be `input` (all_reduce) or the rank's own part
// of the larger buffer (the others).
struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::float32;
};

struct Method {
  std::string_view compressor = "none";
  std::string_view algorithm = "auto";
};

struct CommunicatorOptions {
  // Fill scratch with NaN bytes before every call, so that a read of unwritten bytes shows.
  bool poison_scratch = false;
};

// Compressed collectives over a transport. One call at a time; calls on different streams are
// ordered one after another, since they share scratch memory. Every call of a group must agree on
// count, type, op and method. A call that throws closes the transport, for whatever reason it
// threw, so that no peer waits for a rank that will not come.
class Communicator {
 public:
  explicit Communicator(std::unique_ptr<Transport> transport, CommunicatorOptions options = {});
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  const Topology& topology() const;
  std::uint64_t sent_bytes() const;
  std::uint64_t scratch_bytes() const;  // now held

  // `op` is sum or avg; `type` is float32, bfloat16 or float16.
  void all_reduce(const Buffers&, Op, Stream, Method = {});
  void reduce_scatter(const Buffers&, Op, Stream, Method = {});
  void all_gather(const Buffers&, Stream, Method = {});

  void close(std::string_view reason) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coccl
