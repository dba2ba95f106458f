#include "codec/compressor_of.hpp"
#include "codec/integers.hpp"
#include "codec/scaled.hpp"

namespace coccl {

Compressor make_int8() {
  return compressor_of<Scaled<Integers<8>>>(
      "int8", "symmetric 8-bit integers, a scale for every 128 elements");
}

}  // namespace coccl
