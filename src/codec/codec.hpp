#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "codec/lanes.hpp"

namespace coccl {

namespace detail {

template <class Codec, class Lanes>
concept codes_over =
    requires(const Lanes& lanes, float (&x)[Codec::block / Lanes::width],
             const float (&values)[Codec::block / Lanes::width], typename Codec::Packed& packed) {
      Codec::encode(lanes, values, packed);
      Codec::decode(lanes, std::as_const(packed), x);
    };

}  // namespace detail

// What a codec is: how one block of values becomes one Packed struct and back.
//   block      elements of a block, a multiple of 256
//   group      elements that share a scale: a power of two that divides the block; 1 for none
//   rotated    whether values are Hadamard-transformed by groups before they are encoded
//   tolerance  worst |x - decode(encode(x))| as a fraction of the largest |x| of a group
//   Packed     the block on the wire: unsigned integers only, a multiple of 16 bytes, no padding
//   encode     lanes, this lane's block / width values, the block to write
//   decode     the inverse; a group with a non-finite value decodes to non-finite values alone
// static_assert(is_codec<T>()) names the clause that a type breaks.
template <class Codec>
consteval bool is_codec() {
  using Packed = typename Codec::Packed;
  static_assert(Codec::block > 0 && Codec::block % 256 == 0, "block: a multiple of 256 elements");
  static_assert(Codec::group > 0 && Codec::block % Codec::group == 0, "group: divides the block");
  static_assert((Codec::group & (Codec::group - 1)) == 0, "group: a power of two");
  static_assert(std::is_trivially_copyable_v<Packed>, "Packed: trivially copyable");
  static_assert(sizeof(Packed) % 16 == 0, "Packed: a multiple of 16 bytes");
  static_assert(std::has_unique_object_representations_v<Packed>,
                "Packed: unsigned integers only, without padding");
  static_assert(Codec::tolerance >= 0 && Codec::tolerance < 1, "tolerance: a fraction");
  static_assert(std::same_as<decltype(Codec::rotated), const bool>, "rotated: bool");
  static_assert(detail::codes_over<Codec, HostLanes>, "encode and decode: see is_codec");
  return true;
}

}  // namespace coccl
