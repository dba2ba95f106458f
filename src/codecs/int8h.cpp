#include "codec/compressor_of.hpp"
#include "codec/integers.hpp"
#include "codec/scaled.hpp"

namespace coccl {

Compressor make_int8h() {
  return compressor_of<Rotated<Scaled<Integers<8>>>>(
      "int8h", "int8 after a Hadamard rotation of every 128 elements");
}

}  // namespace coccl
