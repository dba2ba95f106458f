#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "coccl/transport.hpp"

namespace coccl {

// The node of every rank, given a number that names its host: nodes are numbered 0, 1, … by the
// order of their lowest rank.
std::vector<int> nodes_of(std::span<const std::uint64_t> hosts);

// The same, with the ranks of `transport` telling each other their `host`. The transport must serve
// host memory.
std::vector<int> detect_nodes(Transport& transport, std::uint64_t host);

}  // namespace coccl
