#include "checker_cluster.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "coccl/error.hpp"

namespace coccl::checker {
namespace {

struct Range {
  const std::byte* begin;
  const std::byte* end;
};

// The engine may move an exchange's messages in any order, so what is received must lie apart from
// what is sent and from everything else that is received.
void check_apart(std::span<const Send> sends, std::span<const Recv> recvs) {
  std::vector<Range> received;
  for (const Recv& recv : recvs) {
    const auto* data = static_cast<const std::byte*>(recv.data);
    received.push_back({data, data + recv.bytes});
  }
  std::ranges::sort(received, {}, &Range::begin);
  for (std::size_t i = 1; i < received.size(); ++i) {
    if (received[i].begin < received[i - 1].end) throw Error("two messages received in one place");
  }
  for (const Send& send : sends) {
    const auto* data = static_cast<const std::byte*>(send.data);
    const auto after = std::ranges::upper_bound(received, data, {}, &Range::end);
    if (after != received.end() && after->begin < data + send.bytes) {
      throw Error("a message received where another is sent from");
    }
  }
}

}  // namespace

class Cluster::Rank : public Transport {
 public:
  Rank(Cluster& cluster, Topology topology) : Transport(std::move(topology)), cluster_(cluster) {}
  void close(std::string_view reason) noexcept override { cluster_.fail(std::string(reason)); }

 protected:
  void do_exchange(std::span<const Send> sends, std::span<const Recv> recvs, Stream) override {
    cluster_.exchange(topology().rank(), sends, recvs);
  }

 private:
  Cluster& cluster_;
};

Cluster::Outcome Cluster::run(const std::vector<int>& nodes,
                              const std::function<void(Transport&)>& body) {
  size_ = static_cast<int>(nodes.size());
  nodes_ = nodes;
  lines_.assign(static_cast<std::size_t>(size_) * size_, Line{});
  messages_.clear();
  open_.assign(size_, 0);
  ready_.clear();
  failed_ = false;
  outcome_ = Outcome{};
  outcome_.sent.assign(size_, 0);

  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    ranks.push_back(std::make_unique<Rank>(*this, Topology(rank, size_, nodes)));
    fibers_.start(rank, [this, rank, &ranks, &body] {
      try {
        body(*ranks[rank]);
      } catch (const std::exception& error) {
        fail("rank " + std::to_string(rank) + ": " + error.what());
      }
    });
    ready_.push_back(rank);
  }
  for (int running = size_; running > 0;) {
    if (ready_.empty()) fail(who_waits());
    const int rank = ready_.front();
    ready_.pop_front();
    if (fibers_.idle(rank)) continue;  // it failed, and woke all ranks, itself among them
    fibers_.resume(rank);
    if (fibers_.idle(rank)) --running;
  }
  if (!failed_ && std::ranges::any_of(ranks, [&](const auto& rank) {
        return rank->sent_bytes() != outcome_.sent[rank->topology().rank()];
      })) {
    fail("a transport's sent_bytes is not what it sent");
  }
  return std::exchange(outcome_, Outcome{});
}

void Cluster::exchange(int rank, std::span<const Send> sends, std::span<const Recv> recvs) {
  check_apart(sends, recvs);
  open_[rank] = static_cast<int>(sends.size() + recvs.size());
  const bool waits = open_[rank] > 0;
  for (const Send& send : sends) {
    auto* data = static_cast<std::byte*>(const_cast<void*>(send.data));
    post(rank, send.peer, true, data, send.bytes);
  }
  for (const Recv& recv : recvs) {
    post(recv.peer, rank, false, static_cast<std::byte*>(recv.data), recv.bytes);
  }
  // Its last message put the rank among the ready ones, whether or not it had gone to sleep.
  if (waits) fibers_.pause();
  if (failed_) throw TransportError(outcome_.error);
}

void Cluster::post(int source, int target, bool send, std::byte* data, std::size_t bytes) {
  if (failed_) throw TransportError(outcome_.error);
  Line& line = lines_[static_cast<std::size_t>(source) * size_ + target];
  if (line.first < 0 || line.sends == send) {
    const int message = static_cast<int>(messages_.size());
    messages_.push_back({data, bytes, -1});
    (line.first < 0 ? line.first : messages_[line.last].next) = message;
    line.last = message;
    line.sends = send;
    return;
  }
  const Message other = messages_[line.first];
  line.first = other.next;
  if (other.bytes != bytes) {
    throw Error("rank " + std::to_string(source) + " sends " +
                std::to_string(send ? bytes : other.bytes) + " bytes to rank " +
                std::to_string(target) + ", which expects " +
                std::to_string(send ? other.bytes : bytes));
  }
  std::memcpy(send ? other.data : data, send ? data : other.data, bytes);
  if (source != target) outcome_.sent[source] += bytes;
  if (nodes_[source] != nodes_[target]) outcome_.between_nodes += bytes;
  arrive(source);
  arrive(target);
}

void Cluster::arrive(int rank) {
  if (--open_[rank] == 0) ready_.push_back(rank);
}

void Cluster::fail(const std::string& reason) {
  if (failed_) return;
  failed_ = true;
  outcome_.error = reason;
  ready_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    if (!fibers_.idle(rank)) ready_.push_back(rank);
  }
}

std::string Cluster::who_waits() const {
  const auto state = [&](int rank) { return fibers_.idle(rank) ? ", which is done" : ""; };
  for (int source = 0; source < size_; ++source) {
    for (int target = 0; target < size_; ++target) {
      const Line& line = lines_[static_cast<std::size_t>(source) * size_ + target];
      if (line.first < 0) continue;
      const int waiting = line.sends ? source : target;
      const int peer = line.sends ? target : source;
      return "deadlock: rank " + std::to_string(waiting) + " waits " +
             (line.sends ? "to send " : "for ") + std::to_string(messages_[line.first].bytes) +
             " bytes " + (line.sends ? "to" : "of") + " rank " + std::to_string(peer) + state(peer);
    }
  }
  return "deadlock";
}

}  // namespace coccl::checker
