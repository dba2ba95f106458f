#pragma once

#include <cstdint>

#include "base/floats.hpp"
#include "base/host_device.hpp"

namespace coccl {

// Signed integers of `Bits` bits for Scaled: -qmax … qmax in two's complement, the first value of a
// word in its lowest bits.
template <int Bits>
struct Integers {
  static constexpr int bits = Bits;
  static constexpr int top = (1 << (Bits - 1)) - 1;
  static constexpr double tolerance = 0.5 / top;

  static constexpr int per_word = 32 / Bits;
  static_assert(32 % Bits == 0);

  // 1.5·2^23 + bias + x rounds x to the nearest even integer and leaves x + bias, which is
  // positive, in the low bits.
  static constexpr int bias = 1 << (Bits - 1);
  static constexpr float magic = 12582912.0f + bias;

  // The word in which every value is `v`.
  static constexpr std::uint32_t repeat(std::uint32_t v) {
    std::uint32_t word = 0;
    for (int i = 0; i < per_word; ++i) word += v << (Bits * i);
    return word;
  }
  // What adding up the shifted bits of per_word magic numbers leaves besides the values.
  static constexpr std::uint32_t surplus = repeat(0x4b400000u);
  // Flips the top bit of every value: from x + bias to two's complement, and back.
  static constexpr std::uint32_t flip = repeat(1u << (Bits - 1));

  template <int Words>
  COCCL_HOST_DEVICE static void pack(const float* x, std::uint32_t* words) {
    COCCL_UNROLL
    for (int w = 0; w < Words; ++w) {
      std::uint32_t word = 0;
      COCCL_UNROLL
      for (int i = 0; i < per_word; ++i) {
        word += bits_of(x[w * per_word + i] + magic) << (Bits * i);
      }
      words[w] = (word - surplus) ^ flip;
    }
  }

  template <int Words>
  COCCL_HOST_DEVICE static void unpack(const std::uint32_t* words, float* x) {
    constexpr std::uint32_t one = 0x4b000000u;  // 2^23, whose low mantissa bits count in ones
    constexpr float base = 8388608.0f + bias;
    COCCL_UNROLL
    for (int w = 0; w < Words; ++w) {
      const std::uint32_t word = words[w] ^ flip;
      COCCL_UNROLL
      for (int i = 0; i < per_word; ++i) {
        const std::uint32_t value = (word >> (Bits * i)) & ((1u << Bits) - 1);
        x[w * per_word + i] = float_of(one | value) - base;
      }
    }
  }
};

}  // namespace coccl
