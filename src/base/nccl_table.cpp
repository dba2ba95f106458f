#include "base/nccl_table.hpp"

#include "coccl/error.hpp"

#if COCCL_HAS_CUDA
#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <utility>
#endif

namespace coccl {

#if COCCL_HAS_CUDA
namespace {

constexpr int kOldest = NCCL_VERSION(2, 28, 0);
constexpr const char* kSoname = "libnccl.so.2";

struct LibraryCloser {
  void operator()(void* library) const noexcept { dlclose(library); }
};
using Library = std::unique_ptr<void, LibraryCloser>;

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// The path of a loaded object whose file is a libnccl.so, under whatever soname.
std::string loaded_path() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        const std::filesystem::path path(object->dlpi_name);
        if (!path.filename().string().starts_with("libnccl.so")) return 0;
        *static_cast<std::string*>(result) = path;
        return 1;
      },
      &found);
  return found;
}

// Opens NCCL, or notes where it was not. What it opens is never unloaded: tables hold its
// functions, and NCCL leaves threads and thread-local destructors behind.
class Search {
 public:
  Library in_process() {
    if (Library library{dlopen(kSoname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)}) return library;
    const std::string path = loaded_path();
    if (!path.empty()) {
      if (Library library{dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)})
        return library;
    }
    tried_ += "this process (none loaded)";
    return nullptr;
  }

  Library at(const std::string& path) {
    Library library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
    if (!library) tried_ += std::string("; ") + dlerror();  // it opens with the path
    return library;
  }

  const std::string& tried() const { return tried_; }

 private:
  std::string tried_;
};

Library open_nccl(const std::string& path) {
  Search search;
  Library library = search.in_process();
  if (!library && !path.empty()) library = search.at(path);
  if (!library) library = search.at(kSoname);
  if (!library) {
    throw UnsupportedError("NCCL was not found; coccl needs " + version_text(kOldest) +
                           " or newer. Looked in: " + search.tried());
  }
  return library;
}

std::string path_of(const Library& library) {
  link_map* map = nullptr;
  if (dlinfo(library.get(), RTLD_DI_LINKMAP, &map) != 0) return kSoname;
  return map->l_name;
}

}  // namespace

std::shared_ptr<const NcclTable> load_nccl(const std::string& library) {
  const Library nccl = open_nccl(library);
  return read_nccl(path_of(nccl), [&](const char* name) { return dlsym(nccl.get(), name); });
}

std::shared_ptr<const NcclTable> read_nccl(const std::string& path,
                                           const std::function<void*(const char*)>& find) {
  auto table = std::make_shared<NcclTable>();
  table->path = path;
  const auto fill = [&]<class Function>(const char* name, Function& function) {
    function = reinterpret_cast<Function>(find(name));
    if (function == nullptr) {
      throw UnsupportedError("NCCL at " + path + " has no " + name + "; coccl needs " +
                             version_text(kOldest) + " or newer");
    }
  };
  // First of all, since an older library may lack what follows.
  fill("ncclGetVersion", table->get_version);
  fill("ncclGetErrorString", table->get_error_string);
  fill("ncclGetLastError", table->get_last_error);
  check_nccl(*table, table->get_version(&table->version), "ncclGetVersion");
  if (table->version < kOldest) {
    throw UnsupportedError("NCCL " + version_text(table->version) + " at " + path +
                           " is too old; coccl needs " + version_text(kOldest) + " or newer");
  }
  fill("ncclGetUniqueId", table->get_unique_id);
  fill("ncclCommInitRankConfig", table->comm_init_rank_config);
  fill("ncclCommFinalize", table->comm_finalize);
  fill("ncclCommDestroy", table->comm_destroy);
  fill("ncclCommAbort", table->comm_abort);
  fill("ncclCommGetAsyncError", table->comm_get_async_error);
  fill("ncclCommCount", table->comm_count);
  fill("ncclCommUserRank", table->comm_user_rank);
  fill("ncclGroupStart", table->group_start);
  fill("ncclGroupEnd", table->group_end);
  fill("ncclSend", table->send);
  fill("ncclRecv", table->recv);
  fill("ncclAllReduce", table->all_reduce);
  fill("ncclReduceScatter", table->reduce_scatter);
  fill("ncclAllGather", table->all_gather);
  return table;
}

void check_nccl(const NcclTable& nccl, ncclResult_t result, std::string_view call,
                ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  std::string message = std::string(call) + ": " + nccl.get_error_string(result);
  const char* detail = nccl.get_last_error(comm);
  if (detail != nullptr && *detail != '\0') message += std::string(" (") + detail + ")";
  throw TransportError(message);
}

#else

std::shared_ptr<const NcclTable> load_nccl(const std::string&) {
  throw UnsupportedError("NCCL: this coccl was built without CUDA");
}

#endif

}  // namespace coccl
