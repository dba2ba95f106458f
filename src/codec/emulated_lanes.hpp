#pragma once

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace coccl {

// A warp on a machine without one: 32 threads that meet at a barrier wherever a warp would shuffle.
// It runs the very code that the GPU runs with 32 lanes, to prove on a host that lanes agree.
class EmulatedWarp {
 public:
  static constexpr int width = 32;

  // Calls body(lane) on every lane at once and returns when all have.
  static void run(const std::function<void(EmulatedWarp&, int)>& body) {
    EmulatedWarp warp;
    std::vector<std::jthread> threads;
    for (int lane = 0; lane < width; ++lane) {
      threads.emplace_back([&warp, &body, lane] { body(warp, lane); });
    }
  }

  void meet() {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    if (++arrived_ == width) {
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&] { return round_ != round; });
    }
  }

  float* board(int lane) { return board_[lane]; }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  float board_[width][64] = {};
};

struct EmulatedLanes {
  static constexpr int width = EmulatedWarp::width;

  EmulatedWarp* warp;
  int lane;

  int index() const { return lane; }

  template <int N>
  void exchange(const float (&own)[N], float (&other)[N], int mask) const {
    static_assert(N <= 64);
    std::copy_n(own, N, warp->board(lane));
    warp->meet();
    std::copy_n(warp->board(lane ^ mask), N, other);
    warp->meet();
  }

  template <int Span>
  std::uint32_t max(std::uint32_t v) const {
    for (int mask = 1; mask < Span; mask *= 2) {
      const float own[1] = {std::bit_cast<float>(v)};
      float other[1];
      exchange(own, other, mask);
      v = std::max(v, std::bit_cast<std::uint32_t>(other[0]));
    }
    return v;
  }

  void sync() const { warp->meet(); }
};

}  // namespace coccl
