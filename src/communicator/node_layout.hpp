#pragma once

#include "coccl/transport.hpp"

namespace coccl {

// Has the ranks of a device-memory transport tell each other their host, and gives its topology the
// nodes that follow. Collective; waits for the device.
void find_nodes(Transport& transport);

}  // namespace coccl
