#include "algorithms/select.hpp"

#include "algorithms/hierarchy.hpp"

// The thresholds are estimates from counting exchanges and bytes, not yet from measurements.
namespace coccl {
namespace {

// Below this, an exchange costs its latency (some ten microseconds) rather than its bytes (at some
// tens of GB/s), so fewer exchanges win; above, fewer bytes win.
constexpr std::uint64_t small_bytes = 256 * 1024;

// one_shot's bytes are n/2 times those of two_shot. Up to this many ranks a small payload is still
// small when it is sent to everyone.
constexpr int few_ranks = 8;

// Exchanges with every peer take n−1 messages a rank. From this many ranks on, log2(n) exchanges of
// a message or two are fewer by far. Not earlier, since an all_reduce pays them with encodings.
constexpr int many_ranks = 64;

// A hierarchy has one more level of exchanges and encodings. It pays once the bytes between nodes,
// which it divides by the ranks on a node, outweigh them.
constexpr std::uint64_t hierarchy_bytes = 1024 * 1024;

std::string_view select_all_reduce(std::uint64_t bytes, int size) {
  // Two ranks: the same bytes as two_shot in half the exchanges, with one encoding less.
  if (size <= 2) return "one_shot";
  if (bytes > small_bytes) return "two_shot";
  if (size <= few_ranks) return "one_shot";
  return size < many_ranks ? "two_shot" : "tree";
}

}  // namespace

const Algorithm& select(Collective collective, std::uint64_t bytes, const Topology& topology) {
  const int size = topology.size();
  const bool hierarchy = topology.nodes() > 1 && shares_nodes(topology);
  std::string_view name;
  if (hierarchy && bytes >= hierarchy_bytes) {
    name = "hierarchical";
  } else if (collective == Collective::all_reduce) {
    name = select_all_reduce(bytes, size);
  } else if (bytes <= small_bytes && size >= many_ranks) {
    name = "tree";
  } else {
    name = collective == Collective::all_gather ? "direct" : "one_shot";
  }
  return find_algorithm(collective, name);
}

}  // namespace coccl
