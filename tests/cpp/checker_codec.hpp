#pragma once

#include <cstdint>

#include "coccl/compressor.hpp"

namespace coccl::checker {

// What the checker computes with instead of numbers; a raw element and a coded one look alike.
struct Symbol {
  static constexpr int most_encodings = 2000;

  // Sums wrap. Contributions are drawn at random, so a sum is right only if every one of them is in
  // it exactly once.
  std::uint32_t value : 32 = 0;
  // How often the most encoded part of it was encoded. More than most_encodings: not written yet.
  std::uint32_t encodings : 11 = 0;
  // Of the operations that made it, in their order: symbols of equal digests stand for equal bits.
  std::uint32_t digest : 21 = 0;

  friend bool operator==(const Symbol&, const Symbol&) = default;
};
static_assert(sizeof(Symbol) == 8);

// Fill memory with these bytes: as symbols both are refused as unwritten.
constexpr unsigned char unwritten_byte = 0xff;
constexpr unsigned char guard_byte = 0xfe;

// The type whose size is a symbol's.
constexpr DataType symbol_type = DataType::float64;

// What a rank brings to element `index` of a collective.
Symbol contribution(int rank, std::uint64_t index);

// A sum after the pass that averages. Not linear, so that it shows when parts are averaged instead.
std::uint32_t averaged(std::uint32_t value);

// Runs passes over symbols in host memory, and refuses a pass that reads unwritten memory, finds
// padding that is not zero, or writes what it still has to read.
const Compressor& symbolic_codec();

}  // namespace coccl::checker
