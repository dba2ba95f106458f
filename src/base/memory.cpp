#include "base/memory.hpp"

#include <cstring>

#include "coccl/error.hpp"

#if COCCL_HAS_CUDA
#include "base/check.hpp"
#endif

namespace coccl {

void copy_bytes(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0 || to == from) return;
  if (stream.place != Place::cuda) {
    std::memcpy(to, from, bytes);
    return;
  }
#if COCCL_HAS_CUDA
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                        static_cast<cudaStream_t>(stream.handle)));
#else
  throw UnsupportedError("device memory: this coccl was built without CUDA");
#endif
}

void fill_bytes(void* at, unsigned char value, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  if (stream.place != Place::cuda) {
    std::memset(at, value, bytes);
    return;
  }
#if COCCL_HAS_CUDA
  check(cudaMemsetAsync(at, value, bytes, static_cast<cudaStream_t>(stream.handle)));
#else
  throw UnsupportedError("device memory: this coccl was built without CUDA");
#endif
}

}  // namespace coccl
