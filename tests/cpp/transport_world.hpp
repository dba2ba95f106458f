#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "coccl/transport.hpp"

// What tests of transports share.
namespace coccl::testing {

// Runs `body(rank)` on a thread a rank; returns what each one threw, "" where it returned.
inline std::vector<std::string> run_ranks(int size, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline bool all_returned(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) {
    if (!error.empty()) return false;
  }
  return true;
}

// Bytes between guards.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : all_(bytes + 2 * kGuard, kMark) {}

  std::byte* data() { return all_.data() + kGuard; }
  std::size_t size() const { return all_.size() - 2 * kGuard; }
  std::span<std::byte> bytes() { return {data(), size()}; }
  bool intact() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (all_[i] != kMark || all_[all_.size() - 1 - i] != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 16;
  static constexpr std::byte kMark{0xa5};
  std::vector<std::byte> all_;
};

// The i-th byte of the message number `message` from one rank to another in a round.
inline std::byte byte_of(int round, int from, int to, int message, std::size_t i) {
  const std::uint64_t mix = static_cast<std::uint64_t>(round) * 0x9e3779b97f4a7c15 +
                            static_cast<std::uint64_t>(from * 1009 + to * 131 + message * 17) +
                            i * 0x2545f4914f6cdd1d;
  return static_cast<std::byte>(mix >> 32);
}

// A random pattern of messages, the same on every rank: sizes[from][to] of a round.
using Pattern = std::vector<std::vector<std::vector<std::size_t>>>;

inline Pattern random_pattern(int size, int round) {
  std::mt19937 random(static_cast<unsigned>(round * 64 + size));
  Pattern sizes(static_cast<std::size_t>(size));
  for (auto& row : sizes) {
    row.resize(static_cast<std::size_t>(size));
    for (auto& messages : row) {
      messages.resize(random() % 4);
      for (std::size_t& bytes : messages)
        bytes = random() % 3 == 0 ? random() % 2 : random() % 3000;
    }
  }
  return sizes;
}

// Sends and receives a round's messages in an order of the rank's own; whether all bytes arrived
// and no other byte changed.
inline bool exchange_round(Transport& transport, int round) {
  const int rank = transport.topology().rank();
  const int size = transport.topology().size();
  const Pattern sizes = random_pattern(size, round);
  std::vector<std::vector<Guarded>> outgoing(static_cast<std::size_t>(size)), incoming(outgoing);
  std::vector<Send> sends;
  std::vector<Recv> recvs;
  const int first =
      static_cast<int>(std::mt19937(static_cast<unsigned>(round + rank))() % 8) % size;
  for (int step = 0; step < size; ++step) {
    const int peer = (first + step) % size;
    const auto& sent = sizes[rank][peer];
    for (int m = 0; m < static_cast<int>(sent.size()); ++m) {
      Guarded& buffer = outgoing[peer].emplace_back(sent[m]);
      for (std::size_t i = 0; i < sent[m]; ++i) buffer.data()[i] = byte_of(round, rank, peer, m, i);
      sends.push_back({buffer.data(), sent[m], peer});
    }
    for (const std::size_t bytes : sizes[peer][rank]) {
      Guarded& buffer = incoming[peer].emplace_back(bytes);
      recvs.push_back({buffer.data(), bytes, peer});
    }
  }
  transport.exchange(sends, recvs, Stream{});
  for (int peer = 0; peer < size; ++peer) {
    for (int m = 0; m < static_cast<int>(incoming[peer].size()); ++m) {
      Guarded& buffer = incoming[peer][m];
      if (!buffer.intact()) return false;
      for (std::size_t i = 0; i < buffer.size(); ++i) {
        if (buffer.data()[i] != byte_of(round, peer, rank, m, i)) return false;
      }
    }
  }
  return true;
}

// The bytes that exchange_round hands to other ranks.
inline std::uint64_t sent_in_round(int rank, int size, int round) {
  std::uint64_t sum = 0;
  const Pattern sizes = random_pattern(size, round);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    for (const std::size_t bytes : sizes[rank][peer]) sum += bytes;
  }
  return sum;
}

// Gathers `bytes` from every rank, in place or not; whether all arrived and no other byte changed.
inline bool gather_round(Transport& transport, std::size_t bytes, bool in_place) {
  const int rank = transport.topology().rank();
  const int size = transport.topology().size();
  Guarded own(bytes), all(bytes * static_cast<std::size_t>(size));
  std::byte* place = in_place ? all.data() + bytes * static_cast<std::size_t>(rank) : own.data();
  for (std::size_t i = 0; i < bytes; ++i) place[i] = byte_of(0, rank, 0, 0, i);
  transport.all_gather(place, all.data(), bytes, Stream{});
  if (!own.intact() || !all.intact()) return false;
  for (int from = 0; from < size; ++from) {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (all.data()[bytes * static_cast<std::size_t>(from) + i] != byte_of(0, from, 0, 0, i)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace coccl::testing
