#include "transport/nccl.hpp"

#include "base/nccl_table.hpp"
#include "coccl/error.hpp"

#if COCCL_HAS_CUDA
#include <cstring>
#include <exception>
#include <utility>

#include "transport/nccl_comm.hpp"
#endif

namespace coccl {

#if COCCL_HAS_CUDA
namespace {

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(static_cast<int>(DataType::bfloat16) == ncclBfloat16);
static_assert(static_cast<int>(DataType::float64) == ncclFloat64);
static_assert(static_cast<int>(Op::avg) == ncclAvg);

ncclDataType_t nccl_type(DataType type) {
  size_of(type);  // refuses a number that is no type
  return static_cast<ncclDataType_t>(type);
}

ncclRedOp_t nccl_op(Op op) {
  const int number = static_cast<int>(op);
  if (number < 0 || number > static_cast<int>(Op::avg)) {
    throw ArgumentError("unknown op " + std::to_string(number) + "; known: 0 to 4, as ncclRedOp_t");
  }
  return static_cast<ncclRedOp_t>(number);
}

class StockNccl final : public NcclTransport {
 public:
  StockNccl(Topology topology, std::unique_ptr<Comm> comm)
      : NcclTransport(std::move(topology)), comm_(std::move(comm)) {}

  void close(std::string_view reason) noexcept override { comm_->close(reason); }

  void exact_all_reduce(const Buffers& buffers, Op op, Stream stream) override {
    const ncclDataType_t type = nccl_type(buffers.type);
    const ncclRedOp_t reduction = nccl_op(op);
    run("ncclAllReduce", buffers, stream,
        [&](const NcclTable& nccl, ncclComm_t comm, cudaStream_t handle) {
          return nccl.all_reduce(buffers.input, buffers.output, buffers.count, type, reduction,
                                 comm, handle);
        });
  }

  void exact_reduce_scatter(const Buffers& buffers, Op op, Stream stream) override {
    const ncclDataType_t type = nccl_type(buffers.type);
    const ncclRedOp_t reduction = nccl_op(op);
    run("ncclReduceScatter", buffers, stream,
        [&](const NcclTable& nccl, ncclComm_t comm, cudaStream_t handle) {
          return nccl.reduce_scatter(buffers.input, buffers.output, buffers.count, type, reduction,
                                     comm, handle);
        });
  }

  void exact_all_gather(const Buffers& buffers, Stream stream) override {
    const ncclDataType_t type = nccl_type(buffers.type);
    run("ncclAllGather", buffers, stream,
        [&](const NcclTable& nccl, ncclComm_t comm, cudaStream_t handle) {
          return nccl.all_gather(buffers.input, buffers.output, buffers.count, type, comm, handle);
        });
  }

 protected:
  void do_exchange(std::span<const Send> sends, std::span<const Recv> recvs,
                   Stream stream) override {
    const cudaStream_t handle = handle_of(stream);
    if (sends.empty() && recvs.empty()) return;
    comm_->call("exchange", [&](const NcclTable& nccl, ncclComm_t comm) {
      ncclResult_t result = nccl.group_start();
      if (failed(result)) return result;
      for (const Send& send : sends) {
        if (failed(result)) break;
        result = nccl.send(send.data, send.bytes, ncclInt8, send.peer, comm, handle);
      }
      for (const Recv& recv : recvs) {
        if (failed(result)) break;
        result = nccl.recv(recv.data, recv.bytes, ncclInt8, recv.peer, comm, handle);
      }
      // Also after a failure: an open group would swallow this thread's later calls.
      const ncclResult_t end = nccl.group_end();
      return failed(result) ? result : end;
    });
  }

  void do_all_gather(const void* send, void* recv, std::size_t bytes, Stream stream) override {
    exact_all_gather({send, recv, bytes, DataType::int8}, stream);
  }

 private:
  static bool failed(ncclResult_t result) {
    return result != ncclSuccess && result != ncclInProgress;
  }

  static cudaStream_t handle_of(Stream stream) {
    if (stream.place != Place::cuda) {
      throw ArgumentError("host memory: the NCCL transport moves device memory alone");
    }
    return static_cast<cudaStream_t>(stream.handle);
  }

  template <class Enqueue>
  void run(std::string_view name, const Buffers& buffers, Stream stream, const Enqueue& enqueue) {
    const cudaStream_t handle = handle_of(stream);
    if (buffers.count == 0) return;
    if (buffers.input == nullptr || buffers.output == nullptr) {
      throw ArgumentError(std::string(name) + " of " + std::to_string(buffers.count) +
                          " elements: the " + (buffers.input == nullptr ? "input" : "output") +
                          " is null");
    }
    try {
      comm_->call(name, [&](const NcclTable& nccl, ncclComm_t comm) {
        return enqueue(nccl, comm, handle);
      });
    } catch (const std::exception& error) {
      close(error.what());
      throw;
    }
  }

  const std::unique_ptr<Comm> comm_;
};

void require(const std::shared_ptr<const NcclTable>& nccl) {
  if (nccl == nullptr) throw ArgumentError("NCCL transport: the table of NCCL is null");
}

}  // namespace

NcclUniqueId nccl_unique_id(const std::string& library) {
  const auto nccl = load_nccl(library);
  ncclUniqueId id;
  check_nccl(*nccl, nccl->get_unique_id(&id), "ncclGetUniqueId");
  NcclUniqueId bytes;
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

NcclVersion nccl_version(const std::string& library) {
  const auto nccl = load_nccl(library);
  return {nccl->version, nccl->path};
}

std::unique_ptr<NcclTransport> make_nccl(NcclGroup group, std::shared_ptr<const NcclTable> nccl) {
  require(nccl);
  Topology topology(group.rank, group.size, std::move(group.nodes));
  return std::make_unique<StockNccl>(std::move(topology),
                                     std::make_unique<Comm>(std::move(nccl), group));
}

std::unique_ptr<NcclTransport> borrow_nccl(NcclLoan loan, std::shared_ptr<const NcclTable> nccl) {
  require(nccl);
  if (loan.comm == nullptr) throw ArgumentError("NCCL transport: the borrowed ncclComm_t is null");
  auto comm = std::make_unique<Comm>(std::move(nccl), loan.comm, loan.timeout);
  Topology topology(comm->rank(), comm->size(), std::move(loan.nodes));
  return std::make_unique<StockNccl>(std::move(topology), std::move(comm));
}

#else

namespace {

[[noreturn]] void refuse() { throw UnsupportedError("NCCL: this coccl was built without CUDA"); }

}  // namespace

NcclUniqueId nccl_unique_id(const std::string&) { refuse(); }

NcclVersion nccl_version(const std::string&) { refuse(); }

std::unique_ptr<NcclTransport> make_nccl(NcclGroup, std::shared_ptr<const NcclTable>) { refuse(); }

std::unique_ptr<NcclTransport> borrow_nccl(NcclLoan, std::shared_ptr<const NcclTable>) { refuse(); }

#endif

}  // namespace coccl
