#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "coccl/types.hpp"

namespace coccl {

// One pass over data: sum = raw_in + Σ decode(coded inputs), in fp32 and in this order; then
// sum *= scale; then encode to coded_out and/or store to raw_out. Which fields are set says what
// the pass is:
//   encode                 raw_in, coded_out
//   decode                 coded (1 input), raw_out
//   decode_reduce          coded, raw_in (optional), raw_out
//   decode_reduce_encode   coded, raw_in (optional), coded_out, raw_out (optional)
// Where both outputs are set, raw_out receives decode(coded_out): what every other rank will
// decode.
//
// Data are `chunks` chunks of `count` elements. Raw chunks start `raw_stride` elements apart, coded
// chunks follow one another, each padded with zeros to whole blocks before encoding. Nothing
// outside the elements named here is read or written. Raw pointers need the alignment of their type
// alone; coded pointers are 16-byte aligned. An output may be the very memory of an input.
struct Fused {
  const std::byte* coded = nullptr;
  std::size_t coded_stride = 0;  // bytes from one coded input to the next
  int inputs = 0;                // coded inputs
  const void* raw_in = nullptr;
  std::byte* coded_out = nullptr;
  void* raw_out = nullptr;
  DataType type = DataType::float32;  // of raw_in and raw_out
  std::uint64_t count = 0;            // elements of a chunk
  int chunks = 1;
  std::uint64_t raw_stride = 0;  // elements; unused when chunks == 1
  float scale = 1;
};

// A codec, erased: what algorithms know of it.
struct Compressor {
  std::string_view name;
  std::string_view method;  // one line for people
  int block = 0;            // elements of the wire's atom
  int block_bytes = 0;      // bytes of the wire's atom, a multiple of 16
  int group = 0;            // elements that share a scale (1: every element stands alone)
  double tolerance = 0;  // worst |x - decode(encode(x))| as a fraction of the group's largest |x|;
                         // of a rotated codec: in the rotated group
  bool rotated = false;
  void (*run)(const Fused&, Stream) = nullptr;

  std::uint64_t blocks(std::uint64_t count) const { return (count + block - 1) / block; }
  std::uint64_t bytes(std::uint64_t count) const { return blocks(count) * block_bytes; }
  double bits_per_element() const { return 8.0 * block_bytes / block; }
};

// Every compressor of this build, sorted by name.
std::span<const Compressor> compressors();

// ArgumentError `unknown compressor "int3x"; known: …` if there is none of that name.
const Compressor& find_compressor(std::string_view name);

}  // namespace coccl
