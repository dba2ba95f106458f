#include <doctest/doctest.h>

#include <bit>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/select.hpp"
#include "algorithms/slices.hpp"
#include "algorithms/tree.hpp"
#include "coccl/error.hpp"

namespace coccl {
namespace {

const Compressor codec{.name = "blocks of 4", .method = "", .block = 4, .block_bytes = 16};

std::vector<int> nodes_of_ranks(int size, int ranks) {
  std::vector<int> nodes(size);
  for (int rank = 0; rank < size; ++rank) nodes[rank] = rank / ranks;
  return nodes;
}

TEST_CASE("slices cover every element once, in order, at block boundaries") {
  for (const int parts : {1, 2, 3, 7, 64}) {
    for (const std::uint64_t count : {0, 1, 3, 4, 5, 27, 28, 29, 1000}) {
      CAPTURE(parts);
      CAPTURE(count);
      const Slices slices(codec, count, parts);
      std::uint64_t next = 0;
      std::size_t bytes = 0;
      for (int slot = 0; slot < parts; ++slot) {
        CHECK(slices.first(slot) == next);
        CHECK((next % 4 == 0 || slices.count(slot) == 0));
        CHECK(slices.bytes(slot) == codec.bytes(slices.count(slot)));
        CHECK(slices.bytes(slot) <= slices.slot_bytes());
        if (slices.count(slot) > 0) CHECK(slices.offset(slot) == bytes);
        next += slices.count(slot);
        bytes += slices.bytes(slot);
      }
      CHECK(next == count);
      CHECK(slices.count(0, parts) == count);
      CHECK(slices.bytes(0, parts) == codec.bytes(count));
      CHECK(slices.slot_bytes() < codec.bytes(count) / parts + 16 + 1);
    }
  }
}

TEST_CASE("slices of more than 2^32 elements do not overflow") {
  const std::uint64_t count = (std::uint64_t{1} << 40) + 5;
  const Slices slices(codec, count, 1000);
  CHECK(slices.first(999) + slices.count(999) == count);
  CHECK(slices.bytes(0, 1000) == codec.bytes(count));
}

TEST_CASE("runs are the chunks of a ring in order, without a wrap inside a run") {
  const int size = 5;
  for (int first = 0; first < 2 * size; ++first) {
    for (int count = 0; count <= size; ++count) {
      int index = 0;
      for (const Run& run : runs(first, count, size)) {
        CHECK(run.index == index);
        CHECK(run.first + run.count <= size);
        for (int i = 0; i < run.count; ++i) CHECK(run.first + i == (first + index++) % size);
      }
      CHECK(index == count);
    }
  }
}

TEST_CASE("both trees reach every rank, and no rank has children in both") {
  for (int size = 1; size <= 300; ++size) {
    CAPTURE(size);
    const int depth = static_cast<int>(std::bit_width(static_cast<unsigned>(size))) - 1;
    CHECK(tree_depth(size) == depth);
    std::vector<int> inner(size);
    for (const int tree : {0, 1}) {
      int roots = 0;
      for (int rank = 0; rank < size; ++rank) {
        const TreePlace place = tree_place(tree, rank, size);
        roots += place.root();
        inner[rank] += place.inputs() > 0;
        REQUIRE(place.depth <= depth);
        REQUIRE(place.root() == (place.depth == 0));
        for (int child = 0; child < place.inputs(); ++child) {
          const TreePlace below = tree_place(tree, place.children[child], size);
          REQUIRE(below.parent == rank);
          REQUIRE(below.depth == place.depth + 1);
        }
        if (place.root()) continue;
        const TreePlace above = tree_place(tree, place.parent, size);
        REQUIRE((above.children[0] == rank || above.children[1] == rank));
      }
      CHECK(roots == 1);
    }
    for (const int trees : inner) REQUIRE(trees <= 1);
  }
}

TEST_CASE("a rank's counterpart is itself at home, and members elsewhere share the work evenly") {
  const std::vector<int> nodes{0, 1, 0, 2, 1, 0, 0, 1, 1, 0, 2};
  const int size = static_cast<int>(nodes.size());
  const Topology topology(0, size, nodes);
  for (int node = 0; node < topology.nodes(); ++node) {
    std::map<int, int> work;
    for (int rank = 0; rank < size; ++rank) {
      const int counterpart_rank = counterpart(topology, rank, node);
      CHECK(topology.node_of(counterpart_rank) == node);
      if (topology.node_of(rank) == node) CHECK(counterpart_rank == rank);
      ++work[counterpart_rank];
    }
    CHECK(work.size() == topology.members(node).size());
  }
}

TEST_CASE("the table lists every algorithm once, by collective") {
  std::set<std::pair<Collective, std::string_view>> seen;
  Collective last = Collective::all_reduce;
  REQUIRE(algorithms().size() == algorithm_table().size());
  for (std::size_t i = 0; i < algorithms().size(); ++i) {
    const AlgorithmInfo& info = algorithms()[i];
    CHECK(info.name == algorithm_table()[i].info.name);
    CHECK(info.story != "");
    CHECK(info.collective >= last);
    last = info.collective;
    CHECK(seen.emplace(info.collective, info.name).second);
    const bool found = find_algorithm(info.collective, info.name).run == algorithm_table()[i].run;
    CHECK(found);
  }
}

TEST_CASE("an unknown algorithm is refused with the names that its collective knows") {
  CHECK_THROWS_WITH_AS(
      find_algorithm(Collective::all_gather, "two_shot"),
      "unknown all_gather algorithm \"two_shot\"; known: direct, hierarchical, tree, ring",
      ArgumentError);
  CHECK_THROWS_AS(find_algorithm(static_cast<Collective>(7), "ring"), ArgumentError);
}

TEST_CASE("the published encodings are those of the table of algorithms") {
  const auto encodings = [](Collective collective, const char* name, int size, int ranks) {
    const Topology topology(0, size, nodes_of_ranks(size, ranks));
    return find_algorithm(collective, name).info.encodings(topology);
  };
  CHECK(encodings(Collective::all_reduce, "one_shot", 16, 4) == 1);
  CHECK(encodings(Collective::all_reduce, "two_shot", 16, 4) == 2);
  CHECK(encodings(Collective::all_reduce, "ring", 16, 4) == 16);
  CHECK(encodings(Collective::all_reduce, "tree", 16, 4) == 5);
  CHECK(encodings(Collective::all_reduce, "hierarchical", 16, 4) == 3);
  CHECK(encodings(Collective::all_reduce, "hierarchical", 16, 16) == 2);
  CHECK(encodings(Collective::all_reduce, "hierarchical", 16, 1) == 2);
  CHECK(encodings(Collective::reduce_scatter, "one_shot", 16, 4) == 1);
  CHECK(encodings(Collective::reduce_scatter, "ring", 16, 4) == 15);
  CHECK(encodings(Collective::reduce_scatter, "tree", 16, 4) == 4);
  CHECK(encodings(Collective::reduce_scatter, "tree", 17, 4) == 5);
  CHECK(encodings(Collective::reduce_scatter, "hierarchical", 16, 4) == 2);
  CHECK(encodings(Collective::reduce_scatter, "hierarchical", 16, 16) == 1);
  for (const char* name : {"direct", "ring", "tree", "hierarchical"}) {
    CHECK(encodings(Collective::all_gather, name, 16, 4) == 1);
  }
}

TEST_CASE("selection fits the payload, the ranks and the nodes") {
  const auto name = [](Collective collective, std::uint64_t bytes, int size, int ranks) {
    return std::string(
        select(collective, bytes, Topology(0, size, nodes_of_ranks(size, ranks))).info.name);
  };
  const std::uint64_t small = 4096;
  const std::uint64_t big = std::uint64_t{64} << 20;
  CHECK(name(Collective::all_reduce, big, 4, 4) == "two_shot");
  CHECK(name(Collective::all_reduce, big, 4, 1) == "two_shot");
  CHECK(name(Collective::all_reduce, big, 2, 2) == "one_shot");
  CHECK(name(Collective::all_reduce, small, 8, 8) == "one_shot");
  CHECK(name(Collective::all_reduce, small, 16, 8) == "two_shot");
  CHECK(name(Collective::all_reduce, small, 512, 8) == "tree");
  CHECK(name(Collective::all_reduce, big, 16, 8) == "hierarchical");
  CHECK(name(Collective::reduce_scatter, big, 8, 8) == "one_shot");
  CHECK(name(Collective::reduce_scatter, small, 512, 8) == "tree");
  CHECK(name(Collective::reduce_scatter, big, 16, 8) == "hierarchical");
  CHECK(name(Collective::all_gather, big, 8, 8) == "direct");
  CHECK(name(Collective::all_gather, small, 512, 8) == "tree");
  CHECK(name(Collective::all_gather, big, 16, 8) == "hierarchical");
}

TEST_CASE("every rank selects the same algorithm") {
  const std::vector<int> nodes{0, 0, 0, 1, 1, 2};
  for (const auto collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    for (std::uint64_t bytes = 0; bytes < (1 << 24); bytes = 2 * bytes + 1) {
      const Algorithm& first = select(collective, bytes, Topology(0, 6, nodes));
      for (int rank = 1; rank < 6; ++rank) {
        CHECK(&select(collective, bytes, Topology(rank, 6, nodes)) == &first);
      }
    }
  }
}

}  // namespace
}  // namespace coccl
