#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "coccl/transport.hpp"
#include "coccl/types.hpp"

namespace coccl {

// Memory that a rank lets another one read.
struct Offer {
  const void* data;
  std::size_t bytes;
  Place place;
};

// Where the threads of a group hand each other pointers. A rank offers its messages without
// waiting, then takes those that it expects, then waits until its own were read: whatever the order
// in which ranks arrive, none waits for another in a circle.
class Rendezvous {
 public:
  Rendezvous(int size, Seconds timeout);

  void join(int rank);  // ArgumentError if the rank has been taken
  // Whoever waits for the rank from now on fails.
  void leave(int rank) noexcept;
  // Wakes and fails every waiter; the first reason stays.
  void close(std::string_view reason) noexcept;

  void offer(int rank, std::span<const Send> messages, Place place);
  // Waits for the next offer to `rank` from recv.peer. Its memory stays valid until read().
  Offer take(int rank, const Recv& recv, Place place);
  void read(int rank, int from) noexcept;
  // Waits until all that the rank offered was read.
  void await_readers(int rank);
  // Takes back what the rank offered and waits for those who are reading.
  void withdraw(int rank) noexcept;

 private:
  // Offers of one rank to another within a call: [0, read) are done, [read, taken) are being read.
  struct Box {
    std::vector<Offer> offers;
    std::size_t taken = 0;
    std::size_t read = 0;
  };
  enum class Presence { awaited, here, gone };

  Box& box(int from, int to) { return boxes_[static_cast<std::size_t>(from * size_ + to)]; }
  void throw_if_closed() const;
  [[noreturn]] void fail(const std::string& reason);
  // Waits until `ready()`, or fails with `waiting` where `peer` cannot make it so.
  template <class Ready, class Waiting>
  void wait(std::unique_lock<std::mutex>& lock, int rank, int peer, Ready ready, Waiting waiting);

  const int size_;
  const Seconds timeout_;
  std::mutex mutex_;                              // guards all below
  std::vector<std::condition_variable> changed_;  // of each rank
  std::vector<Presence> presence_;
  std::vector<Box> boxes_;
  bool closed_ = false;
  std::string reason_;
};

}  // namespace coccl
