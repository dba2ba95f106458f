#include "communicator/node_layout.hpp"

#include <cstdint>
#include <vector>

#include "base/host_id.hpp"
#include "coccl/error.hpp"
#include "transport/nodes.hpp"

#if COCCL_HAS_CUDA
#include "base/cuda_handles.hpp"
#endif

namespace coccl {

#if COCCL_HAS_CUDA

void find_nodes(Transport& transport) {
  const auto size = static_cast<std::size_t>(transport.topology().size());
  const auto rank = static_cast<std::size_t>(transport.topology().rank());
  std::vector<std::uint64_t> hosts(size, host_id());
  constexpr std::size_t bytes = sizeof hosts[0];

  const DeviceBuffer on_device = make_device_buffer(size * bytes);
  const CudaStream stream = make_stream();
  check(cudaMemcpyAsync(on_device.get(), hosts.data(), size * bytes, cudaMemcpyHostToDevice,
                        stream.get()));
  transport.all_gather(on_device.get() + rank * bytes, on_device.get(), bytes,
                       {Place::cuda, stream.get()});
  check(cudaMemcpyAsync(hosts.data(), on_device.get(), size * bytes, cudaMemcpyDeviceToHost,
                        stream.get()));
  check(cudaStreamSynchronize(stream.get()));
  transport.set_nodes(nodes_of(hosts));
}

#else

void find_nodes(Transport&) {
  throw UnsupportedError("device memory: this coccl was built without CUDA");
}

#endif

}  // namespace coccl
