#include "codec/compressor_of.hpp"
#include "codec/integers.hpp"
#include "codec/scaled.hpp"

namespace coccl {

Compressor make_int4() {
  return compressor_of<Scaled<Integers<4>>>(
      "int4", "symmetric 4-bit integers, a scale for every 128 elements");
}

}  // namespace coccl
