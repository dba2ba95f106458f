#include "codec/cast.hpp"
#include "codec/compressor_of.hpp"

namespace coccl {

struct Bf16 : Cast<Bfloat16> {
  static constexpr double tolerance = 0x1p-8;
};

Compressor make_bf16() { return compressor_of<Bf16>("bf16", "rounded to bfloat16"); }

}  // namespace coccl
