#include <cstdint>
#include <string>

#include "coccl/compressor.hpp"
#include "coccl/error.hpp"
#include "codec/compressor_of.hpp"

namespace coccl::detail {

namespace {

void check_aligned(const std::byte* coded, const char* field) {
  if (reinterpret_cast<std::uintptr_t>(coded) % 16 != 0) {
    throw ArgumentError(std::string(field) + " is not 16-byte aligned");
  }
}

}  // namespace

void check_pass(const Fused& pass) {
  if (!compressible(pass.type)) {
    throw ArgumentError("raw data of type " + std::string(name_of(pass.type)) + " (" +
                        std::to_string(static_cast<int>(pass.type)) +
                        ") cannot be compressed; accepted: float32, bfloat16, float16");
  }
  if (pass.inputs < 0 || pass.chunks < 0) {
    throw ArgumentError("a pass over " + std::to_string(pass.inputs) + " inputs and " +
                        std::to_string(pass.chunks) + " chunks");
  }
  if (pass.count == 0 || pass.chunks == 0) return;
  if (pass.inputs > 0 ? pass.coded == nullptr : pass.raw_in == nullptr) {
    throw ArgumentError("a pass without input");
  }
  if (pass.coded_out == nullptr && pass.raw_out == nullptr) {
    throw ArgumentError("a pass without output");
  }
  check_aligned(pass.coded, "coded");
  check_aligned(pass.coded_out, "coded_out");
  if (pass.inputs > 1 && pass.coded_stride % 16 != 0) {
    throw ArgumentError("coded_stride " + std::to_string(pass.coded_stride) +
                        " is not a multiple of 16 bytes");
  }
}

}  // namespace coccl::detail
