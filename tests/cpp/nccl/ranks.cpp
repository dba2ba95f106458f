// One rank of the C API over real NCCL, started once for each rank with RANK and WORLD_SIZE set and
// a folder that all share: a group from a unique id, one over an ncclComm_t, ids that differ.
#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "base/cuda_handles.hpp"
#include "base/nccl_table.hpp"
#include "coccl/coccl.h"

namespace {

constexpr int kNoDevice = 77;  // what ctest takes for a skipped test

int number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) throw std::runtime_error(std::string(variable) + " is not set");
  return std::stoi(text);
}

struct Rank {
  int rank = number("RANK");
  int size = number("WORLD_SIZE");
  std::filesystem::path folder;
};

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what + "; last error: " + cocclGetLastError());
}

// The id that rank 0 makes, handed on through a file.
cocclUniqueId shared_id(const Rank& me, const char* name) {
  const auto path = me.folder / name;
  cocclUniqueId id;
  if (me.rank == 0) {
    expect(cocclGetUniqueId(&id) == cocclSuccess, "cocclGetUniqueId");
    const auto part = path.string() + ".part";
    std::ofstream(part, std::ios::binary).write(id.internal, sizeof id.internal);
    std::filesystem::rename(part, path);
    return id;
  }
  for (int i = 0; i < 3000 && !std::filesystem::exists(path); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::ifstream file(path, std::ios::binary);
  expect(static_cast<bool>(file.read(id.internal, sizeof id.internal)), "reading the id");
  return id;
}

// Sums ones with every compressor and without one. Whole groups of ones come out exactly.
void sum_ones(cocclComm_t comm, int size) {
  constexpr std::size_t count = 512 * 256;
  const std::vector<float> ones(count, 1.0f);
  const auto buffer = coccl::make_device_buffer(count * sizeof(float));
  const auto stream = coccl::make_stream();
  std::vector<const char*> compressors{nullptr};
  for (int i = 0; cocclCompressorName(i) != nullptr; ++i) {
    compressors.push_back(cocclCompressorName(i));
  }
  for (const char* compressor : compressors) {
    const std::string name = compressor == nullptr ? "exact" : compressor;
    check(cudaMemcpyAsync(buffer.get(), ones.data(), count * sizeof(float), cudaMemcpyHostToDevice,
                          stream.get()));
    expect(cocclAllReduce(buffer.get(), buffer.get(), count, cocclFloat32, cocclSum, compressor,
                          comm, stream.get()) == cocclSuccess,
           "cocclAllReduce " + name);
    std::vector<float> out(count);
    check(cudaMemcpyAsync(out.data(), buffer.get(), count * sizeof(float), cudaMemcpyDeviceToHost,
                          stream.get()));
    check(cudaStreamSynchronize(stream.get()));
    for (const float value : out) {
      expect(value == static_cast<float>(size), name + " gave " + std::to_string(value));
    }
  }
  // An exact call of a type and op that no compressor takes.
  const auto integers = reinterpret_cast<long long*>(buffer.get());
  expect(cocclAllReduce(integers, integers, 1024, cocclInt64, cocclMax, nullptr, comm,
                        stream.get()) == cocclSuccess,
         "exact int64");
  check(cudaStreamSynchronize(stream.get()));
}

void refuse_integers(cocclComm_t comm) {
  expect(cocclAllReduce(&comm, &comm, 1, cocclInt64, cocclSum, "int8", comm, nullptr) ==
             cocclInvalidArgument,
         "int64 with a compressor");
  expect(std::strstr(cocclGetLastError(), "int64") != nullptr, "the type is named");
}

void run(const Rank& me) {
  cocclComm_t comm = nullptr;
  expect(cocclCommInitRank(&comm, me.size, shared_id(me, "id"), me.rank, nullptr) == cocclSuccess,
         "cocclCommInitRank");
  sum_ones(comm, me.size);
  refuse_integers(comm);
  expect(cocclCommDestroy(comm) == cocclSuccess, "cocclCommDestroy");

  // Over the caller's own communicator, which is alive afterwards.
  const auto nccl = coccl::load_nccl();
  ncclUniqueId id;
  const cocclUniqueId bytes = shared_id(me, "nccl_id");
  std::memcpy(&id, &bytes, sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t theirs = nullptr;
  check_nccl(*nccl, nccl->comm_init_rank_config(&theirs, me.size, id, me.rank, &config), "init");
  expect(cocclCommInitNccl(&comm, theirs, nullptr) == cocclSuccess, "cocclCommInitNccl");
  int size = 0;
  expect(cocclCommCount(comm, &size) == cocclSuccess && size == me.size, "cocclCommCount");
  sum_ones(comm, me.size);
  expect(cocclCommDestroy(comm) == cocclSuccess, "cocclCommDestroy of a loan");
  check_nccl(*nccl, nccl->comm_user_rank(theirs, &size), "ncclCommUserRank after the loan");
  expect(size == me.rank, "the communicator still knows its rank");
  check_nccl(*nccl, nccl->comm_destroy(theirs), "ncclCommDestroy");

  // Every rank waits in a group of its own until the timeout, which names it.
  cocclConfig_t impatient = COCCL_CONFIG_INITIALIZER;
  impatient.timeout = 3;
  cocclUniqueId own;
  expect(cocclGetUniqueId(&own) == cocclSuccess, "cocclGetUniqueId");
  expect(cocclCommInitRank(&comm, me.size, own, me.rank, &impatient) == cocclTransportError,
         "ids that differ");
  expect(std::strstr(cocclGetLastError(), "3 s") != nullptr, "the timeout is named");
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return kNoDevice;
  }
  try {
    if (argc != 2) throw std::runtime_error("usage: ranks FOLDER");
    Rank me;
    me.folder = argv[1];
    run(me);
    std::printf("rank %d of %d: all right\n", me.rank, me.size);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
