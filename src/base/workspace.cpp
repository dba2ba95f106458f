#include "base/workspace.hpp"

#include <string>
#include <utility>
#include <vector>

#include "coccl/error.hpp"

#if COCCL_HAS_CUDA
#include "base/cuda_handles.hpp"
#endif

namespace coccl {

#if COCCL_HAS_CUDA

namespace {

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

struct Workspace::Device {
  DeviceBuffer buffer;
  std::size_t bytes = 0;
  std::vector<DeviceBuffer> captured;  // outgrown, but in a graph that may be replayed
  std::size_t captured_bytes = 0;
  bool in_a_graph = false;
  CudaEvent released = make_event();
  bool used = false;

  std::byte* acquire(std::size_t wanted, void* handle) {
    const auto stream = static_cast<cudaStream_t>(handle);
    const bool capturing = is_capturing(stream);
    if (wanted > bytes) grow(wanted, capturing);
    in_a_graph = in_a_graph || capturing;
    // An event from outside may not be waited for inside a capture; whoever replays the graph
    // orders it after other work, as with any memory that a graph uses.
    if (used && !capturing) check(cudaStreamWaitEvent(stream, released.get(), 0));
    return buffer.get();
  }

  void release(void* handle) {
    const auto stream = static_cast<cudaStream_t>(handle);
    if (is_capturing(stream)) return;
    check(cudaEventRecord(released.get(), stream));
    used = true;
  }

 private:
  void grow(std::size_t wanted, bool capturing) {
    if (capturing) {
      throw Error("scratch memory must grow to " + std::to_string(wanted) +
                  " bytes inside a CUDA graph capture; make one call of this size before it");
    }
    if (in_a_graph) {
      captured.push_back(std::move(buffer));
      captured_bytes += bytes;
      in_a_graph = false;
    }
    bytes = 0;
    buffer.reset();  // cudaFree waits for the work that uses it
    buffer = make_device_buffer(wanted);
    bytes = wanted;
  }
};

#else

struct Workspace::Device {
  std::size_t bytes = 0, captured_bytes = 0;
  std::byte* acquire(std::size_t, void*) {
    throw UnsupportedError("device memory: this coccl was built without CUDA");
  }
  void release(void*) {}
};

#endif

Workspace::Workspace() = default;
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

std::byte* Workspace::acquire(std::size_t bytes, Stream stream) {
  if (stream.place == Place::cuda) {
    if (device_ == nullptr) device_ = std::make_unique<Device>();
    return device_->acquire(bytes, stream.handle);
  }
  if (bytes > host_bytes_) {
    host_bytes_ = 0;
    // operator new aligns to at least 16 bytes.
    host_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    host_bytes_ = bytes;
  }
  return host_.get();
}

void Workspace::release(Stream stream) {
  if (stream.place == Place::cuda) device_->release(stream.handle);
}

std::size_t Workspace::bytes() const {
  return host_bytes_ + (device_ == nullptr ? 0 : device_->bytes + device_->captured_bytes);
}

}  // namespace coccl
