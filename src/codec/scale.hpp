#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "base/floats.hpp"
#include "base/host_device.hpp"
#include "codec/lanes.hpp"

// The scale that a group of values shares when its largest magnitude is to become `top`.
namespace coccl {

struct Scale {
  std::uint32_t bits;  // what the wire carries: fp32, NaN if the group has a non-finite value
  float inverse;       // what values are multiplied by
  std::uint32_t
      mask;  // and-ed onto payload words: clears those of a zero and of a non-finite group
};

namespace detail {

// The largest scale whose product with `top` is finite.
constexpr float largest_scale(int top) {
  const float max = std::numeric_limits<float>::max();
  const float scale = max / static_cast<float>(top);
  const bool over = static_cast<double>(scale) * top > static_cast<double>(max);
  return over ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) - 1) : scale;
}

template <int Top>
constexpr float largest_scale_of = largest_scale(Top);

}  // namespace detail

// `amax` is the group's largest magnitude as magnitude_of gives it.
template <int Top>
COCCL_HOST_DEVICE Scale scale_of(std::uint32_t amax) {
  if (amax == 0) return {0, 0, 0};
  if (amax >= kInfinity) return {kQuietNan, 0, 0};
  constexpr float smallest = 0x1p-126f;  // normal, so that its inverse is finite
  constexpr float largest = detail::largest_scale_of<Top>;
  float scale = float_of(amax) / static_cast<float>(Top);
  if (scale < smallest) scale = smallest;
  if (scale > largest) scale = largest;
  return {bits_of(scale), 1.0f / scale, 0xffffffffu};
}

// The largest magnitude of the group that this lane's run `part` lies in.
template <class Share, class Lanes>
COCCL_HOST_DEVICE std::uint32_t group_amax(const Lanes& lanes, const float* part) {
  float largest = 0;
  COCCL_UNROLL
  for (int i = 0; i < Share::part; ++i) largest = larger_magnitude(largest, part[i]);
  return lanes.template max<Share::span>(magnitude_of(largest));
}

}  // namespace coccl
