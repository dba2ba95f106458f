#pragma once

#include "coccl/transport.hpp"

namespace coccl {

// The member of `node` that deals with data of `rank` for the whole node. On the rank's own node it
// is the rank itself; elsewhere members take turns, so that every one deals with its share.
int counterpart(const Topology& topology, int rank, int node);

// True if some node holds more than one rank.
inline bool shares_nodes(const Topology& topology) { return topology.size() > topology.nodes(); }

}  // namespace coccl
