#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "coccl/communicator.hpp"
#include "coccl/transport.hpp"

struct ncclComm;

namespace coccl {

struct NcclTable;

// What all ranks of an NCCL group share at its start: ncclUniqueId.
using NcclUniqueId = std::array<char, 128>;

// `library` as in load_nccl.
NcclUniqueId nccl_unique_id(const std::string& library = {});

struct NcclVersion {
  int number;        // 22809 is 2.28.9
  std::string path;  // of the library
};
NcclVersion nccl_version(const std::string& library = {});

// Device memory moved by NCCL. A call returns when NCCL has put its work on the stream; on the
// first calls it also makes connections, for which `timeout` is the limit.
class NcclTransport : public Transport {
 public:
  // NCCL's own collectives on the same communicator, of any type and op. They do not count as
  // sent_bytes(): what they send is NCCL's choice.
  virtual void exact_all_reduce(const Buffers&, Op, Stream) = 0;
  virtual void exact_reduce_scatter(const Buffers&, Op, Stream) = 0;
  virtual void exact_all_gather(const Buffers&, Stream) = 0;

 protected:
  using Transport::Transport;
};

struct NcclGroup {
  NcclUniqueId id;
  int rank;
  int size;
  std::vector<int> nodes = {};  // as in Topology
  Seconds timeout = Seconds(600);
};

// Joins a new group on the current device; returns when all of its ranks have. TransportError after
// `timeout`, as when ids differ. close() aborts the group.
std::unique_ptr<NcclTransport> make_nccl(NcclGroup group, std::shared_ptr<const NcclTable> nccl);

// Over the caller's communicator, which must outlive the transport and is neither aborted nor
// destroyed by it.
struct NcclLoan {
  ncclComm* comm;
  std::vector<int> nodes = {};
  Seconds timeout = Seconds(600);
};
std::unique_ptr<NcclTransport> borrow_nccl(NcclLoan loan, std::shared_ptr<const NcclTable> nccl);

}  // namespace coccl
