#include "codec/compressor_of.hpp"
#include "codec/integers.hpp"
#include "codec/scaled.hpp"

namespace coccl {

Compressor make_int4h() {
  return compressor_of<Rotated<Scaled<Integers<4>>>>(
      "int4h", "int4 after a Hadamard rotation of every 128 elements");
}

}  // namespace coccl
