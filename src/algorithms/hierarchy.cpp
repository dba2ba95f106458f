#include "algorithms/hierarchy.hpp"

namespace coccl {

int counterpart(const Topology& topology, int rank, int node) {
  const auto members = topology.members(node);
  return members[topology.local_rank(rank) % members.size()];
}

}  // namespace coccl
