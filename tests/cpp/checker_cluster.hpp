#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checker_fibers.hpp"
#include "coccl/transport.hpp"

namespace coccl::checker {

// Ranks that meet in one thread. A message moves when both sides have come for it and not before,
// as if nothing were buffered, so ranks that wait for each other for ever are found without a
// clock: when no rank can go on, all fail, and the error says who waits for whom.
class Cluster {
 public:
  struct Outcome {
    std::string error;                // the first failure of any rank, or empty
    std::vector<std::uint64_t> sent;  // bytes to other ranks, by rank
    std::uint64_t between_nodes = 0;  // of all those, bytes to ranks of another node
  };

  explicit Cluster(int most_ranks) : fibers_(most_ranks) {}

  // Runs `body` on every rank to its end. Rank r is on node nodes[r].
  Outcome run(const std::vector<int>& nodes, const std::function<void(Transport&)>& body);

 private:
  class Rank;
  struct Message {
    std::byte* data;  // a send's is only read
    std::size_t bytes;
    int next;
  };
  // Messages of one rank to another that only one side has come for, first to first.
  struct Line {
    int first = -1;
    int last = -1;
    bool sends = false;
  };

  void exchange(int rank, std::span<const Send> sends, std::span<const Recv> recvs);
  void post(int source, int target, bool send, std::byte* data, std::size_t bytes);
  void arrive(int rank);
  void fail(const std::string& reason);
  std::string who_waits() const;

  Fibers fibers_;
  int size_ = 0;
  std::vector<int> nodes_;
  std::vector<Line> lines_;  // [source * size + target]
  std::vector<Message> messages_;
  std::vector<int> open_;  // a rank's messages that have not moved
  std::deque<int> ready_;
  bool failed_ = false;
  Outcome outcome_;
};

}  // namespace coccl::checker
