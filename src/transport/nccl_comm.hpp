#pragma once

#if COCCL_HAS_CUDA
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "base/nccl_table.hpp"
#include "coccl/error.hpp"
#include "transport/ending.hpp"
#include "transport/nccl.hpp"

namespace coccl {

// How long a group may take to end in order before it is aborted.
inline constexpr Seconds kGoodbye{10};

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

}  // namespace coccl

#endif
