#include "transport/nccl.hpp"

#include "base/nccl_table.hpp"
#include "coccl/error.hpp"

#if COCCL_HAS_CUDA
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "transport/ending.hpp"
#endif

namespace coccl {

#if COCCL_HAS_CUDA
namespace {

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(static_cast<int>(DataType::bfloat16) == ncclBfloat16);
static_assert(static_cast<int>(DataType::float64) == ncclFloat64);
static_assert(static_cast<int>(Op::avg) == ncclAvg);

// How long a group may take to end in order before it is aborted.
constexpr Seconds kGoodbye{10};

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

// Lets other threads run between two looks: at first at once, then rarely.
class Pause {
 public:
  void operator()() {
    if (++looks_ < 100) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(looks_, 1000)));
  }

 private:
  int looks_ = 0;
};

// An ncclComm_t, ours or borrowed. Non-blocking: whoever makes a call waits until NCCL has settled
// it, with a deadline, so that another thread can close the group in between.
class Comm {
 public:
  // Borrows.
  Comm(std::shared_ptr<const NcclTable> nccl, ncclComm_t comm, Seconds timeout)
      : nccl_(std::move(nccl)), comm_(comm), timeout_(checked_timeout(timeout)) {}

  // Makes.
  Comm(std::shared_ptr<const NcclTable> nccl, const NcclGroup& group)
      : nccl_(std::move(nccl)), owned_(true), timeout_(checked_timeout(group.timeout)) {
    ncclUniqueId id;
    std::memcpy(&id, group.id.data(), sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const std::string call = "ncclCommInitRankConfig of rank " + std::to_string(group.rank) +
                             " in a group of size " + std::to_string(group.size);
    try {
      settle(nccl_->comm_init_rank_config(&comm_, group.size, id, group.rank, &config), call,
             timeout_);
    } catch (...) {
      abort();
      throw;
    }
  }

  ~Comm() {
    if (!owned_ || comm_ == nullptr) return;
    try {
      settle(nccl_->comm_finalize(comm_), "ncclCommFinalize", std::min(timeout_, kGoodbye));
      nccl_->comm_destroy(comm_);
    } catch (const std::exception&) {
      abort();
    }
  }

  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // `enqueue(nccl, comm)` returns an ncclResult_t.
  template <class Enqueue>
  void call(std::string_view name, const Enqueue& enqueue) {
    ncclResult_t result = ncclSuccess;
    {
      const std::lock_guard lock(mutex_);
      ending_.throw_if_closed();
      ncclResult_t earlier = ncclSuccess;
      check_nccl(*nccl_, nccl_->comm_get_async_error(comm_, &earlier), "ncclCommGetAsyncError",
                 comm_);
      check_nccl(*nccl_, earlier, "NCCL, since the last call", comm_);
      result = enqueue(*nccl_, comm_);
    }
    settle(result, name, timeout_);
  }

  void close(std::string_view reason) noexcept {
    if (!ending_.close(reason) || !owned_) return;
    abort();
  }

  int rank() const { return ask(nccl_->comm_user_rank, "ncclCommUserRank"); }
  int size() const { return ask(nccl_->comm_count, "ncclCommCount"); }

 private:
  template <class Question>
  int ask(Question question, std::string_view name) const {
    int answer = 0;
    check_nccl(*nccl_, question(comm_, &answer), name, comm_);
    return answer;
  }

  void settle(ncclResult_t result, std::string_view call, Seconds timeout) {
    const auto deadline = deadline_after(timeout);
    Pause pause;
    while (result == ncclInProgress) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw TransportError(std::string(call) + ": not done after " + text_of(timeout) +
                             ", the timeout");
      }
      pause();
      const std::lock_guard lock(mutex_);
      ending_.throw_if_closed();
      check_nccl(*nccl_, nccl_->comm_get_async_error(comm_, &result), "ncclCommGetAsyncError",
                 comm_);
    }
    const std::lock_guard lock(mutex_);
    ending_.throw_if_closed();
    check_nccl(*nccl_, result, call, comm_);
  }

  void abort() noexcept {
    const std::lock_guard lock(mutex_);
    if (comm_ != nullptr) nccl_->comm_abort(comm_);
    comm_ = nullptr;
  }

  const std::shared_ptr<const NcclTable> nccl_;
  std::mutex mutex_;  // guards comm_ against an abort by another thread
  ncclComm_t comm_ = nullptr;
  const bool owned_ = false;
  const Seconds timeout_;
  Ending ending_;
};

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
