#include "algorithms/slices.hpp"

#include <algorithm>

namespace coccl {

Slices::Slices(const Compressor& codec, std::uint64_t count, int parts)
    : count_(count), bytes_(codec.bytes(count)) {
  const std::uint64_t slot_blocks = (codec.blocks(count) + parts - 1) / parts;
  slot_count_ = slot_blocks * codec.block;
  slot_bytes_ = slot_blocks * codec.block_bytes;
}

std::uint64_t Slices::first(int slot) const { return std::min(slot * slot_count_, count_); }

std::size_t Slices::bytes(int slot, int slots) const {
  return std::min(offset(slot + slots), bytes_) - std::min(offset(slot), bytes_);
}

std::array<Run, 2> runs(int first, int count, int size) {
  const int start = first % size;
  const int before = std::min(count, size - start);
  return {Run{start, before, 0}, Run{0, count - before, before}};
}

}  // namespace coccl
