#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "coccl/communicator.hpp"
#include "coccl/compressor.hpp"
#include "coccl/transport.hpp"
#include "coccl/types.hpp"

namespace coccl {

// The messages of an exchange, collected and then sent together. Owned by the communicator and
// handed to each call, so that a warm call does not allocate. Empty messages are the transport's to
// skip.
class Messages {
 public:
  void send(const std::byte* data, std::size_t bytes, int peer) {
    sends_.push_back({data, bytes, peer});
  }
  void recv(std::byte* data, std::size_t bytes, int peer) { recvs_.push_back({data, bytes, peer}); }
  // Exchanges what was collected and forgets it, also when that throws.
  void exchange(Transport& transport, Stream stream);

 private:
  std::vector<Send> sends_;
  std::vector<Recv> recvs_;
};

// All that a collective needs. Meaning of input, output and count: see Buffers.
struct Call {
  const Compressor& codec;
  Transport& transport;
  Messages& messages;
  Stream stream;
  std::byte* scratch;  // 16-byte aligned, at least scratch_bytes
  const void* input;
  void* output;
  std::uint64_t count;
  DataType type;
  float scale = 1;  // 1/size for avg

  int rank() const { return transport.topology().rank(); }
  int size() const { return transport.topology().size(); }

  const std::byte* input_at(std::uint64_t element) const {
    return static_cast<const std::byte*>(input) + element * size_of(type);
  }
  // Runs one pass of the codec over data of this call's type.
  void pass(Fused fused) const {
    fused.type = type;
    codec.run(fused, stream);
  }
  // Exchanges the messages collected so far.
  void exchange() const { messages.exchange(transport, stream); }
  // As Transport::all_gather; nothing if there are no bytes.
  void all_gather(const std::byte* send, std::byte* recv, std::size_t bytes) const {
    if (bytes > 0) transport.all_gather(send, recv, bytes, stream);
  }
};

struct Algorithm {
  AlgorithmInfo info;
  std::uint64_t (*scratch_bytes)(const Compressor&, const Topology&, std::uint64_t count);
  void (*run)(const Call&);
};

// Every algorithm, in the order of algorithms(). Defined in table.cpp from one table a collective.
std::span<const Algorithm> algorithm_table();
std::span<const Algorithm> all_reduce_algorithms();
std::span<const Algorithm> reduce_scatter_algorithms();
std::span<const Algorithm> all_gather_algorithms();

// ArgumentError that names the collective and lists what it knows if there is none of that name.
const Algorithm& find_algorithm(Collective collective, std::string_view name);

}  // namespace coccl
