#include <algorithm>

#include "algorithms/algorithm.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/slices.hpp"

// s is the coded size of one rank's chunk, n the number of ranks. In every algorithm a rank encodes
// its chunk once, payloads are forwarded untouched, and everyone decodes all n of them in one pass,
// the owner its own one too, so that all ranks hold the same bits. 1 encoding. Scratch n chunks, in
// rank order. They differ in the way that payloads travel; every rank sends (n−1) s, but for
// hierarchical, where that is the mean.
namespace coccl {
namespace {

std::uint64_t scratch_bytes(const Compressor& codec, const Topology& topology,
                            std::uint64_t count) {
  return topology.size() * codec.bytes(count);
}

int one_encoding(const Topology&) { return 1; }

// Encodes the own chunk into its slot.
void encode(const Call& call) {
  call.pass({.raw_in = call.input,
             .coded_out = call.scratch + call.rank() * call.codec.bytes(call.count),
             .count = call.count});
}

void decode(const Call& call) {
  call.pass({.coded = call.scratch,
             .inputs = 1,
             .raw_out = call.output,
             .count = call.count,
             .chunks = call.size(),
             .raw_stride = call.count});
}

// direct: the transport's own all-gather, one exchange.
void direct(const Call& call) {
  const std::size_t bytes = call.codec.bytes(call.count);
  encode(call);
  call.all_gather(call.scratch + call.rank() * bytes, call.scratch, bytes);
  decode(call);
}

// ring: n−1 exchanges between neighbours; each forwards the payload that it got last.
void ring(const Call& call) {
  const int size = call.size();
  const int rank = call.rank();
  const std::size_t bytes = call.codec.bytes(call.count);
  const int left = (rank + size - 1) % size;
  encode(call);
  for (int step = 0; step < size - 1; ++step) {
    call.messages.send(call.scratch + (rank + size - step) % size * bytes, bytes,
                       (rank + 1) % size);
    call.messages.recv(call.scratch + (left + size - step) % size * bytes, bytes, left);
    call.exchange();
  }
  decode(call);
}

// tree: ceil(log2 n) exchanges for any n. A rank that holds the chunks of d ranks from its own on
// sends them to rank − d, and gets those of the d ranks after them (up to n in all) from rank + d.
// Chunks that wrap around rank n−1 take a second message.
void tree(const Call& call) {
  const int size = call.size();
  const int rank = call.rank();
  const std::size_t bytes = call.codec.bytes(call.count);
  encode(call);
  for (int distance = 1; distance < size; distance *= 2) {
    const int moved = std::min(distance, size - distance);
    const int source = (rank + distance) % size;
    const int target = (rank + size - distance) % size;
    for (const Run& run : runs(rank, moved, size)) {
      call.messages.send(call.scratch + run.first * bytes, run.count * bytes, target);
    }
    for (const Run& run : runs(source, moved, size)) {
      call.messages.recv(call.scratch + run.first * bytes, run.count * bytes, source);
    }
    call.exchange();
  }
  decode(call);
}

// hierarchical: a chunk goes once to every other node.
//   1. between: send the own payload to the counterpart on each other node
//   2. inside: send the own payload and those received to all other members
// Of all that ranks send, n(N−1) s leaves one of the N nodes.
void hierarchical(const Call& call) {
  const Topology& topology = call.transport.topology();
  const int rank = call.rank();
  const int node = topology.node_of(rank);
  const std::size_t bytes = call.codec.bytes(call.count);
  const auto coded = [&](int chunk) { return call.scratch + chunk * bytes; };
  encode(call);
  for (int other = 0; other < topology.nodes(); ++other) {
    if (other != node) call.messages.send(coded(rank), bytes, counterpart(topology, rank, other));
  }
  for (int chunk = 0; chunk < call.size(); ++chunk) {
    if (chunk != rank && counterpart(topology, chunk, node) == rank) {
      call.messages.recv(coded(chunk), bytes, chunk);
    }
  }
  call.exchange();
  for (int chunk = 0; chunk < call.size(); ++chunk) {
    const int holder = counterpart(topology, chunk, node);
    if (holder != rank) {
      call.messages.recv(coded(chunk), bytes, holder);
      continue;
    }
    for (const int member : topology.members(node)) {
      if (member != rank) call.messages.send(coded(chunk), bytes, member);
    }
  }
  call.exchange();
  decode(call);
}

}  // namespace

std::span<const Algorithm> all_gather_algorithms() {
  static constexpr Algorithm table[] = {
      {{Collective::all_gather, "direct", "the transport's all-gather; sends (n-1) s",
        one_encoding},
       scratch_bytes,
       direct},
      {{Collective::all_gather, "hierarchical",
        "once to every other node, then inside nodes; sends (n-1) s on average", one_encoding},
       scratch_bytes,
       hierarchical},
      {{Collective::all_gather, "tree", "ceil(log2 n) exchanges; sends (n-1) s", one_encoding},
       scratch_bytes,
       tree},
      {{Collective::all_gather, "ring", "n-1 exchanges between neighbours; sends (n-1) s",
        one_encoding},
       scratch_bytes,
       ring},
  };
  return table;
}

}  // namespace coccl
