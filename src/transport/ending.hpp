#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "coccl/error.hpp"

namespace coccl {

// Whether a transport has been closed, and why. The first reason stays. Any thread may ask and
// close.
class Ending {
 public:
  // Whether this call was the one that closed.
  bool close(std::string_view reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (closed_.load(std::memory_order_relaxed)) return false;
    try {
      reason_ = reason;
    } catch (const std::bad_alloc&) {
      reason_ = "closed";  // short enough to need no memory
    }
    closed_.store(true, std::memory_order_release);
    return true;
  }

  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  void throw_if_closed() const {
    if (closed()) throw TransportError(reason_);
  }

 private:
  std::atomic<bool> closed_ = false;
  std::mutex mutex_;
  std::string reason_;  // constant once closed
};

}  // namespace coccl
