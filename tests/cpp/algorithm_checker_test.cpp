#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "checker.hpp"
#include "checker_codec.hpp"

namespace coccl::checker {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const std::vector<int> sizes{1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 27};
const int large = 64;
#else
const std::vector<int> sizes = [] {
  std::vector<int> all(64);
  for (int i = 0; i < 64; ++i) all[i] = i + 1;
  return all;
}();
const int large = 1024;
#endif

using Layout = std::vector<int>;  // the node of every rank

Layout one_node(int size) { return Layout(size, 0); }

Layout even_nodes(int size, int ranks) {
  Layout nodes(size);
  for (int rank = 0; rank < size; ++rank) nodes[rank] = rank / ranks;
  return nodes;
}

// Nodes of 3, 1, 4, 2, 5 ranks and so on.
Layout uneven_nodes(int size) {
  Layout nodes;
  for (int node = 0; static_cast<int>(nodes.size()) < size; ++node) {
    nodes.insert(nodes.end(), 1 + (2 + 3 * node) % 5, node);
  }
  nodes.resize(size);
  return nodes;
}

// Neighbours in rank order are on different nodes, of about three ranks each.
Layout dealt_nodes(int size) {
  Layout nodes(size);
  for (int rank = 0; rank < size; ++rank) nodes[rank] = rank % ((size + 2) / 3);
  return nodes;
}

// Two suffice where nodes make no difference.
std::vector<Layout> layouts(const Algorithm& algorithm, int size) {
  std::vector<Layout> all{one_node(size), uneven_nodes(size)};
  if (algorithm.info.name == "hierarchical") {
    all.insert(all.end(), {even_nodes(size, 1), even_nodes(size, 4), dealt_nodes(size)});
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Around a block of 4, fewer blocks than ranks, and many; the latter for all_reduce only, since the
// others' counts are those of a chunk.
std::vector<std::uint64_t> counts(Collective collective, int size) {
  const std::uint64_t block = symbolic_codec().block;
  std::vector<std::uint64_t> all{0, 1, block - 1, block, block + 1, 2 * block + 1};
  if (collective == Collective::all_reduce) {
    const auto ranks = static_cast<std::uint64_t>(size);
    all.insert(all.end(), {ranks * block / 2 + 1, 2 * ranks * block + block + 3});
  }
  return all;
}

void check_all(Collective collective) {
  Cluster cluster(64);
  int cases = 0;
  for (const Algorithm& algorithm : algorithm_table()) {
    if (algorithm.info.collective != collective) continue;
    for (const int size : sizes) {
      for (const Layout& layout : layouts(algorithm, size)) {
        for (const std::uint64_t count : counts(collective, size)) {
          for (const bool in_place : {false, true}) {
            // Beyond 32 ranks in place or not by turns, to save time.
            if (size > 32 && in_place != (size % 4 < 2)) continue;
            const bool average = collective != Collective::all_gather && count % 2 == 1;
            const Case what{algorithm, layout, count, in_place, average};
            const std::string error = check(cluster, what).error;
            if (!error.empty()) FAIL_CHECK(what.name() << ": " << error);
            ++cases;
          }
        }
      }
    }
  }
  CHECK(cases > 0);
}

TEST_CASE("every all_reduce sums every contribution exactly once") {
  check_all(Collective::all_reduce);
}

TEST_CASE("every reduce_scatter sums every contribution exactly once") {
  check_all(Collective::reduce_scatter);
}

TEST_CASE("every all_gather delivers every contribution") { check_all(Collective::all_gather); }

TEST_CASE("every algorithm is right on a thousand ranks") {
  Cluster cluster(large);
  for (const Algorithm& algorithm : algorithm_table()) {
    std::vector<Layout> layouts{uneven_nodes(large - 1)};
    if (algorithm.info.name == "hierarchical") layouts.push_back(even_nodes(large, 8));
    for (const Layout& layout : layouts) {
      const std::uint64_t blocks = algorithm.info.collective == Collective::all_reduce ? 7 : 1;
      const Case what{algorithm, layout, blocks * symbolic_codec().block + 1, true, false};
      const std::string error = check(cluster, what).error;
      if (!error.empty()) {
        FAIL_CHECK(std::string(name_of(algorithm.info.collective))
                   << " " << std::string(algorithm.info.name) << ": " << error);
      }
    }
  }
}

// What an algorithm's story promises: bytes of all ranks together, and of the one that sends most.
struct Promise {
  std::string_view name;
  std::uint64_t all;
  std::uint64_t most;
};

void check_promises(Collective collective, std::uint64_t count, int size,
                    const std::vector<Promise>& promises) {
  Cluster cluster(size);
  for (const Promise& promise : promises) {
    CAPTURE(std::string(promise.name));
    const Case what{find_algorithm(collective, promise.name), even_nodes(size, 4), count};
    const Cluster::Outcome outcome = check(cluster, what);
    CHECK(outcome.error == "");
    std::uint64_t all = 0;
    for (const std::uint64_t sent : outcome.sent) all += sent;
    CHECK(all == promise.all);
    CHECK(*std::ranges::max_element(outcome.sent) <= promise.most);
  }
}

TEST_CASE("all_reduce algorithms send the bytes that they promise") {
  const std::uint64_t n = 24;
  const std::uint64_t slot = 5 * symbolic_codec().block_bytes;
  const std::uint64_t s = n * slot;
  check_promises(Collective::all_reduce, 5 * n * symbolic_codec().block - 1, 24,
                 {{"one_shot", n * (n - 1) * s, (n - 1) * s},
                  {"two_shot", 2 * (n - 1) * s, 2 * (n - 1) * slot},
                  {"ring", 2 * (n - 1) * s, 2 * (n - 1) * slot},
                  {"tree", 2 * (n - 1) * s, 2 * s},
                  {"hierarchical", 2 * (n - 1) * s, 2 * (s * 3 / 4 + 5 * s / 6 / 4)}});
}

TEST_CASE("reduce_scatter algorithms send the bytes that they promise") {
  const std::uint64_t n = 22;
  const std::uint64_t s = symbolic_codec().bytes(9);
  const std::uint64_t all = n * (n - 1) * s;
  const std::uint64_t most = (n - 1) * s;
  check_promises(Collective::reduce_scatter, 9, 22,
                 {{"one_shot", all, most},
                  {"ring", all, most},
                  {"tree", all, most},
                  {"hierarchical", all, most}});
}

TEST_CASE("all_gather algorithms send the bytes that they promise") {
  const std::uint64_t n = 24;
  const std::uint64_t s = symbolic_codec().bytes(9);
  const std::uint64_t all = n * (n - 1) * s;
  const std::uint64_t most = (n - 1) * s;
  check_promises(Collective::all_gather, 9, 24,
                 {{"direct", all, most},
                  {"ring", all, most},
                  {"tree", all, most},
                  {"hierarchical", all, most}});
}

TEST_CASE("hierarchical algorithms send a node's data between nodes once") {
  Cluster cluster(16);
  const std::uint64_t count = 16 * symbolic_codec().block;
  const std::uint64_t s = symbolic_codec().bytes(count);
  const auto between = [&](Collective collective, const Layout& layout) {
    const Case what{find_algorithm(collective, "hierarchical"), layout, count};
    const Cluster::Outcome outcome = check(cluster, what);
    CHECK(outcome.error == "");
    return outcome.between_nodes;
  };
  for (const Layout& layout : {even_nodes(16, 4), uneven_nodes(12)}) {
    const std::uint64_t n = layout.size();
    const std::uint64_t others = layout.back();  // nodes but one
    CHECK(between(Collective::all_reduce, layout) == 2 * others * s);
    CHECK(between(Collective::reduce_scatter, layout) == n * others * s);
    CHECK(between(Collective::all_gather, layout) == n * others * s);
  }
}

}  // namespace
}  // namespace coccl::checker
