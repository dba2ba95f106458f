#include "algorithms/all_reduce.hpp"

#include "algorithms/slices.hpp"

// S is the coded size of the input, n the number of ranks.
namespace coccl {
namespace {

// one_shot: everyone sends its whole input to everyone, and sums all of them in rank order.
//   1. encode the input; all-gather the payloads
//   2. decode and sum n payloads, the own one among them, so that all ranks sum the same bytes
// Sends (n−1) S in one exchange. 1 encoding. Scratch n S.
namespace one_shot {

std::uint64_t scratch_bytes(const Compressor& codec, const Topology& topology,
                            std::uint64_t count) {
  return topology.size() * codec.bytes(count);
}

void run(const Call& call) {
  const std::size_t bytes = call.codec.bytes(call.count);
  std::byte* own = call.scratch + call.rank() * bytes;
  call.pass({.raw_in = call.input, .coded_out = own, .count = call.count});
  call.all_gather(own, call.scratch, bytes);
  call.pass({.coded = call.scratch,
             .coded_stride = bytes,
             .inputs = call.size(),
             .raw_out = call.output,
             .count = call.count,
             .scale = call.scale});
}

}  // namespace one_shot

// two_shot: a reduce-scatter and an all-gather, each one exchange with every peer.
//   1. encode the whole input in one pass; send slice j to rank j
//   2. sum the n−1 payloads of the own slice and the own raw slice; encode the sum
//   3. all-gather the sums; decode the whole output in one pass
// Sends S minus the own slice, then n−1 slots: about 2(n−1)/n S. 2 encodings. Scratch 2n−1 slots.
namespace two_shot {

std::uint64_t scratch_bytes(const Compressor& codec, const Topology& topology,
                            std::uint64_t count) {
  return Slices(codec, count, topology.size()).offset(2 * topology.size() - 1);
}

void run(const Call& call) {
  const int size = call.size();
  const int rank = call.rank();
  const Slices slices(call.codec, call.count, size);
  std::byte* coded = call.scratch;  // first of the input, then of the output
  std::byte* received = coded + slices.offset(size);

  call.pass({.raw_in = call.input, .coded_out = coded, .count = call.count});
  int inputs = 0;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    call.messages.send(coded + slices.offset(peer), slices.bytes(peer), peer);
    call.messages.recv(received + slices.offset(inputs++), slices.bytes(rank), peer);
  }
  call.exchange();

  std::byte* own = coded + slices.offset(rank);
  call.pass({.coded = received,
             .coded_stride = slices.slot_bytes(),
             .inputs = inputs,
             .raw_in = call.input_at(slices.first(rank)),
             .coded_out = own,
             .count = slices.count(rank),
             .scale = call.scale});
  call.all_gather(own, coded, slices.slot_bytes());
  call.pass({.coded = coded, .inputs = 1, .raw_out = call.output, .count = call.count});
}

}  // namespace two_shot

// ring: every rank talks to its two neighbours only.
//   1. n−1 steps: a slice's partial sum travels once around; each rank adds its raw slice
//      and encodes anew. Rank r ends with the sum of slice r+1.
//   2. n−1 steps: the sums travel around untouched
//   3. decode the whole output in one pass
// Sends 2(n−1)/n S in 2(n−1) exchanges. n encodings. Scratch n slots: partials live in the slots of
// their sums.
namespace ring {

std::uint64_t scratch_bytes(const Compressor& codec, const Topology& topology,
                            std::uint64_t count) {
  return Slices(codec, count, topology.size()).offset(topology.size());
}

void run(const Call& call) {
  const int size = call.size();
  const int rank = call.rank();
  const Slices slices(call.codec, call.count, size);
  const auto coded = [&](int slice) { return call.scratch + slices.offset(slice); };
  const auto add_own = [&](int slice, int inputs, bool last) {
    call.pass({.coded = coded(slice),
               .inputs = inputs,
               .raw_in = call.input_at(slices.first(slice)),
               .coded_out = coded(slice),
               .count = slices.count(slice),
               .scale = last ? call.scale : 1});
  };
  // Sends slice `from` to the right and receives from the left the slice before it.
  const auto shift = [&](int from) {
    const int to = (from + size - 1) % size;
    call.messages.send(coded(from), slices.bytes(from), (rank + 1) % size);
    call.messages.recv(coded(to), slices.bytes(to), (rank + size - 1) % size);
    call.exchange();
    return to;
  };

  int slice = rank;
  add_own(slice, 0, size == 1);
  for (int step = 1; step < size; ++step) {
    slice = shift(slice);
    add_own(slice, 1, step == size - 1);
  }
  for (int step = 1; step < size; ++step) slice = shift(slice);
  call.pass({.coded = call.scratch, .inputs = 1, .raw_out = call.output, .count = call.count});
}

}  // namespace ring

}  // namespace

std::span<const Algorithm> all_reduce_algorithms() {
  static const Algorithm table[] = {
      {{Collective::all_reduce, "two_shot",
        "reduce-scatter and all-gather, one exchange each; sends 2(n-1)/n S",
        [](const Topology&) { return 2; }},
       two_shot::scratch_bytes,
       two_shot::run},
      {{Collective::all_reduce, "one_shot", "all-gather of whole inputs; sends (n-1) S",
        [](const Topology&) { return 1; }},
       one_shot::scratch_bytes,
       one_shot::run},
      all_reduce_hierarchical(),
      all_reduce_tree(),
      {{Collective::all_reduce, "ring", "2(n-1) exchanges between neighbours; sends 2(n-1)/n S",
        [](const Topology& topology) { return topology.size(); }},
       ring::scratch_bytes,
       ring::run},
  };
  return table;
}

}  // namespace coccl
