#include "transport/local.hpp"

#include <cstring>
#include <exception>
#include <utility>

#include "coccl/error.hpp"
#include "transport/rendezvous.hpp"
#include "transport/stream_order.hpp"

namespace coccl {

LocalHub::LocalHub(int size, std::vector<int> nodes, Seconds timeout)
    : nodes_(std::move(nodes)),
      topology_(0, size, nodes_),
      meeting_(std::make_unique<Rendezvous>(size, timeout)),
      order_(std::make_unique<StreamOrder>(size)) {}

LocalHub::~LocalHub() = default;

void LocalHub::close(std::string_view reason) noexcept { meeting_->close(reason); }

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalHub> hub, int rank)
      : Transport(Topology(rank, hub->size(), hub->nodes_)),
        hub_(std::move(hub)),
        meeting_(*hub_->meeting_),
        order_(*hub_->order_),
        rank_(rank) {
    meeting_.join(rank_);
  }

  ~LocalTransport() override { meeting_.leave(rank_); }

  void close(std::string_view reason) noexcept override { meeting_.close(reason); }

 protected:
  void do_exchange(std::span<const Send> sends, std::span<const Recv> recvs,
                   Stream stream) override {
    if (stream.place == Place::cuda) order_.ready(rank_, stream);
    try {
      meeting_.offer(rank_, sends, stream.place);
      for (const Recv& recv : recvs) receive(recv, stream);
      meeting_.await_readers(rank_);
    } catch (...) {
      // A peer may be reading what this rank sends, and its caller may free it once this throws.
      meeting_.withdraw(rank_);
      try {
        order_after_readers(sends, stream);
      } catch (const CudaError&) {  // the first failure is the one to tell
      }
      throw;
    }
    order_after_readers(sends, stream);
  }

 private:
  void receive(const Recv& recv, Stream stream) {
    const Offer offer = meeting_.take(rank_, recv, stream.place);
    try {
      if (stream.place == Place::cuda) {
        order_.copy({recv.peer, rank_, offer.data, recv.data, recv.bytes}, stream);
      } else if (recv.data != offer.data) {
        std::memcpy(recv.data, offer.data, recv.bytes);
      }
    } catch (const std::exception& error) {
      meeting_.close(error.what());  // first, so that the sender does not take this for a success
      meeting_.read(rank_, recv.peer);
      throw;
    }
    meeting_.read(rank_, recv.peer);
  }

  void order_after_readers(std::span<const Send> sends, Stream stream) {
    if (stream.place != Place::cuda) return;
    for (const Send& send : sends) order_.after_reader(rank_, send.peer, stream);
  }

  const std::shared_ptr<LocalHub> hub_;
  Rendezvous& meeting_;
  StreamOrder& order_;
  const int rank_;
};

std::unique_ptr<Transport> make_local(std::shared_ptr<LocalHub> hub, int rank) {
  if (hub == nullptr) throw ArgumentError("make_local: the hub is null");
  return std::make_unique<LocalTransport>(std::move(hub), rank);
}

}  // namespace coccl
