#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "coccl/coccl.h"

namespace {

// Runs body(comm, rank) on `size` ranks over host memory and returns what each returned.
template <class Body>
std::vector<cocclResult_t> on_ranks(int size, const Body& body) {
  cocclLocal_t local = nullptr;
  cocclConfig_t config = COCCL_CONFIG_INITIALIZER;
  config.timeout = 10;
  REQUIRE(cocclLocalCreate(&local, size, cocclHost, &config) == cocclSuccess);
  std::vector<cocclResult_t> results(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        cocclComm_t comm = nullptr;
        auto& result = results[static_cast<std::size_t>(rank)];
        result = cocclCommInitLocal(&comm, local, rank);
        if (result == cocclSuccess) result = body(comm, rank);
        cocclCommDestroy(comm);
      });
    }
  }
  cocclLocalDestroy(local);
  return results;
}

bool last_error_has(const std::string& text) {
  return std::string(cocclGetLastError()).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("the C API sums ones on every compressor") {
  constexpr int size = 3;
  constexpr std::size_t count = 1030;
  for (int i = 0; cocclCompressorName(i) != nullptr; ++i) {
    const char* compressor = cocclCompressorName(i);
    CAPTURE(compressor);
    std::array<std::vector<float>, size> out;
    const auto results = on_ranks(size, [&](cocclComm_t comm, int rank) {
      const std::vector<float> ones(count, 1.0f);
      auto& mine = out[static_cast<std::size_t>(rank)];
      mine.assign(count, 0.0f);
      return cocclAllReduce(ones.data(), mine.data(), count, cocclFloat32, cocclSum, compressor,
                            comm, nullptr);
    });
    for (const cocclResult_t result : results) CHECK(result == cocclSuccess);
    CHECK(out[0] == out[1]);
    CHECK(out[0] == out[2]);
    for (const float value : out[0]) CHECK(std::abs(value - 3.0f) < 0.5f);
  }
}

TEST_CASE("reduce_scatter and all_gather together are all_reduce, exactly without a compressor") {
  constexpr int size = 4;
  constexpr std::size_t part = 77;
  const auto results = on_ranks(size, [&](cocclComm_t comm, int rank) {
    std::vector<float> x(size * part), mine(part), all(size * part);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * (rank + 1u));
    auto result = cocclReduceScatter(x.data(), mine.data(), part, cocclFloat32, cocclSum, nullptr,
                                     comm, nullptr);
    if (result != cocclSuccess) return result;
    result = cocclAllGather(mine.data(), all.data(), part, cocclFloat32, nullptr, comm, nullptr);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] != static_cast<float>(i * 10)) return cocclInternalError;
    }
    return result;
  });
  for (const cocclResult_t result : results) CHECK(result == cocclSuccess);
}

TEST_CASE("a rank and a size are what the group was made with") {
  const auto results = on_ranks(3, [&](cocclComm_t comm, int rank) {
    int size = 0, asked = -1;
    unsigned long long sent = 1;
    if (cocclCommCount(comm, &size) != cocclSuccess || size != 3) return cocclInternalError;
    if (cocclCommUserRank(comm, &asked) != cocclSuccess || asked != rank) return cocclInternalError;
    if (cocclCommSentBytes(comm, &sent) != cocclSuccess || sent != 0) return cocclInternalError;
    return cocclSuccess;
  });
  for (const cocclResult_t result : results) CHECK(result == cocclSuccess);
}

TEST_CASE("bad input on one rank is named there and wakes the others") {
  float x[8] = {};
  struct Bad {
    const char* named;
    cocclDataType_t type;
    cocclRedOp_t op;
    const char* compressor;
    const void* input;
    std::size_t count;
  };
  const Bad cases[] = {
      {"unknown compressor \"int3x\"; known: ", cocclFloat32, cocclSum, "int3x", x, 8},
      {"int64 (4); accepted: float32", cocclInt64, cocclSum, "int8", x, 8},
      {"unknown (77); accepted: float32", static_cast<cocclDataType_t>(77), cocclSum, "int8", x, 8},
      {"max (2); accepted: sum, avg", cocclFloat32, cocclMax, "int8", x, 8},
      {"null input", cocclFloat32, cocclSum, "int8", nullptr, 8},
      {"accepted: 0 to ", cocclFloat32, cocclSum, "int8", x, ~std::size_t{0}},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.named);
    const auto results = on_ranks(2, [&](cocclComm_t comm, int rank) {
      float y[8] = {}, out[8] = {};
      if (rank == 1) {
        const auto result =
            cocclAllReduce(y, out, 8, cocclFloat32, cocclSum, "int8", comm, nullptr);
        return result == cocclTransportError && last_error_has("accepted") ? cocclSuccess
               : result == cocclTransportError && last_error_has("known")  ? cocclSuccess
               : result == cocclTransportError && last_error_has("null")   ? cocclSuccess
                                                                           : cocclInternalError;
      }
      const auto result = cocclAllReduce(bad.input, out, bad.count, bad.type, bad.op,
                                         bad.compressor, comm, nullptr);
      return result == cocclInvalidArgument && last_error_has(bad.named) ? cocclSuccess
                                                                         : cocclInternalError;
    });
    CHECK(results[0] == cocclSuccess);
    CHECK(results[1] == cocclSuccess);
  }
}

TEST_CASE("groups that cannot be made are refused with the value") {
  cocclLocal_t local = nullptr;
  CHECK(cocclLocalCreate(nullptr, 2, cocclHost, nullptr) == cocclInvalidArgument);
  CHECK(last_error_has("local is null"));
  CHECK(cocclLocalCreate(&local, 0, cocclHost, nullptr) == cocclInvalidArgument);
  CHECK(last_error_has("0"));
  CHECK(cocclLocalCreate(&local, 2, static_cast<cocclPlace_t>(9), nullptr) == cocclInvalidArgument);
  CHECK(last_error_has("place 9"));
  cocclConfig_t config = COCCL_CONFIG_INITIALIZER;
  config.size = 1;
  CHECK(cocclLocalCreate(&local, 2, cocclHost, &config) == cocclInvalidArgument);
  REQUIRE(cocclLocalCreate(&local, 2, cocclHost, nullptr) == cocclSuccess);
  cocclComm_t comm = nullptr;
  CHECK(cocclCommInitLocal(&comm, local, 2) == cocclInvalidArgument);
  CHECK(last_error_has("2"));
  CHECK(cocclCommInitLocal(&comm, local, -1) == cocclInvalidArgument);
  CHECK(last_error_has("-1"));
  CHECK(cocclAllReduce(nullptr, nullptr, 0, cocclFloat32, cocclSum, "int8", nullptr, nullptr) ==
        cocclInvalidArgument);
  CHECK(last_error_has("comm is null"));
  CHECK(cocclLocalDestroy(local) == cocclSuccess);
}

TEST_CASE("an aborted group tells every rank why") {
  const auto results = on_ranks(2, [&](cocclComm_t comm, int rank) {
    if (rank == 1) return cocclCommAbort(comm, "operator pressed stop");
    float x[4] = {};
    const auto result = cocclAllReduce(x, x, 4, cocclFloat32, cocclSum, "int8", comm, nullptr);
    return result == cocclTransportError && last_error_has("operator pressed stop")
               ? cocclSuccess
               : cocclInternalError;
  });
  CHECK(results[0] == cocclSuccess);
  CHECK(results[1] == cocclSuccess);
}

TEST_CASE("every result has a text") {
  for (const cocclResult_t result : {cocclSuccess, cocclCudaError, cocclInternalError,
                                     cocclInvalidArgument, cocclUnsupported, cocclTransportError}) {
    CHECK(std::string(cocclGetErrorString(result)) != "unknown result");
  }
  CHECK(std::string(cocclGetErrorString(static_cast<cocclResult_t>(99))) == "unknown result");
  CHECK(std::string(cocclGetVersion()).find('.') != std::string::npos);
}
