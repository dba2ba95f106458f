#pragma once

#include <cstdint>

#include "base/floats.hpp"
#include "base/host_device.hpp"
#include "codec/lanes.hpp"

// A lane's access to memory: 16 bytes at a time on a GPU where the address allows, plain elements
// otherwise.
namespace coccl {

#ifdef __CUDA_ARCH__
template <class T>
__device__ __forceinline__ bool vectors_fit(const T* at) {
  return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}

// Stores what a whole warp holds, `Words` 16-byte words a lane, to the lane's address `to`; lanes
// follow one another in memory. The words go through shared memory first, so that every store of
// the warp covers 512 bytes in one piece: stored lane by lane, each would touch a little of every
// cache line, at a third of the speed. Slots are rotated so that no two lanes meet in a bank.
template <int Words>
__device__ __forceinline__ void store_warp(uint4* to, const uint4 (&own)[Words]) {
  if constexpr (Words == 1 || 8 % Words != 0) {
#pragma unroll
    for (int i = 0; i < Words; ++i) to[i] = own[i];
  } else {
    __shared__ uint4 tiles[WarpLanes::per_cta][32 * Words];
    uint4* const tile = tiles[threadIdx.x / 32];
    const int lane = static_cast<int>(threadIdx.x % 32);
    const auto slot = [](int of_lane, int word) {
      return of_lane * Words + (word + of_lane / (8 / Words)) % Words;
    };
    __syncwarp();  // whatever was in the tile has been read
#pragma unroll
    for (int i = 0; i < Words; ++i) tile[slot(lane, i)] = own[i];
    __syncwarp();
    uint4* const first = to - lane * Words;
#pragma unroll
    for (int i = 0; i < Words; ++i) {
      const int at = i * 32 + lane;
      first[at] = tile[slot(at / Words, at % Words)];
    }
  }
}
#endif

// Reads 32-bit words of a payload, aligned to min(16, 4·N) bytes. N·4 is a multiple of 8.
template <int N>
COCCL_HOST_DEVICE void load_words(const std::uint32_t* from, std::uint32_t (&words)[N]) {
#ifdef __CUDA_ARCH__
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      *reinterpret_cast<uint4*>(words + i) = *reinterpret_cast<const uint4*>(from + i);
    }
  } else {
    static_assert(N % 2 == 0);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      *reinterpret_cast<uint2*>(words + i) = *reinterpret_cast<const uint2*>(from + i);
    }
  }
#else
  for (int i = 0; i < N; ++i) words[i] = from[i];
#endif
}

// Writes the words of every lane at once, to lanes' addresses that follow one another.
template <int N>
COCCL_HOST_DEVICE void store_words(std::uint32_t* to, const std::uint32_t (&words)[N]) {
#ifdef __CUDA_ARCH__
  if constexpr (N % 4 == 0) {
    uint4 own[N / 4];
#pragma unroll
    for (int i = 0; i < N / 4; ++i) own[i] = *reinterpret_cast<const uint4*>(words + 4 * i);
    store_warp(reinterpret_cast<uint4*>(to), own);
  } else {
    static_assert(N % 2 == 0);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      *reinterpret_cast<uint2*>(to + i) = *reinterpret_cast<const uint2*>(words + i);
    }
  }
#else
  for (int i = 0; i < N; ++i) to[i] = words[i];
#endif
}

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

// Stores the first `valid` elements of x, the values of every lane at once, to lanes' addresses
// that follow one another. Nothing past them is written.
template <class Raw, int N>
COCCL_HOST_DEVICE void store_raw(Raw* to, int valid, const float (&x)[N]) {
#ifdef __CUDA_ARCH__
  if (__all_sync(0xffffffffu, valid == N && vectors_fit(to))) {
    constexpr int step = 16 / sizeof(Raw);
    uint4 own[N / step];
#pragma unroll
    for (int i = 0; i < N / step; ++i) {
      alignas(16) Raw raw[step];
#pragma unroll
      for (int j = 0; j < step; ++j) raw[j] = from_float<Raw>(x[i * step + j]);
      own[i] = *reinterpret_cast<const uint4*>(raw);
    }
    return store_warp(reinterpret_cast<uint4*>(to), own);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < valid) to[i] = from_float<Raw>(x[i]);
  }
#else
  for (int i = 0; i < valid; ++i) to[i] = from_float<Raw>(x[i]);
#endif
}

}  // namespace coccl
