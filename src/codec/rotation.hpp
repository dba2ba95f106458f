#pragma once

#include "base/floats.hpp"
#include "base/host_device.hpp"
#include "codec/lanes.hpp"

// The Hadamard transform of each group, in Sylvester order. It is linear, so sums may be taken of
// rotated values. Butterflies go by span 1, 2, 4, … whichever lane holds the elements, so every
// kind of lanes rounds alike.
namespace coccl {

namespace detail {

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

// Powers of two whose product is 1/G: both are exact, so the transform adds no rounding of its own
// and constant data survive unchanged. 1/√G both ways would not do where log2 G is odd: it is
// inexact there, and costs constant data up to two ulp. What is encoded is √2 times larger then,
// which no scaled codec notices.
template <int G>
constexpr float forward_factor = 1.0f / static_cast<float>(1 << log2_of(G) / 2);
template <int G>
constexpr float inverse_factor = forward_factor<G> / static_cast<float>(1 << log2_of(G) % 2);

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
