#include "codec/compressor_of.hpp"
#include "codec/e4m3.hpp"
#include "codec/scaled.hpp"

namespace coccl {

Compressor make_fp8() {
  return compressor_of<Scaled<E4m3>>("fp8", "8-bit floats (e4m3), a scale for every 128 elements");
}

}  // namespace coccl
