#include <algorithm>
#include <bit>

#include "algorithms/algorithm.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/slices.hpp"

// s is the coded size of one rank's chunk, n the number of ranks.
namespace coccl {
namespace {

const std::byte* chunk_at(const Call& call, int chunk) { return call.input_at(chunk * call.count); }

// Encodes every chunk of the input, one after another, in one pass.
void encode_all(const Call& call, std::byte* coded) {
  call.pass({.raw_in = call.input,
             .coded_out = coded,
             .count = call.count,
             .chunks = call.size(),
             .raw_stride = call.count});
}

// one_shot: all-to-all.
//   1. encode all chunks in one pass; send chunk j to rank j
//   2. sum the n−1 payloads, in rank order, and the own raw chunk
// Sends (n−1) s in one exchange. 1 encoding. Scratch 2n−1 chunks.
namespace one_shot {

std::uint64_t scratch_bytes(const Compressor& codec, const Topology& topology,
                            std::uint64_t count) {
  return (2 * topology.size() - 1) * codec.bytes(count);
}

void run(const Call& call) {
  const std::size_t bytes = call.codec.bytes(call.count);
  std::byte* coded = call.scratch;
  std::byte* received = coded + call.size() * bytes;
  encode_all(call, coded);
  int inputs = 0;
  for (int peer = 0; peer < call.size(); ++peer) {
    if (peer == call.rank()) continue;
    call.messages.send(coded + peer * bytes, bytes, peer);
    call.messages.recv(received + inputs++ * bytes, bytes, peer);
  }
  call.exchange();
  call.pass({.coded = received,
             .coded_stride = bytes,
             .inputs = inputs,
             .raw_in = chunk_at(call, call.rank()),
             .raw_out = call.output,
             .count = call.count,
             .scale = call.scale});
}

}  // namespace one_shot

// ring: a chunk's partial sum travels once around and ends at its rank.
//   n−1 steps: send the partial to the right, receive one from the left, add the own raw chunk and
//   encode anew; after the last step the sum goes to the output instead
// Sends (n−1) s in n−1 exchanges. n−1 encodings. Scratch 2 chunks.
namespace ring {

std::uint64_t scratch_bytes(const Compressor& codec, const Topology&, std::uint64_t count) {
  return 2 * codec.bytes(count);
}

void run(const Call& call) {
  const int size = call.size();
  const int rank = call.rank();
  const std::size_t bytes = call.codec.bytes(call.count);
  std::byte* partial = call.scratch;
  std::byte* received = partial + bytes;
  for (int step = 0; step < size - 1; ++step) {
    const int chunk = (rank + size - 1 - step) % size;
    call.pass({.coded = partial,
               .inputs = step == 0 ? 0 : 1,
               .raw_in = chunk_at(call, chunk),
               .coded_out = partial,
               .count = call.count});
    call.messages.send(partial, bytes, (rank + 1) % size);
    call.messages.recv(received, bytes, (rank + size - 1) % size);
    call.exchange();
    std::swap(partial, received);
  }
  call.pass({.coded = partial,
             .inputs = size == 1 ? 0 : 1,
             .raw_in = chunk_at(call, rank),
             .raw_out = call.output,
             .count = call.count,
             .scale = call.scale});
}

}  // namespace ring

// tree: log-depth for any number of ranks, the reverse of all_gather's tree. Call chunk (rank + j)
// mod n the relative chunk j. With distance d = 2^k, from the greatest below n down to 1:
//   send the partial sums of the relative chunks d … 2d−1 (up to n−1) to rank + d, for which they
//   are 0 … d−1; receive as many from rank − d and add them to the own relative chunks 0 … d−1
// and what is left, relative chunk 0, is the output. Raw chunks are encoded when they are first
// sent, or added raw when they are first received for; `held` relative chunks have a coded partial.
// Sends (n−1) s in ceil(log2 n) exchanges. An exchange adds at most one encoding: ceil(log2 n).
// Scratch at most about 1.5 n chunks.
namespace tree {

int top_distance(int size) { return static_cast<int>(std::bit_ceil(unsigned(size)) / 2); }

std::uint64_t scratch_bytes(const Compressor& codec, const Topology& topology,
                            std::uint64_t count) {
  const int size = topology.size();
  const int top = top_distance(size);
  return (size + std::max(size - top, top / 2)) * codec.bytes(count);
}

int encodings(const Topology& topology) {
  return std::bit_width(static_cast<unsigned>(topology.size()) - 1);
}

void run(const Call& call) {
  const int size = call.size();
  const int rank = call.rank();
  const std::size_t bytes = call.codec.bytes(call.count);
  std::byte* partials = call.scratch;  // by relative chunk
  std::byte* received = partials + size * bytes;

  // Relative chunks first … last−1: partial = encode(raw), or encode(received + raw).
  const auto add_raw = [&](int first, int last, int inputs) {
    for (const Run& run : runs(rank + first, std::max(last - first, 0), size)) {
      if (run.count == 0) continue;
      call.pass({.coded = received + (first + run.index) * bytes,
                 .inputs = inputs,
                 .raw_in = chunk_at(call, run.first),
                 .coded_out = partials + (first + run.index) * bytes,
                 .count = call.count,
                 .chunks = run.count,
                 .raw_stride = call.count});
    }
  };

  int held = 0;
  for (int distance = top_distance(size); distance > 0; distance /= 2) {
    const int moved = std::min(distance, size - distance);
    add_raw(std::max(held, distance), distance + moved, 0);
    call.messages.send(partials + distance * bytes, moved * bytes, (rank + distance) % size);
    call.messages.recv(received, moved * bytes, (rank + size - distance) % size);
    call.exchange();
    if (distance == 1) break;
    const int both = std::min(held, moved);
    if (both > 0) {
      call.pass({.coded = partials,
                 .coded_stride = size * bytes,
                 .inputs = 2,
                 .coded_out = partials,
                 .count = call.count,
                 .chunks = both});
    }
    add_raw(both, moved, 1);
    held = moved;
  }

  // Relative chunk 0: the last partial received, and the own partial or the own raw chunk.
  const bool own_partial = held > 0;
  call.pass({.coded = own_partial ? partials : received,
             .coded_stride = size * bytes,
             .inputs = own_partial ? 2 : (size == 1 ? 0 : 1),
             .raw_in = own_partial ? nullptr : chunk_at(call, rank),
             .raw_out = call.output,
             .count = call.count,
             .scale = call.scale});
}

}  // namespace tree

// hierarchical: a node sums its ranks' contributions for a destination before they leave it. The
// member that sums for rank q is q's counterpart on the node; on q's own node it is q itself.
//   1. inside: encode all chunks in one pass; send chunk q to q's counterpart
//   2. the counterpart sums the payloads and its own raw chunk q, encodes, and sends the sum to q
//   3. q sums its members' payloads, its own raw chunk and the other nodes' sums in one pass
// Sends (n−1) s: of all that ranks send, n(N−1) s leaves one of the N nodes. 2 encodings; 1 with
// one node or with one rank on every node. Scratch: n chunks to send, n−1 or so to receive.
namespace hierarchical {

// The destinations on other nodes that this rank sums for.
int foreign_destinations(const Topology& topology) {
  const int node = topology.node_of(topology.rank());
  int destinations = 0;
  for (int rank = 0; rank < topology.size(); ++rank) {
    if (counterpart(topology, rank, node) == topology.rank()) ++destinations;
  }
  return destinations - 1;
}

std::uint64_t scratch_bytes(const Compressor& codec, const Topology& topology,
                            std::uint64_t count) {
  const int others =
      static_cast<int>(topology.members(topology.node_of(topology.rank())).size()) - 1;
  const int received = others * foreign_destinations(topology) + others + topology.nodes() - 1;
  return (topology.size() + received) * codec.bytes(count);
}

int encodings(const Topology& topology) {
  return topology.nodes() > 1 && shares_nodes(topology) ? 2 : 1;
}

void run(const Call& call) {
  const Topology& topology = call.transport.topology();
  const int size = call.size();
  const int rank = call.rank();
  const int node = topology.node_of(rank);
  const std::span<const int> members = topology.members(node);
  const int others = static_cast<int>(members.size()) - 1;
  const std::size_t bytes = call.codec.bytes(call.count);
  const std::size_t member_stride = foreign_destinations(topology) * bytes;
  std::byte* coded = call.scratch;
  std::byte* own = coded + size * bytes;                               // for this rank
  std::byte* foreign = own + (others + topology.nodes() - 1) * bytes;  // for other nodes, by member

  if (others > 0) encode_all(call, coded);
  int inputs = 0;
  for (const int member : members) {
    if (member == rank) continue;
    std::byte* next = foreign + inputs * member_stride;
    for (int destination = 0; destination < size; ++destination) {
      const int reducer = counterpart(topology, destination, node);
      if (reducer == member) call.messages.send(coded + destination * bytes, bytes, member);
      if (reducer != rank) continue;
      if (destination == rank) {
        call.messages.recv(own + inputs * bytes, bytes, member);
      } else {
        call.messages.recv(next, bytes, member);
        next += bytes;
      }
    }
    ++inputs;
  }
  call.exchange();

  int summed = 0;
  for (int destination = 0; destination < size; ++destination) {
    if (destination == rank || counterpart(topology, destination, node) != rank) continue;
    std::byte* sum = coded + destination * bytes;
    call.pass({.coded = foreign + summed++ * bytes,
               .coded_stride = member_stride,
               .inputs = others,
               .raw_in = chunk_at(call, destination),
               .coded_out = sum,
               .count = call.count});
    call.messages.send(sum, bytes, destination);
  }
  for (int other = 0; other < topology.nodes(); ++other) {
    if (other == node) continue;
    call.messages.recv(own + inputs++ * bytes, bytes, counterpart(topology, rank, other));
  }
  call.exchange();
  call.pass({.coded = own,
             .coded_stride = bytes,
             .inputs = inputs,
             .raw_in = chunk_at(call, rank),
             .raw_out = call.output,
             .count = call.count,
             .scale = call.scale});
}

}  // namespace hierarchical

}  // namespace

std::span<const Algorithm> reduce_scatter_algorithms() {
  static constexpr Algorithm table[] = {
      {{Collective::reduce_scatter, "one_shot", "all-to-all, one exchange; sends (n-1) s",
        [](const Topology&) { return 1; }},
       one_shot::scratch_bytes,
       one_shot::run},
      {{Collective::reduce_scatter, "hierarchical",
        "sums inside a node before sending between nodes; sends (n-1) s", hierarchical::encodings},
       hierarchical::scratch_bytes,
       hierarchical::run},
      {{Collective::reduce_scatter, "tree", "ceil(log2 n) exchanges; sends (n-1) s",
        tree::encodings},
       tree::scratch_bytes,
       tree::run},
      {{Collective::reduce_scatter, "ring", "n-1 exchanges between neighbours; sends (n-1) s",
        [](const Topology& topology) { return topology.size() - 1; }},
       ring::scratch_bytes,
       ring::run},
  };
  return table;
}

}  // namespace coccl
