#pragma once

#include <cstdint>

#include "base/host_device.hpp"

// Lanes share the work on one block: lane i holds the elements [i·own, (i+1)·own) of it, where
// own = block / width. A codec is written over any lanes type with
//   width                         how many lanes there are
//   index()                       this lane
//   exchange(own, other, mask)    other = what lane index()^mask passed as own; every lane takes
//   part max<span>(v)                  the largest v among the `span` neighbours that form one
//   group sync()                        memory written before by any lane is seen after by all
// and never has to know which one it got.
namespace coccl {

// A plain loop: one lane holds the whole block.
struct HostLanes {
  static constexpr int width = 1;
  COCCL_HOST_DEVICE int index() const { return 0; }
  template <int Span>
  COCCL_HOST_DEVICE std::uint32_t max(std::uint32_t v) const {
    static_assert(Span == 1);
    return v;
  }
  COCCL_HOST_DEVICE void sync() const {}
};

#ifdef __CUDACC__
// A warp.
struct WarpLanes {
  static constexpr int width = 32;
  static constexpr int per_cta = 8;  // warps of a thread block
  __device__ __forceinline__ int index() const { return static_cast<int>(threadIdx.x % 32); }

  template <int N>
  __device__ __forceinline__ void exchange(const float (&own)[N], float (&other)[N],
                                           int mask) const {
#pragma unroll
    for (int i = 0; i < N; ++i) other[i] = __shfl_xor_sync(0xffffffffu, own[i], mask);
  }

  template <int Span>
  __device__ __forceinline__ std::uint32_t max(std::uint32_t v) const {
#pragma unroll
    for (int mask = 1; mask < Span; mask *= 2) {
      v = ::max(v, __shfl_xor_sync(0xffffffffu, v, mask));
    }
    return v;
  }

  __device__ __forceinline__ void sync() const { __syncwarp(); }
};
#endif

// How a codec's block and its groups fall on lanes. A lane's elements are `parts` runs of `part`
// elements; each run lies in one group, and `span` neighbouring lanes hold a group together.
template <class Codec, class Lanes>
struct Share {
  static constexpr int own = Codec::block / Lanes::width;
  static constexpr int part = own < Codec::group ? own : Codec::group;
  static constexpr int parts = own / part;
  static constexpr int span = Codec::group / part;
  static_assert(own % 16 == 0, "a lane holds whole 16-byte words of every payload");
  static_assert(Codec::group % part == 0 && own % part == 0);

  // The group of this lane's run number `p`.
  COCCL_HOST_DEVICE static int group(const Lanes& lanes, int p) {
    return (lanes.index() * own + p * part) / Codec::group;
  }
  // Whether this lane writes what its group shares.
  COCCL_HOST_DEVICE static bool leads(const Lanes& lanes) { return lanes.index() % span == 0; }
};

}  // namespace coccl
