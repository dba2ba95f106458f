#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/nccl_table.hpp"
#include "communicator/c_handles.hpp"
#include "communicator/node_layout.hpp"

using coccl::ArgumentError;
using coccl::Communicator;
using coccl::Place;
using coccl::c_api::guarded;
using coccl::c_api::required;

namespace coccl::c_api {

std::string& last_error() {
  // The one thing kept between calls, and a thread's own: a C caller has nowhere else to read it.
  thread_local std::string message;
  return message;
}

cocclResult_t keep(const std::exception& error) noexcept {
  last_error() = error.what();
  if (dynamic_cast<const ArgumentError*>(&error) != nullptr) return cocclInvalidArgument;
  if (dynamic_cast<const UnsupportedError*>(&error) != nullptr) return cocclUnsupported;
  if (dynamic_cast<const CudaError*>(&error) != nullptr) return cocclCudaError;
  if (dynamic_cast<const TransportError*>(&error) != nullptr) return cocclTransportError;
  return cocclInternalError;
}

}  // namespace coccl::c_api

namespace {

cocclConfig_t config_of(const cocclConfig_t* given) {
  const cocclConfig_t defaults = COCCL_CONFIG_INITIALIZER;
  if (given == nullptr) return defaults;
  if (given->size != sizeof(cocclConfig_t)) {
    throw ArgumentError("cocclConfig_t of size " + std::to_string(given->size) +
                        "; this coccl's is " + std::to_string(sizeof(cocclConfig_t)) +
                        " (start from COCCL_CONFIG_INITIALIZER)");
  }
  return *given;
}

std::string text_or(const char* text, const char* otherwise) {
  return text != nullptr ? text : otherwise;
}

std::unique_ptr<cocclComm> over_nccl(std::unique_ptr<coccl::NcclTransport> transport,
                                     const cocclConfig_t& config) {
  coccl::NcclTransport* const nccl = transport.get();
  coccl::find_nodes(*nccl);
  return std::make_unique<cocclComm>(cocclComm{Communicator(std::move(transport)), nccl,
                                               Place::cuda, text_or(config.algorithm, "auto")});
}

}  // namespace

const char* cocclGetVersion(void) { return COCCL_VERSION; }

const char* cocclGetErrorString(cocclResult_t result) {
  switch (result) {
    case cocclSuccess:
      return "success";
    case cocclCudaError:
      return "a CUDA call failed";
    case cocclInternalError:
      return "internal error";
    case cocclInvalidArgument:
      return "invalid argument";
    case cocclUnsupported:
      return "not supported by this build, machine or NCCL";
    case cocclTransportError:
      return "bytes could not be moved";
  }
  return "unknown result";
}

const char* cocclGetLastError(void) { return coccl::c_api::last_error().c_str(); }

cocclResult_t cocclGetUniqueId(cocclUniqueId* id) {
  return guarded([&] {
    const coccl::NcclUniqueId made = coccl::nccl_unique_id();
    std::copy(made.begin(), made.end(), required(id, "id").internal);
  });
}

cocclResult_t cocclCommInitRank(cocclComm_t* comm, int nranks, cocclUniqueId id, int rank,
                                const cocclConfig_t* given) {
  return guarded([&] {
    cocclComm_t& made = required(comm, "comm");
    const cocclConfig_t config = config_of(given);
    const auto nccl = coccl::load_nccl(text_or(config.nccl_library, ""));
    coccl::NcclGroup group{
        .id = {}, .rank = rank, .size = nranks, .timeout = coccl::Seconds(config.timeout)};
    std::copy(std::begin(id.internal), std::end(id.internal), group.id.begin());
    made = over_nccl(coccl::make_nccl(std::move(group), nccl), config).release();
  });
}

cocclResult_t cocclCommInitNccl(cocclComm_t* comm, ncclComm* nccl, const cocclConfig_t* given) {
  return guarded([&] {
    cocclComm_t& made = required(comm, "comm");
    const cocclConfig_t config = config_of(given);
    coccl::NcclLoan loan{.comm = nccl, .timeout = coccl::Seconds(config.timeout)};
    const auto table = coccl::load_nccl(text_or(config.nccl_library, ""));
    made = over_nccl(coccl::borrow_nccl(std::move(loan), table), config).release();
  });
}

cocclResult_t cocclLocalCreate(cocclLocal_t* local, int nranks, cocclPlace_t place,
                               const cocclConfig_t* given) {
  return guarded([&] {
    cocclLocal_t& made = required(local, "local");
    if (place != cocclHost && place != cocclCuda) {
      throw ArgumentError("place " + std::to_string(static_cast<int>(place)) +
                          "; accepted: 0 (host), 1 (cuda)");
    }
    const cocclConfig_t config = config_of(given);
    auto hub = std::make_shared<coccl::LocalHub>(nranks, std::vector<int>{},
                                                 coccl::Seconds(config.timeout));
    made = new cocclLocal{std::move(hub), place == cocclCuda ? Place::cuda : Place::host,
                          text_or(config.algorithm, "auto")};
  });
}

cocclResult_t cocclLocalDestroy(cocclLocal_t local) {
  const std::unique_ptr<cocclLocal> last(local);
  return cocclSuccess;
}

cocclResult_t cocclCommInitLocal(cocclComm_t* comm, cocclLocal_t local, int rank) {
  return guarded([&] {
    cocclComm_t& made = required(comm, "comm");
    const cocclLocal& meeting = required(local, "local");
    made = new cocclComm{Communicator(coccl::make_local(meeting.hub, rank)), nullptr, meeting.place,
                         meeting.algorithm};
  });
}

cocclResult_t cocclCommCount(cocclComm_t comm, int* count) {
  return guarded(
      [&] { required(count, "count") = required(comm, "comm").communicator.topology().size(); });
}

cocclResult_t cocclCommUserRank(cocclComm_t comm, int* rank) {
  return guarded(
      [&] { required(rank, "rank") = required(comm, "comm").communicator.topology().rank(); });
}

cocclResult_t cocclCommSentBytes(cocclComm_t comm, unsigned long long* bytes) {
  return guarded(
      [&] { required(bytes, "bytes") = required(comm, "comm").communicator.sent_bytes(); });
}

cocclResult_t cocclCommAbort(cocclComm_t comm, const char* reason) {
  return guarded([&] { required(comm, "comm").communicator.close(text_or(reason, "aborted")); });
}

cocclResult_t cocclCommDestroy(cocclComm_t comm) {
  const std::unique_ptr<cocclComm> last(comm);
  return cocclSuccess;
}

const char* cocclCompressorName(int index) {
  const auto table = coccl::compressors();
  if (index < 0 || static_cast<size_t>(index) >= table.size()) return nullptr;
  return table[static_cast<size_t>(index)].name.data();  // names are literals
}
