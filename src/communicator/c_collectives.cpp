#include <exception>

#include "communicator/c_handles.hpp"

using coccl::Buffers;
using coccl::Communicator;
using coccl::Method;
using coccl::Op;
using coccl::Place;
using coccl::c_api::guarded;
using coccl::c_api::required;

namespace {

// Runs a collective: by NCCL itself where no compressor is asked for, else coded. A failure closes
// the group, so that no rank waits for this one.
template <class Exact, class Coded>
cocclResult_t collective(cocclComm_t comm, const char* compressor, const Exact& exact,
                         const Coded& coded) noexcept {
  return guarded([&] {
    cocclComm& group = required(comm, "comm");
    try {
      if (compressor == nullptr && group.nccl != nullptr) return exact(*group.nccl);
      coded(group.communicator,
            Method{compressor != nullptr ? compressor : "none", group.algorithm});
    } catch (const std::exception& error) {
      group.communicator.close(error.what());
      throw;
    }
  });
}

Buffers buffers_of(const void* input, void* output, size_t count, cocclDataType_t type) {
  return {input, output, count, static_cast<coccl::DataType>(type)};
}

coccl::Stream stream_of(cocclComm_t comm, CUstream_st* stream) {
  const Place place = comm != nullptr ? comm->place : Place::host;
  return {place, place == Place::cuda ? stream : nullptr};
}

}  // namespace

cocclResult_t cocclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                             cocclDataType_t type, cocclRedOp_t op, const char* compressor,
                             cocclComm_t comm, CUstream_st* stream) {
  const Buffers buffers = buffers_of(sendbuff, recvbuff, count, type);
  const coccl::Stream order = stream_of(comm, stream);
  return collective(
      comm, compressor,
      [&](coccl::NcclTransport& nccl) {
        nccl.exact_all_reduce(buffers, static_cast<Op>(op), order);
      },
      [&](Communicator& communicator, Method method) {
        communicator.all_reduce(buffers, static_cast<Op>(op), order, method);
      });
}

cocclResult_t cocclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                 cocclDataType_t type, cocclRedOp_t op, const char* compressor,
                                 cocclComm_t comm, CUstream_st* stream) {
  const Buffers buffers = buffers_of(sendbuff, recvbuff, recvcount, type);
  const coccl::Stream order = stream_of(comm, stream);
  return collective(
      comm, compressor,
      [&](coccl::NcclTransport& nccl) {
        nccl.exact_reduce_scatter(buffers, static_cast<Op>(op), order);
      },
      [&](Communicator& communicator, Method method) {
        communicator.reduce_scatter(buffers, static_cast<Op>(op), order, method);
      });
}

cocclResult_t cocclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                             cocclDataType_t type, const char* compressor, cocclComm_t comm,
                             CUstream_st* stream) {
  const Buffers buffers = buffers_of(sendbuff, recvbuff, sendcount, type);
  const coccl::Stream order = stream_of(comm, stream);
  return collective(
      comm, compressor, [&](coccl::NcclTransport& nccl) { nccl.exact_all_gather(buffers, order); },
      [&](Communicator& communicator, Method method) {
        communicator.all_gather(buffers, order, method);
      });
}
