#pragma once

#include <cstdint>

#include "base/floats.hpp"
#include "base/host_device.hpp"

namespace coccl {

// 8-bit floats with 4 bits of exponent and 3 of mantissa for Scaled.
struct E4m3 {
  static constexpr int bits = 8;
  static constexpr int top = 448;
  static constexpr double tolerance = 0x1p-4;

  template <int Words>
  COCCL_HOST_DEVICE static void pack(const float* x, std::uint32_t* words) {
    COCCL_UNROLL
    for (int w = 0; w < Words; ++w) {
      words[w] = to_e4m3x4(x[4 * w], x[4 * w + 1], x[4 * w + 2], x[4 * w + 3]);
    }
  }

  template <int Words>
  COCCL_HOST_DEVICE static void unpack(const std::uint32_t* words, float* x) {
    COCCL_UNROLL
    for (int w = 0; w < Words; ++w) from_e4m3x4(words[w], x + 4 * w);
  }
};

}  // namespace coccl
