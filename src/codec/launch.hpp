#pragma once

#include <cstdint>
#include <string>

#include "coccl/compressor.hpp"
#include "coccl/error.hpp"
#include "codec/emulated_lanes.hpp"
#include "codec/fused.hpp"
#include "codec/lanes.hpp"

#ifdef __CUDACC__
#include "base/check.hpp"
#endif

// Runs a pass's blocks where its data lie.
namespace coccl {

#ifdef __CUDACC__
namespace detail {

template <class Codec, class Raw, Form form>
__global__ void __launch_bounds__(32 * WarpLanes::per_cta) fused_kernel(const Fused pass) {
  const std::uint64_t blocks = (pass.count + Codec::block - 1) / Codec::block;
  const std::uint64_t index = std::uint64_t{blockIdx.x} * WarpLanes::per_cta + threadIdx.x / 32;
  if (index >= blocks) return;  // whole warps leave together
  fused_block<Codec, Raw, form>(WarpLanes{}, pass, blockIdx.y, index);
}

template <class Codec, class Raw, Form form>
void launch(Fused pass, void* stream) {
  constexpr std::uint64_t most_x = 0x7fffffff;  // CUDA's limits of a grid
  constexpr int most_y = 65535;
  const std::uint64_t blocks = (pass.count + Codec::block - 1) / Codec::block;
  const std::uint64_t ctas = (blocks + WarpLanes::per_cta - 1) / WarpLanes::per_cta;
  if (ctas > most_x) throw ArgumentError("count " + std::to_string(pass.count) + " is too large");
  const std::uint64_t raw_bytes = pass.raw_stride * sizeof(Raw);
  while (pass.chunks > 0) {
    const int chunks = pass.chunks < most_y ? pass.chunks : most_y;
    const dim3 grid(static_cast<unsigned>(ctas), static_cast<unsigned>(chunks));
    fused_kernel<Codec, Raw, form>
        <<<grid, 32 * WarpLanes::per_cta, 0, static_cast<cudaStream_t>(stream)>>>(pass);
    check(cudaGetLastError());
    const std::uint64_t coded_bytes = chunks * blocks * sizeof(typename Codec::Packed);
    if (pass.coded != nullptr) pass.coded += coded_bytes;
    if (pass.coded_out != nullptr) pass.coded_out += coded_bytes;
    if (pass.raw_in != nullptr) {
      pass.raw_in = static_cast<const char*>(pass.raw_in) + chunks * raw_bytes;
    }
    if (pass.raw_out != nullptr) {
      pass.raw_out = static_cast<char*>(pass.raw_out) + chunks * raw_bytes;
    }
    pass.chunks -= chunks;
  }
}

}  // namespace detail

template <class Codec, class Raw>
void run_on_gpu(const Fused& pass, void* stream) {
  switch (form_of(pass)) {
    case Form::encode:
      return detail::launch<Codec, Raw, Form::encode>(pass, stream);
    case Form::decode:
      return detail::launch<Codec, Raw, Form::decode>(pass, stream);
    case Form::any:
      return detail::launch<Codec, Raw, Form::any>(pass, stream);
  }
}
#endif

template <class Codec, class Raw, class Lanes>
void run_blocks(const Lanes& lanes, const Fused& pass) {
  const std::uint64_t blocks = (pass.count + Codec::block - 1) / Codec::block;
  for (int chunk = 0; chunk < pass.chunks; ++chunk) {
    for (std::uint64_t index = 0; index < blocks; ++index) {
      fused_block<Codec, Raw, Form::any>(lanes, pass, static_cast<std::uint64_t>(chunk), index);
    }
  }
}

template <class Codec, class Raw>
void run_pass(const Fused& pass, Stream stream) {
  switch (stream.place) {
    case Place::host:
      return run_blocks<Codec, Raw>(HostLanes{}, pass);
    case Place::emulated:
      return EmulatedWarp::run([&pass](EmulatedWarp& warp, int lane) {
        run_blocks<Codec, Raw>(EmulatedLanes{&warp, lane}, pass);
      });
    case Place::cuda:
#ifdef __CUDACC__
      return run_on_gpu<Codec, Raw>(pass, stream.handle);
#else
      throw UnsupportedError("device memory: this coccl was built without CUDA");
#endif
  }
}

}  // namespace coccl
