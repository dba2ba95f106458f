#pragma once

#include <cstdint>

#include "base/floats.hpp"
#include "base/host_device.hpp"
#include "codec/lanes.hpp"
#include "codec/vectors.hpp"

namespace coccl {

// The codecs that send every value alone, as fp32 (exact) or as a 16-bit float.
template <class Value>
struct Cast {
  static constexpr int block = 512;
  static constexpr int group = 1;
  static constexpr bool rotated = false;
  static constexpr int per_word = 4 / sizeof(Value);

  struct Packed {
    std::uint32_t payload[block / per_word];
  };

  template <class Lanes, int N>
  COCCL_HOST_DEVICE static void encode(const Lanes& lanes, const float (&x)[N], Packed& packed) {
    alignas(16) std::uint32_t words[N / per_word];
    COCCL_UNROLL
    for (int w = 0; w < N / per_word; ++w) {
      if constexpr (per_word == 1) {
        words[w] = bits_of(x[w]);
      } else {
        words[w] = from_float<Value>(x[2 * w]).bits |
                   std::uint32_t{from_float<Value>(x[2 * w + 1]).bits} << 16;
      }
    }
    store_words(packed.payload + lanes.index() * (N / per_word), words);
  }

  template <class Lanes, int N>
  COCCL_HOST_DEVICE static void decode(const Lanes& lanes, const Packed& packed, float (&x)[N]) {
    alignas(16) std::uint32_t words[N / per_word];
    load_words(packed.payload + lanes.index() * (N / per_word), words);
    COCCL_UNROLL
    for (int w = 0; w < N / per_word; ++w) {
      if constexpr (per_word == 1) {
        x[w] = float_of(words[w]);
      } else {
        x[2 * w] = to_float(Value{static_cast<std::uint16_t>(words[w])});
        x[2 * w + 1] = to_float(Value{static_cast<std::uint16_t>(words[w] >> 16)});
      }
    }
  }
};

}  // namespace coccl
