#pragma once

#include "base/floats.hpp"
#include "base/host_device.hpp"
#include "codec/lanes.hpp"

// The Hadamard transform of each group, in Sylvester order and scaled to be its own inverse. It is
// linear, so sums may be taken of rotated values. Butterflies go by span 1, 2, 4, … whichever lane
// holds the elements, so every kind of lanes rounds alike.
namespace coccl {

namespace detail {

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }
constexpr float half_power(int log2, float odd) {
  return (log2 % 2 == 0 ? 1.0f : odd) / static_cast<float>(1 << log2 / 2);
}

// 1/√G as fp32 has it, and the inverse's factor. For an odd power of two 1/√G is not representable:
// the inverse takes the next float above it, so that forward·inverse·G rounds to exactly 1 and
// constant data survive unchanged.
template <int G>
constexpr float forward_factor = half_power(log2_of(G), 0x1.6a09e6p-1f);
template <int G>
constexpr float inverse_factor = half_power(log2_of(G), 0x1.6a09e8p-1f);

template <class Codec, class Lanes, int N>
COCCL_HOST_DEVICE void butterflies(const Lanes& lanes, float factor, float (&x)[N]) {
  using S = Share<Codec, Lanes>;
  COCCL_UNROLL
  for (int i = 0; i < N; ++i) x[i] *= factor;
  COCCL_UNROLL
  for (int span = 1; span < S::part; span *= 2) {
    COCCL_UNROLL
    for (int i = 0; i < N; i += 2 * span) {
      COCCL_UNROLL
      for (int j = i; j < i + span; ++j) {
        const float a = x[j], b = x[j + span];
        x[j] = a + b;
        x[j + span] = a - b;
      }
    }
  }
  if constexpr (S::span > 1) {
    COCCL_UNROLL
    for (int mask = 1; mask < S::span; mask *= 2) {
      float other[N];
      lanes.exchange(x, other, mask);
      const float sign = (lanes.index() & mask) != 0 ? -1.0f : 1.0f;
      COCCL_UNROLL
      for (int i = 0; i < N; ++i) x[i] = signed_sum(sign, x[i], other[i]);
    }
  }
}

}  // namespace detail

template <class Codec, class Lanes, int N>
COCCL_HOST_DEVICE void rotate(const Lanes& lanes, float (&x)[N]) {
  if constexpr (Codec::rotated) {
    detail::butterflies<Codec>(lanes, detail::forward_factor<Codec::group>, x);
  }
}

template <class Codec, class Lanes, int N>
COCCL_HOST_DEVICE void unrotate(const Lanes& lanes, float (&x)[N]) {
  if constexpr (Codec::rotated) {
    detail::butterflies<Codec>(lanes, detail::inverse_factor<Codec::group>, x);
  }
}

}  // namespace coccl
