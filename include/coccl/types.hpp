#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coccl {

// The numbers are those of ncclDataType_t and ncclRedOp_t, so the C API and NCCL agree without a
// table.
enum class DataType : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};

enum class Op : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };

enum class Collective : int { all_reduce, reduce_scatter, all_gather };

// Where a call's buffers lie. `emulated` is host memory worked on by a 32-lane warp of threads:
// slow, and there to prove on any machine that a compressor's lanes agree. Only Compressor::run
// takes it.
enum class Place { host, cuda, emulated };

// Orders a call's work: `handle` is the cudaStream_t when the buffers are in device memory. Host
// work is done when the call returns.
struct Stream {
  Place place = Place::host;
  void* handle = nullptr;

  friend bool operator==(const Stream&, const Stream&) = default;
};

// Bytes of one element; an ArgumentError that names the number if `type` is none of the above.
std::size_t size_of(DataType type);
std::string_view name_of(DataType type);
std::string_view name_of(Op op);
std::string_view name_of(Collective collective);

// The element types that a compressor takes as raw data.
constexpr bool compressible(DataType type) {
  return type == DataType::float32 || type == DataType::bfloat16 || type == DataType::float16;
}

}  // namespace coccl
