#include "bindings.hpp"

#if COCCL_HAS_CUDA
#include <cuda_runtime_api.h>
#include <nanobind/stl/string.h>
#include <nccl.h>

#include <string>
#endif

namespace {

// What this extension was built with and for.
nb::dict build() {
  nb::dict build;
  build["cuda"] = COCCL_HAS_CUDA != 0;
#if COCCL_HAS_CUDA
  build["cuda_runtime"] =
      std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  build["nccl_headers"] = std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." +
                          std::to_string(NCCL_PATCH);
  build["architectures"] = COCCL_ARCHITECTURES;
#else
  build["cuda_runtime"] = nb::none();
  build["nccl_headers"] = nb::none();
  build["architectures"] = nb::none();
#endif
  build["compiler"] = "g++ " __VERSION__;
  return build;
}

}  // namespace

NB_MODULE(_core, module) {
  // Rows of the tables that a program keeps to its end are no leak.
  nb::set_leak_warnings(false);
  module.doc() = "The native core of coccl. Pointers are passed as integers.";
  module.attr("__version__") = COCCL_VERSION;
  module.attr("build") = build();
  bind_error(module);
  bind_compressor(module);
  bind_transport(module);
  bind_communicator(module);
}
