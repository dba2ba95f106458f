#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "coccl/types.hpp"

namespace coccl {

struct Send {
  const void* data;
  std::size_t bytes;
  int peer;
};

struct Recv {
  void* data;
  std::size_t bytes;
  int peer;
};

// The ranks of a group and the node that each one runs on.
class Topology {
 public:
  // `nodes[r]` names the node of rank r by any number; empty means that all share one node.
  Topology(int rank, int size, std::vector<int> nodes = {});

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Nodes are renumbered 0, 1, … by the order of their lowest rank.
  int nodes() const { return static_cast<int>(members_.size()); }
  int node_of(int rank) const { return node_of_[rank]; }
  int local_rank(int rank) const { return local_rank_[rank]; }
  // The ranks of a node, ascending.
  std::span<const int> members(int node) const { return members_[node]; }

 private:
  int rank_;
  int size_;
  std::vector<int> node_of_, local_rank_;
  std::vector<std::vector<int>> members_;
};

// Moves bytes between ranks and knows nothing of what they mean. Calls are collective: every rank
// of the group makes them in the same order. They are ordered on `stream`; with host memory they
// are complete on return. A failure is a TransportError, and leaves no peer waiting.
class Transport {
 public:
  explicit Transport(Topology topology) : topology_(std::move(topology)) {}
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  const Topology& topology() const { return topology_; }
  // For whoever learns the nodes by way of the transport itself, before its first collective.
  void set_nodes(std::vector<int> nodes) {
    topology_ = Topology(topology_.rank(), topology_.size(), std::move(nodes));
  }
  // Bytes handed to other ranks since construction.
  std::uint64_t sent_bytes() const { return sent_bytes_; }

  // Sends and receives as one group: no order among them may be relied on, except that messages
  // between the same two ranks match first to first. A message to oneself is a copy. Messages of
  // zero bytes are skipped on both sides.
  void exchange(std::span<const Send> sends, std::span<const Recv> recvs, Stream stream);

  // Every rank's `bytes` bytes, in rank order, to `recv`. `send` may be its own place in `recv`.
  void all_gather(const void* send, void* recv, std::size_t bytes, Stream stream);

  // Ends the group with a reason: every call of any rank, waiting or to come, throws
  // TransportError.
  virtual void close(std::string_view reason) noexcept = 0;

 protected:
  // Messages have bytes and a peer of the group.
  virtual void do_exchange(std::span<const Send> sends, std::span<const Recv> recvs,
                           Stream stream) = 0;
  // Unless an engine has something better: one exchange with every peer.
  virtual void do_all_gather(const void* send, void* recv, std::size_t bytes, Stream stream);

 private:
  Topology topology_;
  std::uint64_t sent_bytes_ = 0;
  // The messages of the current call; kept, so that a warm call does not allocate.
  std::vector<Send> sends_;
  std::vector<Recv> recvs_;
};

}  // namespace coccl
