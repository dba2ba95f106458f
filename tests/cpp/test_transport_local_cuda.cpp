#include <doctest/doctest.h>

#if COCCL_HAS_CUDA
#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "base/cuda_handles.hpp"
#include "coccl/error.hpp"
#include "transport/local.hpp"
#include "transport_world.hpp"

using namespace coccl;
using namespace coccl::testing;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kDelay = std::chrono::milliseconds(100);

bool has_device() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return true;
  MESSAGE("no CUDA device here: device memory is not tested");
  return false;
}

// Keeps `stream` busy for kDelay, while the host goes on.
void delay(cudaStream_t stream) {
  check(cudaLaunchHostFunc(stream, [](void*) { std::this_thread::sleep_for(kDelay); }, nullptr));
}

Stream stream_of(const CudaStream& stream) { return {Place::cuda, stream.get()}; }

int value_of(int rank, int round) { return 1 + (rank * 37 + round * 11) % 200; }

// Whether all bytes of device memory are `value`, once `stream` has come to it.
bool all_are(const std::byte* data, std::size_t bytes, int value, cudaStream_t stream) {
  std::vector<std::byte> host(bytes);
  check(cudaMemcpyAsync(host.data(), data, bytes, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  for (const std::byte byte : host) {
    if (byte != static_cast<std::byte>(value)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a failed CUDA call is named") {
  CHECK_THROWS_WITH_AS(check(cudaSetDevice(1 << 20)), doctest::Contains("cudaSetDevice: "),
                       CudaError);
}

TEST_CASE("device messages follow their producer and no host waits for the device") {
  if (!has_device()) return;
  constexpr std::size_t bytes = (1 << 20) + 3;
  constexpr int kKept = 16;  // rounds
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const auto hub = std::make_shared<LocalHub>(size);
    std::atomic<int> wrong = 0, waited = 0;
    const auto errors = run_ranks(size, [&](int rank) {
      const auto transport = make_local(hub, rank);
      const CudaStream stream = make_stream();
      const auto ranks = static_cast<std::size_t>(size);
      const DeviceBuffer own = make_device_buffer(bytes);
      const DeviceBuffer all = make_device_buffer(bytes * ranks * kKept);
      const auto part = [&](int round, int peer) {
        return all.get() + bytes * (static_cast<std::size_t>(round) % kKept * ranks +
                                    static_cast<std::size_t>(peer));
      };
      const auto gather = [&](int round) {
        check(cudaMemsetAsync(own.get(), value_of(rank, round), bytes, stream.get()));
        std::vector<Send> sends;
        std::vector<Recv> recvs;
        for (int peer = 0; peer < size; ++peer) {
          sends.push_back({own.get(), bytes, peer});
          recvs.push_back({part(round, peer), bytes, peer});
        }
        transport->exchange(sends, recvs, stream_of(stream));
        // The sent buffer is used again at once, by work on the same stream alone.
        check(cudaMemsetAsync(own.get(), 255, bytes, stream.get()));
      };
      const auto check_arrived = [&](int round) {
        for (int peer = 0; peer < size; ++peer) {
          if (!all_are(part(round, peer), bytes, value_of(peer, round), stream.get())) ++wrong;
        }
      };
      gather(0);  // makes the events
      check_arrived(0);
      // Late producers: another one each round, then all.
      for (int round = 1; round <= size + 1; ++round) {
        const auto start = Clock::now();
        if (round == rank + 1 || round == size + 1) delay(stream.get());
        gather(round);
        if (Clock::now() - start >= kDelay) ++waited;
        check_arrived(round);
      }
      // Back to back, so that events are recorded again while earlier waits are pending.
      for (int repeat = 0; repeat < 5; ++repeat) {
        if (repeat % size == rank) delay(stream.get());
        for (int round = 0; round < kKept; ++round) gather(round + repeat);
        for (int round = 0; round < kKept; ++round) check_arrived(round + repeat);
      }
    });
    CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(size)));
    CHECK(wrong == 0);
    CHECK(waited == 0);
  }
}

TEST_CASE("a slow receiver holds back the sender's next write") {
  if (!has_device()) return;
  constexpr std::size_t bytes = 1 << 16;
  const auto hub = std::make_shared<LocalHub>(2);
  std::atomic<int> wrong = 0;
  const auto errors = run_ranks(2, [&](int rank) {
    const auto transport = make_local(hub, rank);
    const CudaStream stream = make_stream();
    const DeviceBuffer data = make_device_buffer(bytes);
    for (int round = 0; round < 5; ++round) {
      if (rank == 0) {
        check(cudaMemsetAsync(data.get(), value_of(0, round), bytes, stream.get()));
        transport->exchange(std::array{Send{data.get(), bytes, 1}}, {}, stream_of(stream));
        check(cudaMemsetAsync(data.get(), 255, bytes, stream.get()));
      } else {
        delay(stream.get());
        transport->exchange({}, std::array{Recv{data.get(), bytes, 0}}, stream_of(stream));
        if (!all_are(data.get(), bytes, value_of(0, round), stream.get())) ++wrong;
      }
    }
    check(cudaStreamSynchronize(stream.get()));
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(wrong == 0);
}

TEST_CASE("ranks gather in device memory in place") {
  if (!has_device()) return;
  constexpr std::size_t bytes = 12345;
  const auto hub = std::make_shared<LocalHub>(3);
  std::atomic<int> wrong = 0;
  const auto errors = run_ranks(3, [&](int rank) {
    const auto transport = make_local(hub, rank);
    const CudaStream stream = make_stream();
    const DeviceBuffer all = make_device_buffer(3 * bytes);
    for (int round = 0; round < 20; ++round) {
      std::byte* own = all.get() + bytes * static_cast<std::size_t>(rank);
      check(cudaMemsetAsync(own, value_of(rank, round), bytes, stream.get()));
      transport->all_gather(own, all.get(), bytes, stream_of(stream));
      for (int peer = 0; peer < 3; ++peer) {
        const std::byte* part = all.get() + bytes * static_cast<std::size_t>(peer);
        if (!all_are(part, bytes, value_of(peer, round), stream.get())) ++wrong;
      }
    }
  });
  CHECK(errors == std::vector<std::string>(3));
  CHECK(wrong == 0);
}

TEST_CASE("host memory does not meet device memory") {
  if (!has_device()) return;
  const auto hub = std::make_shared<LocalHub>(2);
  const auto errors = run_ranks(2, [&](int rank) {
    const auto transport = make_local(hub, rank);
    std::array<std::byte, 8> host{};
    if (rank == 0) return transport->exchange(std::array{Send{host.data(), 8, 1}}, {}, Stream{});
    const CudaStream stream = make_stream();
    const DeviceBuffer data = make_device_buffer(8);
    transport->exchange({}, std::array{Recv{data.get(), 8, 0}}, stream_of(stream));
  });
  for (const std::string& error : errors) {
    CAPTURE(error);
    CHECK(error.find("8 bytes of host memory to rank 1") != std::string::npos);
  }
}
#endif
