#pragma once

#include <memory>
#include <string>

#if COCCL_HAS_CUDA
#include <nccl.h>

#include <functional>
#include <string_view>
#endif

namespace coccl {

// NCCL's functions, found at run time. A process must hold one libnccl, so the library that is
// already there comes first.
struct NcclTable;

// Looks for a libnccl.so in the process, then at `library` unless that is empty, then where the
// system keeps libnccl.so.2. UnsupportedError if there is none, if it is older than 2.28.0 or if
// coccl was built without CUDA. The library stays in the process.
std::shared_ptr<const NcclTable> load_nccl(const std::string& library = {});

#if COCCL_HAS_CUDA
struct NcclTable {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&ncclCommFinalize) comm_finalize;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclCommCount) comm_count;
  decltype(&ncclCommUserRank) comm_user_rank;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) recv;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;

  int version;       // 22809 is 2.28.9
  std::string path;  // of the library
};

// The table of a library at `path` whose symbols `find` knows. UnsupportedError as above.
std::shared_ptr<const NcclTable> read_nccl(const std::string& path,
                                           const std::function<void*(const char*)>& find);

// TransportError `ncclSend: invalid argument (what NCCL says of it)` unless `result` is a success
// or still in progress.
void check_nccl(const NcclTable& nccl, ncclResult_t result, std::string_view call,
                ncclComm_t comm = nullptr);
#endif

}  // namespace coccl
