#include <array>

#include "algorithms/all_reduce.hpp"
#include "algorithms/slices.hpp"
#include "algorithms/tree.hpp"

// tree: a double binary tree; each of the two trees sums and spreads half of the data.
//   1. up, from the deepest level: a rank sums its children's payloads and its own raw half,
//      encodes the sum and sends it to its parent
//   2. down, from the root: the encoded sum is forwarded untouched
//   3. decode the whole output in one pass
// Both trees' messages of a level go in one exchange: 2·log2(n) exchanges. A rank sends at most S/2
// up and S down where it has children, and S/2 up where it is a leaf: 2 S. An element is encoded
// once at each level, log2(n) + 1 times. Scratch 2 S: both halves, and two children's halves, since
// no rank has children in both trees.
namespace coccl {
namespace {

std::uint64_t scratch_bytes(const Compressor& codec, const Topology&, std::uint64_t count) {
  return Slices(codec, count, 2).offset(4);
}

int encodings(const Topology& topology) { return tree_depth(topology.size()) + 1; }

void run(const Call& call) {
  const Slices halves(call.codec, call.count, 2);
  const std::array<TreePlace, 2> places{tree_place(0, call.rank(), call.size()),
                                        tree_place(1, call.rank(), call.size())};
  const auto coded = [&](int tree) { return call.scratch + halves.offset(tree); };
  const auto received = [&](int child) { return call.scratch + halves.offset(2 + child); };
  const auto add_own = [&](int tree) {
    const TreePlace& place = places[tree];
    call.pass({.coded = received(0),
               .coded_stride = halves.slot_bytes(),
               .inputs = place.inputs(),
               .raw_in = call.input_at(halves.first(tree)),
               .coded_out = coded(tree),
               .count = halves.count(tree),
               .scale = place.root() ? call.scale : 1});
  };

  for (int tree = 0; tree < 2; ++tree) {
    if (places[tree].inputs() == 0) add_own(tree);
  }
  const int levels = tree_depth(call.size());
  for (int level = levels; level > 0; --level) {
    for (int tree = 0; tree < 2; ++tree) {
      const TreePlace& place = places[tree];
      if (place.depth == level) call.messages.send(coded(tree), halves.bytes(tree), place.parent);
      if (place.depth != level - 1) continue;
      for (int child = 0; child < place.inputs(); ++child) {
        call.messages.recv(received(child), halves.bytes(tree), place.children[child]);
      }
    }
    call.exchange();
    for (int tree = 0; tree < 2; ++tree) {
      if (places[tree].depth == level - 1 && places[tree].inputs() > 0) add_own(tree);
    }
  }
  for (int level = 1; level <= levels; ++level) {
    for (int tree = 0; tree < 2; ++tree) {
      const TreePlace& place = places[tree];
      if (place.depth == level) call.messages.recv(coded(tree), halves.bytes(tree), place.parent);
      if (place.depth != level - 1) continue;
      for (int child = 0; child < place.inputs(); ++child) {
        call.messages.send(coded(tree), halves.bytes(tree), place.children[child]);
      }
    }
    call.exchange();
  }
  call.pass({.coded = call.scratch, .inputs = 1, .raw_out = call.output, .count = call.count});
}

}  // namespace

Algorithm all_reduce_tree() {
  return {{Collective::all_reduce, "tree",
           "double binary tree, 2 log2(n) exchanges; sends at most 2 S", encodings},
          scratch_bytes,
          run};
}

}  // namespace coccl
