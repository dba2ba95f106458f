#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"
#include "coccl/compressor.hpp"
#include "codec/lanes.hpp"
#include "codec/rotation.hpp"
#include "codec/vectors.hpp"

namespace coccl {

// What a pass does, where that is known when its kernel is chosen. `any` looks at the fields.
enum class Form { encode, decode, any };

inline Form form_of(const Fused& pass) {
  if (pass.inputs == 0 && pass.coded_out != nullptr && pass.raw_out == nullptr) return Form::encode;
  if (pass.inputs == 1 && pass.raw_in == nullptr && pass.coded_out == nullptr) return Form::decode;
  return Form::any;
}

// The one loop that every operation of every codec is: this lane's share of block `index` of chunk
// `chunk`. Sums are taken of rotated values, so a pass rotates at most once on the way in and once
// on the way out, and decode_reduce_encode without raw data not at all.
template <class Codec, class Raw, Form form, class Lanes>
COCCL_HOST_DEVICE void fused_block(const Lanes& lanes, const Fused& pass, std::uint64_t chunk,
                                   std::uint64_t index) {
  using Packed = typename Codec::Packed;
  constexpr int own = Codec::block / Lanes::width;
  const int inputs = form == Form::encode ? 0 : form == Form::decode ? 1 : pass.inputs;
  const bool adds_raw = form == Form::encode || (form == Form::any && pass.raw_in != nullptr);
  const bool encodes = form == Form::encode || (form == Form::any && pass.coded_out != nullptr);
  const bool stores = form == Form::decode || (form == Form::any && pass.raw_out != nullptr);

  const std::uint64_t blocks = (pass.count + Codec::block - 1) / Codec::block;
  const std::uint64_t coded_at = (chunk * blocks + index) * sizeof(Packed);
  const std::uint64_t first = index * Codec::block + static_cast<unsigned>(lanes.index() * own);
  const std::uint64_t raw_at = chunk * pass.raw_stride + first;
  const std::uint64_t left = pass.count > first ? pass.count - first : 0;
  const int valid = left < own ? static_cast<int>(left) : own;

  const auto packed_input = [&](int i) -> const Packed& {
    const std::byte* coded = pass.coded + static_cast<std::uint64_t>(i) * pass.coded_stride;
    return *reinterpret_cast<const Packed*>(coded + coded_at);
  };

  float sum[own];
  if (adds_raw) {
    load_raw(static_cast<const Raw*>(pass.raw_in) + raw_at, valid, sum);
    rotate<Codec>(lanes, sum);
  } else {
    Codec::decode(lanes, packed_input(0), sum);
  }
  for (int i = adds_raw ? 0 : 1; i < inputs; ++i) {
    float x[own];
    Codec::decode(lanes, packed_input(i), x);
    COCCL_UNROLL
    for (int j = 0; j < own; ++j) sum[j] += x[j];
  }
  if (pass.scale != 1.0f) {
    COCCL_UNROLL
    for (int j = 0; j < own; ++j) sum[j] *= pass.scale;
  }
  if (encodes) {
    Packed& packed = *reinterpret_cast<Packed*>(pass.coded_out + coded_at);
    // The output may be an input: no lane writes before all have read, none reads before all wrote.
    lanes.sync();
    Codec::encode(lanes, sum, packed);
    if (stores) {
      lanes.sync();
      Codec::decode(lanes, packed, sum);
    }
  }
  if (stores) {
    unrotate<Codec>(lanes, sum);
    store_raw(static_cast<Raw*>(pass.raw_out) + raw_at, valid, sum);
  }
}

}  // namespace coccl
