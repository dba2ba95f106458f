#pragma once

#include <string>
#include <string_view>

#include "base/floats.hpp"
#include "coccl/compressor.hpp"
#include "coccl/error.hpp"
#include "codec/codec.hpp"
#include "codec/launch.hpp"

namespace coccl {

namespace detail {

void check_pass(const Fused& pass);

template <class Codec>
void run(const Fused& pass, Stream stream) {
  check_pass(pass);
  if (pass.count == 0 || pass.chunks == 0) return;
  switch (pass.type) {
    case DataType::float32:
      return run_pass<Codec, float>(pass, stream);
    case DataType::bfloat16:
      return run_pass<Codec, Bfloat16>(pass, stream);
    default:
      return run_pass<Codec, Float16>(pass, stream);
  }
}

}  // namespace detail

// Erases a codec. `method` is one line for people.
template <class Codec>
Compressor compressor_of(std::string_view name, std::string_view method) {
  static_assert(is_codec<Codec>());
  return {.name = name,
          .method = method,
          .block = Codec::block,
          .block_bytes = sizeof(typename Codec::Packed),
          .group = Codec::group,
          .tolerance = Codec::tolerance,
          .rotated = Codec::rotated,
          .run = detail::run<Codec>};
}

}  // namespace coccl
