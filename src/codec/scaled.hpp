#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "codec/lanes.hpp"
#include "codec/scale.hpp"
#include "codec/vectors.hpp"

namespace coccl {

// The codecs that send a group as one fp32 scale and a few bits a value. `Values` says how scaled
// values lie in 32-bit words:
//   bits       of a value
//   top        what a group's largest magnitude is scaled to
//   tolerance  worst error of a value, as a fraction of the group's largest magnitude
//   pack       words of scaled values     (|x| <= top up to a rounding of the scale)
//   unpack     the inverse
template <class Values, int Group = 128>
struct Scaled {
  static constexpr int block = 512;
  static constexpr int group = Group;
  static constexpr bool rotated = false;
  static constexpr double tolerance = Values::tolerance;

  struct Packed {
    std::uint32_t scale[block / group];  // fp32
    std::uint32_t payload[block * Values::bits / 32];
  };

  template <class Lanes, int N>
  COCCL_HOST_DEVICE static void encode(const Lanes& lanes, const float (&x)[N], Packed& packed) {
    using S = Share<Scaled, Lanes>;
    constexpr int part_words = S::part * Values::bits / 32;
    alignas(16) std::uint32_t words[S::parts * part_words];
    COCCL_UNROLL
    for (int p = 0; p < S::parts; ++p) {
      const float* part = x + p * S::part;
      const Scale scale = scale_of<Values::top>(group_amax<S>(lanes, part));
      if (S::leads(lanes)) packed.scale[S::group(lanes, p)] = scale.bits;
      float scaled[S::part];
      COCCL_UNROLL
      for (int i = 0; i < S::part; ++i) scaled[i] = part[i] * scale.inverse;
      std::uint32_t* own = words + p * part_words;
      Values::template pack<part_words>(scaled, own);
      COCCL_UNROLL
      for (int i = 0; i < part_words; ++i) own[i] &= scale.mask;
    }
    constexpr int own_words = S::parts * part_words;
    store_words(packed.payload + lanes.index() * own_words, words);
  }

  template <class Lanes, int N>
  COCCL_HOST_DEVICE static void decode(const Lanes& lanes, const Packed& packed, float (&x)[N]) {
    using S = Share<Scaled, Lanes>;
    constexpr int part_words = S::part * Values::bits / 32;
    constexpr int own_words = S::parts * part_words;
    alignas(16) std::uint32_t words[own_words];
    load_words(packed.payload + lanes.index() * own_words, words);
    COCCL_UNROLL
    for (int p = 0; p < S::parts; ++p) {
      float* part = x + p * S::part;
      const float scale = float_of(packed.scale[S::group(lanes, p)]);
      Values::template unpack<part_words>(words + p * part_words, part);
      COCCL_UNROLL
      for (int i = 0; i < S::part; ++i) part[i] *= scale;
    }
  }
};

// The same after a Hadamard transform of each group.
template <class Codec>
struct Rotated : Codec {
  static constexpr bool rotated = true;
};

}  // namespace coccl
