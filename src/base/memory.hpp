#pragma once

#include <cstddef>

#include "coccl/types.hpp"

namespace coccl {

// Copies bytes within the stream's place, in its order. The two ranges do not overlap.
void copy_bytes(void* to, const void* from, std::size_t bytes, Stream stream);

// Sets every byte.
void fill_bytes(void* at, unsigned char value, std::size_t bytes, Stream stream);

}  // namespace coccl
