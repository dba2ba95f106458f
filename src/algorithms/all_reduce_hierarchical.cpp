#include <algorithm>

#include "algorithms/all_reduce.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/slices.hpp"

// hierarchical: a two_shot between nodes inside a two_shot of each node, so that a node's data
// leave it once, whatever the number of its ranks. Data are cut into as many rails as the smallest
// node has ranks; rail j belongs to local rank j of every node, and is cut into one slice a node.
// Ranks beyond the rails own nothing.
//   1. inside: encode the whole input in one pass; send rail j to its owner on the node; the owner
//      sums the payloads and its own raw rail, and encodes
//   2. between, with several nodes only: owners of a rail send slice k to the one on node k, which
//      sums them in node order and encodes; then every owner sends its sum to the others
//   3. inside: owners send their rail of the output to all members, untouched
//   4. decode the whole output in one pass
// With N nodes of m ranks a rank sends (m−1)/m S inside, 2(N−1)/N S/m between, (m−1)/m S inside:
// all ranks together 2(n−1) S, of which 2(N−1) S between nodes. 3 encodings, 1 fewer with one node,
// and 1 fewer with one rank on every node. Scratch S and max(m−1, 1) rails.
namespace coccl {
namespace {

// A rank's part in it.
struct Rails {
  Rails(const Compressor& codec, const Topology& the_topology, std::uint64_t count)
      : topology(the_topology),
        nodes(topology.nodes()),
        node(topology.node_of(topology.rank())),
        local(topology.local_rank(topology.rank())),
        members(topology.members(node)),
        rails(smallest_node(topology)),
        slices(codec, count, rails * nodes) {}

  bool owner() const { return local < rails; }
  int slice(int rail, int of_node) const { return rail * nodes + of_node; }
  std::size_t rail_bytes(int rail) const { return slices.bytes(slice(rail, 0), nodes); }
  std::size_t rail_offset(int rail) const { return slices.offset(slice(rail, 0)); }
  std::size_t all_bytes() const { return rail_offset(rails); }

  static int smallest_node(const Topology& topology) {
    int ranks = topology.size();
    for (int node = 0; node < topology.nodes(); ++node) {
      ranks = std::min(ranks, static_cast<int>(topology.members(node).size()));
    }
    return ranks;
  }

  const Topology& topology;
  int nodes, node, local;
  std::span<const int> members;  // of this rank's node
  int rails;
  Slices slices;
};

void reduce_inside(const Call& call, const Rails& rails, std::byte* coded, std::byte* received) {
  const int members = static_cast<int>(rails.members.size());
  if (members > 1) call.pass({.raw_in = call.input, .coded_out = coded, .count = call.count});
  int inputs = 0;
  for (int member = 0; member < members; ++member) {
    if (member == rails.local) continue;
    const int peer = rails.members[member];
    if (member < rails.rails) {
      call.messages.send(coded + rails.rail_offset(member), rails.rail_bytes(member), peer);
    }
    if (rails.owner()) {
      std::byte* slot = received + rails.rail_offset(inputs++);
      call.messages.recv(slot, rails.rail_bytes(rails.local), peer);
    }
  }
  call.exchange();
  if (!rails.owner()) return;
  const int first = rails.slice(rails.local, 0);
  call.pass({.coded = received,
             .coded_stride = rails.rail_offset(1),
             .inputs = inputs,
             .raw_in = call.input_at(rails.slices.first(first)),
             .coded_out = coded + rails.rail_offset(rails.local),
             .count = rails.slices.count(first, rails.nodes),
             .scale = rails.nodes == 1 ? call.scale : 1});
}

void reduce_between(const Call& call, const Rails& rails, std::byte* coded, std::byte* received) {
  const Slices& slices = rails.slices;
  const int own = rails.slice(rails.local, rails.node);
  if (rails.owner()) {
    for (int node = 0; node < rails.nodes; ++node) {
      const int peer = rails.topology.members(node)[rails.local];
      const int slice = rails.slice(rails.local, node);
      // The message to oneself puts the own partial among the others, for one pass in node order.
      call.messages.send(coded + slices.offset(slice), slices.bytes(slice), peer);
      call.messages.recv(received + slices.offset(node), slices.bytes(own), peer);
    }
  }
  call.exchange();
  if (rails.owner()) {
    call.pass({.coded = received,
               .coded_stride = slices.slot_bytes(),
               .inputs = rails.nodes,
               .coded_out = coded + slices.offset(own),
               .count = slices.count(own),
               .scale = call.scale});
    for (int node = 0; node < rails.nodes; ++node) {
      if (node == rails.node) continue;
      const int peer = rails.topology.members(node)[rails.local];
      const int slice = rails.slice(rails.local, node);
      call.messages.send(coded + slices.offset(own), slices.bytes(own), peer);
      call.messages.recv(coded + slices.offset(slice), slices.bytes(slice), peer);
    }
  }
  call.exchange();
}

void spread_inside(const Call& call, const Rails& rails, std::byte* coded) {
  for (int member = 0; member < static_cast<int>(rails.members.size()); ++member) {
    if (member == rails.local) continue;
    const int peer = rails.members[member];
    if (rails.owner()) {
      call.messages.send(coded + rails.rail_offset(rails.local), rails.rail_bytes(rails.local),
                         peer);
    }
    if (member < rails.rails) {
      call.messages.recv(coded + rails.rail_offset(member), rails.rail_bytes(member), peer);
    }
  }
  call.exchange();
}

std::uint64_t scratch_bytes(const Compressor& codec, const Topology& topology,
                            std::uint64_t count) {
  const Rails rails(codec, topology, count);
  const int received = std::max(static_cast<int>(rails.members.size()) - 1, 1);
  return rails.all_bytes() + rails.rail_offset(received);
}

int encodings(const Topology& topology) {
  return 1 + (shares_nodes(topology) ? 1 : 0) + (topology.nodes() > 1 ? 1 : 0);
}

void run(const Call& call) {
  const Rails rails(call.codec, call.transport.topology(), call.count);
  std::byte* coded = call.scratch;
  std::byte* received = coded + rails.all_bytes();
  reduce_inside(call, rails, coded, received);
  if (rails.nodes > 1) reduce_between(call, rails, coded, received);
  spread_inside(call, rails, coded);
  call.pass({.coded = coded, .inputs = 1, .raw_out = call.output, .count = call.count});
}

}  // namespace

Algorithm all_reduce_hierarchical() {
  return {{Collective::all_reduce, "hierarchical",
           "two_shot inside nodes around two_shot between them; of N nodes 2(N-1) S leaves a node",
           encodings},
          scratch_bytes,
          run};
}

}  // namespace coccl
