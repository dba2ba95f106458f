#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "coccl/transport.hpp"

namespace coccl {

class Rendezvous;
class StreamOrder;

// Where the ranks of a group meet that are threads of one process. `nodes` as in Topology; a rank
// that has waited for another for `timeout` gives up and closes the hub.
class LocalHub {
 public:
  explicit LocalHub(int size, std::vector<int> nodes = {}, Seconds timeout = Seconds(60));
  ~LocalHub();

  int size() const { return topology_.size(); }

  // Every call of every rank, waiting or to come, throws TransportError with the first reason.
  void close(std::string_view reason) noexcept;

 private:
  friend class LocalTransport;

  const std::vector<int> nodes_;
  const Topology topology_;  // as rank 0 sees it
  const std::unique_ptr<Rendezvous> meeting_;
  const std::unique_ptr<StreamOrder> order_;
};

// The transport of one rank, for one thread at a time. Each rank of a hub is made once; when it
// ends, whoever still waits for it fails. Serves host memory, and device memory where coccl was
// built with CUDA: the receiver's stream does the copying.
std::unique_ptr<Transport> make_local(std::shared_ptr<LocalHub> hub, int rank);

}  // namespace coccl
