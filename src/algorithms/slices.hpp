#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coccl/compressor.hpp"

namespace coccl {

// `count` elements cut at block boundaries into `parts` slots of equal size, the last of which may
// be short or empty. Every slot before the end is full, so coded slots that follow one another are
// one coded run of all the elements, and a single pass decodes them.
class Slices {
 public:
  Slices(const Compressor& codec, std::uint64_t count, int parts);

  // Of a slot, or of `slots` slots from there: its first element, its elements, its coded bytes.
  std::uint64_t first(int slot) const;
  std::uint64_t count(int slot, int slots = 1) const { return first(slot + slots) - first(slot); }
  std::size_t bytes(int slot, int slots = 1) const;

  // Where a slot lies in a coded buffer. The offset of `parts` is the size of the buffer.
  std::size_t offset(int slot) const { return slot * slot_bytes_; }
  std::size_t slot_bytes() const { return slot_bytes_; }

 private:
  std::uint64_t count_;
  std::uint64_t slot_count_;
  std::size_t bytes_;
  std::size_t slot_bytes_;
};

// Chunks first, first + 1, … of a ring of `size`, as at most two runs that do not wrap. A run may
// be empty. `index` is how many chunks come before the run.
struct Run {
  int first = 0;
  int count = 0;
  int index = 0;
};
std::array<Run, 2> runs(int first, int count, int size);

}  // namespace coccl
