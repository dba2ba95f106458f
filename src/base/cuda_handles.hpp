#pragma once

#if COCCL_HAS_CUDA
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "base/check.hpp"

// Owning handles of the CUDA runtime. They end without a word: a failure there has no one to tell.
namespace coccl {

struct StreamDeleter {
  void operator()(cudaStream_t stream) const noexcept { cudaStreamDestroy(stream); }
};
using CudaStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamDeleter>;

struct EventDeleter {
  void operator()(cudaEvent_t event) const noexcept { cudaEventDestroy(event); }
};
using CudaEvent = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventDeleter>;

struct DeviceDeleter {
  void operator()(std::byte* data) const noexcept { cudaFree(data); }
};
using DeviceBuffer = std::unique_ptr<std::byte[], DeviceDeleter>;

// A stream of the current device that takes no part in the order of the default stream.
inline CudaStream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return CudaStream(stream);
}

// An event of the current device, for order alone.
inline CudaEvent make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return CudaEvent(event);
}

inline DeviceBuffer make_device_buffer(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMalloc(&data, bytes));
  return DeviceBuffer(static_cast<std::byte*>(data));
}

}  // namespace coccl

#endif
