#pragma once

#include "algorithms/algorithm.hpp"

namespace coccl {

// Rows of all_reduce's table that live in files of their own.
Algorithm all_reduce_tree();
Algorithm all_reduce_hierarchical();

}  // namespace coccl
