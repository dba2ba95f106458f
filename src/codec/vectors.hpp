#pragma once

#include <cstdint>

#include "base/floats.hpp"
#include "base/host_device.hpp"

// A lane's access to memory: 16 bytes at a time on a GPU where the address allows, plain elements
// otherwise.
namespace coccl {

// Copies 32-bit words of a payload. N·4 must be a multiple of 8, and both sides aligned to
// min(16, N·4) bytes.
template <int N>
COCCL_HOST_DEVICE void copy_words(std::uint32_t* to, const std::uint32_t* from) {
#ifdef __CUDA_ARCH__
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(from + i);
    }
  } else {
    static_assert(N % 2 == 0);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      *reinterpret_cast<uint2*>(to + i) = *reinterpret_cast<const uint2*>(from + i);
    }
  }
#else
  for (int i = 0; i < N; ++i) to[i] = from[i];
#endif
}

#ifdef __CUDA_ARCH__
template <class Raw>
__device__ __forceinline__ bool vectors_fit(const Raw* at) {
  return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}
#endif

// x = the first `valid` elements at `from`, zeros after them. Nothing past them is read.
template <class Raw, int N>
COCCL_HOST_DEVICE void load_raw(const Raw* from, int valid, float (&x)[N]) {
  if (valid == N) {
#ifdef __CUDA_ARCH__
    if (vectors_fit(from)) {
      constexpr int step = 16 / sizeof(Raw);
      static_assert(N % step == 0);
#pragma unroll
      for (int i = 0; i < N; i += step) {
        alignas(16) Raw raw[step];
        *reinterpret_cast<uint4*>(raw) = *reinterpret_cast<const uint4*>(from + i);
#pragma unroll
        for (int j = 0; j < step; ++j) x[i + j] = to_float(raw[j]);
      }
      return;
    }
#endif
    COCCL_UNROLL
    for (int i = 0; i < N; ++i) x[i] = to_float(from[i]);
    return;
  }
  COCCL_UNROLL
  for (int i = 0; i < N; ++i) x[i] = i < valid ? to_float(from[i]) : 0.0f;
}

// Stores the first `valid` elements of x. Nothing past them is written.
template <class Raw, int N>
COCCL_HOST_DEVICE void store_raw(Raw* to, int valid, const float (&x)[N]) {
  if (valid == N) {
#ifdef __CUDA_ARCH__
    if (vectors_fit(to)) {
      constexpr int step = 16 / sizeof(Raw);
#pragma unroll
      for (int i = 0; i < N; i += step) {
        alignas(16) Raw raw[step];
#pragma unroll
        for (int j = 0; j < step; ++j) raw[j] = from_float<Raw>(x[i + j]);
        *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(raw);
      }
      return;
    }
#endif
    COCCL_UNROLL
    for (int i = 0; i < N; ++i) to[i] = from_float<Raw>(x[i]);
    return;
  }
  COCCL_UNROLL
  for (int i = 0; i < N; ++i) {
    if (i < valid) to[i] = from_float<Raw>(x[i]);
  }
}

}  // namespace coccl
