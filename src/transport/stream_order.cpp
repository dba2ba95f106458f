#include "transport/stream_order.hpp"

#include "coccl/error.hpp"

#if COCCL_HAS_CUDA
#include <cuda_runtime.h>

#include <vector>

#include "base/check.hpp"
#include "base/cuda_handles.hpp"
#endif

namespace coccl {

#if COCCL_HAS_CUDA
namespace {

void record(CudaEvent& event, Stream stream) {
  if (!event) event = make_event();
  check(cudaEventRecord(event.get(), static_cast<cudaStream_t>(stream.handle)));
}

void wait_for(const CudaEvent& event, Stream stream) {
  check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream.handle), event.get()));
}

}  // namespace

struct StreamOrder::Events {
  explicit Events(std::size_t ranks) : size(ranks), ready(ranks), copied(ranks * ranks) {}

  CudaEvent& copied_by(int reader, int owner) {
    return copied[static_cast<std::size_t>(owner) * size + static_cast<std::size_t>(reader)];
  }

  std::size_t size;
  std::vector<CudaEvent> ready;
  std::vector<CudaEvent> copied;
};

StreamOrder::StreamOrder(int size)
    : events_(std::make_unique<Events>(static_cast<std::size_t>(size))) {}

void StreamOrder::ready(int owner, Stream stream) { record(events_->ready[owner], stream); }

void StreamOrder::copy(const Copy& copy, Stream stream) {
  wait_for(events_->ready[copy.owner], stream);
  if (copy.from != copy.to) {
    check(cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDefault,
                          static_cast<cudaStream_t>(stream.handle)));
  }
  record(events_->copied_by(copy.reader, copy.owner), stream);
}

void StreamOrder::after_reader(int owner, int reader, Stream stream) {
  const CudaEvent& copied = events_->copied_by(reader, owner);
  if (copied) wait_for(copied, stream);  // none where the reader failed before its first copy
}

#else

struct StreamOrder::Events {};

namespace {

[[noreturn]] void refuse() {
  throw UnsupportedError("device memory: this coccl was built without CUDA");
}

}  // namespace

StreamOrder::StreamOrder(int) {}
void StreamOrder::ready(int, Stream) { refuse(); }
void StreamOrder::copy(const Copy&, Stream) { refuse(); }
void StreamOrder::after_reader(int, int, Stream) { refuse(); }

#endif

StreamOrder::~StreamOrder() = default;

}  // namespace coccl
