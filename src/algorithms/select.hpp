#pragma once

#include <cstdint>

#include "algorithms/algorithm.hpp"

namespace coccl {

// What algorithm "auto" means. `bytes` is the uncompressed size of the larger of the call's two
// buffers. Pure, and a function of values that are equal on all ranks only, so ranks agree.
const Algorithm& select(Collective collective, std::uint64_t bytes, const Topology& topology);

}  // namespace coccl
