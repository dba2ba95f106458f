#include "transport/external.hpp"

#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "coccl/error.hpp"
#include "transport/ending.hpp"

namespace coccl {
namespace {

class ExternalTransport final : public Transport {
 public:
  ExternalTransport(Topology topology, ExternalCalls calls)
      : Transport(std::move(topology)), calls_(std::move(calls)) {}

  void close(std::string_view reason) noexcept override { ending_.close(reason); }

 protected:
  void do_exchange(std::span<const Send> sends, std::span<const Recv> recvs,
                   Stream stream) override {
    check_usable(stream);
    const int rank = topology().rank();
    own_sends_.clear();
    peer_sends_.clear();
    peer_recvs_.clear();
    for (const Send& send : sends) (send.peer == rank ? own_sends_ : peer_sends_).push_back(send);
    auto own = own_sends_.begin();
    for (const Recv& recv : recvs) {
      if (recv.peer != rank) {
        peer_recvs_.push_back(recv);
      } else {
        copy_own(own == own_sends_.end() ? Send{nullptr, 0, rank} : *own++, recv);
      }
    }
    if (own != own_sends_.end()) copy_own(*own, Recv{nullptr, 0, rank});
    if (peer_sends_.empty() && peer_recvs_.empty()) return;
    call([&] { calls_.exchange(peer_sends_, peer_recvs_); });
  }

  void do_all_gather(const void* send, void* recv, std::size_t bytes, Stream stream) override {
    if (!calls_.all_gather || topology().size() == 1) {
      return Transport::do_all_gather(send, recv, bytes, stream);
    }
    check_usable(stream);
    call([&] { calls_.all_gather(send, recv, bytes); });
  }

 private:
  void check_usable(Stream stream) const {
    if (stream.place == Place::cuda) {
      throw ArgumentError("device memory: an external transport moves host memory alone");
    }
    ending_.throw_if_closed();
  }

  static void copy_own(const Send& send, const Recv& recv) {
    if (send.bytes != recv.bytes) {
      throw TransportError("exchange: rank " + std::to_string(send.peer) + " sends " +
                           std::to_string(send.bytes) + " bytes to itself, where it expects " +
                           std::to_string(recv.bytes) + " bytes");
    }
    if (send.data != recv.data) std::memcpy(recv.data, send.data, recv.bytes);
  }

  template <class Call>
  void call(const Call& their_call) {
    try {
      their_call();
    } catch (const std::exception& error) {
      close(error.what());
      throw;
    } catch (...) {
      close("the caller's engine failed");
      throw;
    }
  }

  const ExternalCalls calls_;
  Ending ending_;
  std::vector<Send> own_sends_, peer_sends_;
  std::vector<Recv> peer_recvs_;
};

}  // namespace

std::unique_ptr<Transport> make_external(Topology topology, ExternalCalls calls) {
  if (!calls.exchange) throw ArgumentError("external transport: `exchange` is empty");
  return std::make_unique<ExternalTransport>(std::move(topology), std::move(calls));
}

}  // namespace coccl
