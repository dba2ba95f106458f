#pragma once

#if COCCL_HAS_CUDA
#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "coccl/error.hpp"

namespace coccl {

// CudaError `cudaMemcpyAsync: invalid argument (cudaErrorInvalidValue)` unless `result` is a
// success.
inline void check_cuda(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess) return;
  // The runtime also keeps the error for its next caller, who has no part in it.
  static_cast<void>(cudaGetLastError());
  throw CudaError(std::string(call.substr(0, call.find('('))) + ": " + cudaGetErrorString(result) +
                  " (" + cudaGetErrorName(result) + ")");
}

}  // namespace coccl

// A macro, since the error names the call.
#define check(...) ::coccl::check_cuda((__VA_ARGS__), #__VA_ARGS__)

#endif
