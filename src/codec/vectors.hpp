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

#ifdef __CUDA_ARCH__
// Stores the values of a whole warp, 16-byte aligned. Two neighbouring lanes first swap half of
// their 16-byte words, so that each of their stores together fills 32-byte sectors of memory: a
// lane's own run stored word by word would fill every sector in two halves, at half the speed or
// less.
template <class Raw, int N>
__device__ __forceinline__ void store_by_pairs(Raw* to, const float (&x)[N]) {
  constexpr int step = 16 / sizeof(Raw);
  constexpr int words = N / step;
  static_assert(words % 2 == 0);
  const int odd = static_cast<int>(threadIdx.x % 2);
  uint4* const pair = reinterpret_cast<uint4*>(to - odd * N) + odd;
#pragma unroll
  for (int i = 0; i < words; i += 2) {
    uint4 own[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      alignas(16) Raw raw[step];
#pragma unroll
      for (int j = 0; j < step; ++j) raw[j] = from_float<Raw>(x[(i + k) * step + j]);
      own[k] = *reinterpret_cast<const uint4*>(raw);
    }
    const uint4 given = odd ? own[0] : own[1];
    const uint4 taken = {
        __shfl_xor_sync(0xffffffffu, given.x, 1), __shfl_xor_sync(0xffffffffu, given.y, 1),
        __shfl_xor_sync(0xffffffffu, given.z, 1), __shfl_xor_sync(0xffffffffu, given.w, 1)};
    pair[i] = odd ? taken : own[0];
    pair[words + i] = odd ? own[1] : taken;
  }
}
#endif

// Stores the first `valid` elements of x, the values of every lane at once. Nothing past them is
// written.
template <class Raw, int N>
COCCL_HOST_DEVICE void store_raw(Raw* to, int valid, const float (&x)[N]) {
#ifdef __CUDA_ARCH__
  if (__all_sync(0xffffffffu, valid == N && vectors_fit(to))) return store_by_pairs(to, x);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < valid) to[i] = from_float<Raw>(x[i]);
  }
#else
  for (int i = 0; i < valid; ++i) to[i] = from_float<Raw>(x[i]);
#endif
}

}  // namespace coccl
