#include "codec/cast.hpp"
#include "codec/compressor_of.hpp"

namespace coccl {

struct None : Cast<float> {
  static constexpr double tolerance = 0;
};

Compressor make_none() { return compressor_of<None>("none", "fp32 as it is: exact"); }

}  // namespace coccl
