#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "checker_cluster.hpp"

namespace coccl::checker {

// One call of an algorithm by all ranks.
struct Case {
  const Algorithm& algorithm;
  std::vector<int> nodes;  // the node of every rank
  std::uint64_t count = 0;
  bool in_place = false;
  bool average = false;

  std::string name() const;
};

// Runs a case symbolically. The outcome has an error if any rank throws or waits for ever, if a
// contribution is lost or doubled, if anything was encoded more often than published, if ranks do
// not end with the same bits, or if memory was read before it was written, or written outside the
// output and scratch_bytes of scratch.
Cluster::Outcome check(Cluster& cluster, const Case& what);

}  // namespace coccl::checker
