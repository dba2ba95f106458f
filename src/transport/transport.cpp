#include "coccl/transport.hpp"

#include <cstdint>
#include <exception>
#include <string>

#include "coccl/error.hpp"
#include "transport/nodes.hpp"

namespace coccl {
namespace {

template <class Message>
void check_message(const Message& message, int size, const char* kind) {
  if (message.peer < 0 || message.peer >= size) {
    throw ArgumentError(std::string(kind) + " of " + std::to_string(message.bytes) +
                        " bytes with rank " + std::to_string(message.peer) +
                        "; ranks of this group are 0 to " + std::to_string(size - 1));
  }
  if (message.data == nullptr && message.bytes > 0) {
    throw ArgumentError(std::string(kind) + " of " + std::to_string(message.bytes) +
                        " bytes with rank " + std::to_string(message.peer) +
                        ": the pointer is null");
  }
}

// Runs `move`. A rank that fails ends the group, so that no peer waits for it; but an ArgumentError
// comes before anything was moved.
template <class Move>
void close_on_failure(Transport& transport, const Move& move) {
  try {
    move();
  } catch (const ArgumentError&) {
    throw;
  } catch (const std::exception& error) {
    transport.close(error.what());
    throw;
  } catch (...) {
    transport.close("rank " + std::to_string(transport.topology().rank()) + " failed");
    throw;
  }
}

}  // namespace

Topology::Topology(int rank, int size, std::vector<int> nodes) : rank_(rank), size_(size) {
  if (size < 1) {
    throw ArgumentError("group of size " + std::to_string(size) + "; it must be at least 1");
  }
  if (rank < 0 || rank >= size) {
    throw ArgumentError("rank " + std::to_string(rank) + " in a group of size " +
                        std::to_string(size) + "; it must be 0 to " + std::to_string(size - 1));
  }
  if (nodes.empty()) nodes.assign(static_cast<std::size_t>(size), 0);
  if (nodes.size() != static_cast<std::size_t>(size)) {
    throw ArgumentError("nodes of " + std::to_string(nodes.size()) + " ranks for a group of size " +
                        std::to_string(size) + "; there must be one of each rank, or none");
  }
  node_of_ = nodes_of(std::vector<std::uint64_t>(nodes.begin(), nodes.end()));
  for (int r = 0; r < size; ++r) {
    const auto node = static_cast<std::size_t>(node_of_[r]);
    if (node == members_.size()) members_.emplace_back();
    local_rank_.push_back(static_cast<int>(members_[node].size()));
    members_[node].push_back(r);
  }
}

void Transport::exchange(std::span<const Send> sends, std::span<const Recv> recvs, Stream stream) {
  sends_.clear();
  recvs_.clear();
  std::uint64_t bytes = 0;
  for (const Send& send : sends) {
    check_message(send, topology_.size(), "send");
    if (send.bytes > 0) sends_.push_back(send);
    if (send.peer != topology_.rank()) bytes += send.bytes;
  }
  for (const Recv& recv : recvs) {
    check_message(recv, topology_.size(), "receive");
    if (recv.bytes > 0) recvs_.push_back(recv);
  }
  close_on_failure(*this, [&] { do_exchange(sends_, recvs_, stream); });
  sent_bytes_ += bytes;
}

void Transport::all_gather(const void* send, void* recv, std::size_t bytes, Stream stream) {
  if (bytes > 0 && (send == nullptr || recv == nullptr)) {
    throw ArgumentError("all_gather of " + std::to_string(bytes) + " bytes: the " +
                        (send == nullptr ? "send" : "receive") + " pointer is null");
  }
  if (bytes == 0) return;
  close_on_failure(*this, [&] { do_all_gather(send, recv, bytes, stream); });
  sent_bytes_ += bytes * static_cast<std::uint64_t>(topology_.size() - 1);
}

void Transport::do_all_gather(const void* send, void* recv, std::size_t bytes, Stream stream) {
  sends_.clear();
  recvs_.clear();
  // Every rank starts with its right neighbour, so that no rank has all the others at its door.
  for (int step = 1; step <= topology_.size(); ++step) {
    const int to = (topology_.rank() + step) % topology_.size();
    const int from = (topology_.rank() + topology_.size() - step) % topology_.size();
    std::byte* place = static_cast<std::byte*>(recv) + bytes * static_cast<std::size_t>(from);
    if (from == topology_.rank() && place == send) continue;
    sends_.push_back({send, bytes, to});
    recvs_.push_back({place, bytes, from});
  }
  do_exchange(sends_, recvs_, stream);
}

}  // namespace coccl
