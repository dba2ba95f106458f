#include "transport/rendezvous.hpp"

#include <new>

#include "coccl/error.hpp"

namespace coccl {
namespace {

std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

std::string bytes_name(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

std::string_view memory_of(Place place) { return place == Place::cuda ? "device" : "host"; }

bool same_memory(Place a, Place b) { return (a == Place::cuda) == (b == Place::cuda); }

}  // namespace

Rendezvous::Rendezvous(int size, Seconds timeout)
    : size_(size),
      timeout_(checked_timeout(timeout)),
      changed_(static_cast<std::size_t>(size)),
      presence_(static_cast<std::size_t>(size), Presence::awaited),
      boxes_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}

void Rendezvous::join(int rank) {
  const std::lock_guard lock(mutex_);
  if (presence_[rank] != Presence::awaited) {
    throw ArgumentError(rank_name(rank) + " of this group has been taken; each rank may join once");
  }
  presence_[rank] = Presence::here;
}

void Rendezvous::leave(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  presence_[rank] = Presence::gone;
  for (std::condition_variable& changed : changed_) changed.notify_all();
}

void Rendezvous::close(std::string_view reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  closed_ = true;
  try {
    reason_ = reason;
  } catch (const std::bad_alloc&) {
    reason_ = "closed";  // short enough to need no memory
  }
  for (std::condition_variable& changed : changed_) changed.notify_all();
}

void Rendezvous::throw_if_closed() const {
  if (closed_) throw TransportError(reason_);
}

void Rendezvous::fail(const std::string& reason) {
  closed_ = true;
  reason_ = reason;
  for (std::condition_variable& changed : changed_) changed.notify_all();
  throw TransportError(reason);
}

template <class Ready, class Waiting>
void Rendezvous::wait(std::unique_lock<std::mutex>& lock, int rank, int peer, Ready ready,
                      Waiting waiting) {
  const auto deadline = deadline_after(timeout_);
  while (true) {
    throw_if_closed();
    if (ready()) return;
    if (presence_[peer] == Presence::gone) {
      fail("exchange: " + rank_name(peer) + " left the group while " + waiting());
    }
    if (changed_[rank].wait_until(lock, deadline) == std::cv_status::timeout && !closed_ &&
        !ready()) {
      fail("exchange: " + waiting() + " for " + text_of(timeout_) + ", the timeout");
    }
  }
}

void Rendezvous::offer(int rank, std::span<const Send> messages, Place place) {
  const std::lock_guard lock(mutex_);
  throw_if_closed();
  for (const Send& message : messages) {
    box(rank, message.peer).offers.push_back({message.data, message.bytes, place});
    changed_[message.peer].notify_all();
  }
}

Offer Rendezvous::take(int rank, const Recv& recv, Place place) {
  std::unique_lock lock(mutex_);
  Box& from = box(recv.peer, rank);
  wait(
      lock, rank, recv.peer, [&] { return from.taken < from.offers.size(); },
      [&] {
        return rank_name(rank) + " waited for " + rank_name(recv.peer) + " to send " +
               bytes_name(recv.bytes);
      });
  const Offer offer = from.offers[from.taken];
  if (offer.bytes != recv.bytes) {
    fail("exchange: " + rank_name(recv.peer) + " sends " + bytes_name(offer.bytes) + " to " +
         rank_name(rank) + ", which expects " + bytes_name(recv.bytes));
  }
  if (!same_memory(offer.place, place)) {
    fail("exchange: " + rank_name(recv.peer) + " sends " + bytes_name(offer.bytes) + " of " +
         std::string(memory_of(offer.place)) + " memory to " + rank_name(rank) +
         ", which expects them in " + std::string(memory_of(place)) + " memory");
  }
  ++from.taken;
  return offer;
}

void Rendezvous::read(int rank, int from) noexcept {
  const std::lock_guard lock(mutex_);
  ++box(from, rank).read;
  changed_[from].notify_all();
}

void Rendezvous::await_readers(int rank) {
  std::unique_lock lock(mutex_);
  for (int peer = 0; peer < size_; ++peer) {
    Box& to = box(rank, peer);
    wait(
        lock, rank, peer, [&] { return to.read == to.offers.size(); },
        [&] {
          return rank_name(rank) + " waited for " + rank_name(peer) + " to receive " +
                 bytes_name(to.offers[to.read].bytes);
        });
    // The peer's next call finds the box empty until this rank offers again.
    to.offers.clear();
    to.taken = to.read = 0;
  }
}

void Rendezvous::withdraw(int rank) noexcept {
  std::unique_lock lock(mutex_);
  for (int peer = 0; peer < size_; ++peer) {
    Box& to = box(rank, peer);
    to.offers.resize(to.taken, Offer{});
    changed_[rank].wait(lock, [&] { return to.read == to.taken; });
    to.offers.clear();
    to.taken = to.read = 0;
  }
}

}  // namespace coccl
