#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/nccl_table.hpp"
#include "coccl/error.hpp"
#include "transport/nccl.hpp"

using namespace coccl;
using doctest::Contains;

#if COCCL_HAS_CUDA
// An ncclComm_t of the NCCL that these tests play.
struct ncclComm {
  int rank = 0;
  int size = 0;
};

namespace {

// What that NCCL does next, and what it was asked for. It needs no device.
struct Played {
  ncclComm comm;
  std::vector<std::string> calls;
  int busy_looks = 0;  // how often the communicator is still in progress; -1: for ever
  ncclResult_t state = ncclSuccess;
  ncclResult_t send_result = ncclSuccess;
  int version = 22809;
};

Played played;

ncclResult_t note(const std::string& call) {
  played.calls.push_back(call);
  return played.busy_looks == 0 ? ncclSuccess : ncclInProgress;
}

std::string text(const void* pointer) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(pointer));
}

ncclResult_t get_version(int* version) {
  *version = played.version;
  return ncclSuccess;
}
const char* get_error_string(ncclResult_t) { return "unhandled weather"; }
const char* get_last_error(ncclComm_t) { return "the cable is wet"; }

std::shared_ptr<NcclTable> played_nccl() {
  played = Played{};
  auto table = std::make_shared<NcclTable>();
  table->get_version = get_version;
  table->get_error_string = get_error_string;
  table->get_last_error = get_last_error;
  table->get_unique_id = [](ncclUniqueId*) { return ncclSuccess; };
  table->comm_init_rank_config = [](ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
    played.comm = {rank, size};
    *comm = &played.comm;
    return note("init " + std::string(id.internal) + " blocking " +
                std::to_string(config->blocking));
  };
  table->comm_finalize = [](ncclComm_t) { return note("finalize"); };
  table->comm_destroy = [](ncclComm_t) { return note("destroy"); };
  table->comm_abort = [](ncclComm_t) { return note("abort"); };
  table->comm_get_async_error = [](ncclComm_t, ncclResult_t* state) {
    *state = played.busy_looks == 0 ? played.state : ncclInProgress;
    if (played.busy_looks > 0) --played.busy_looks;
    return ncclSuccess;
  };
  table->comm_count = [](const ncclComm_t comm, int* size) {
    *size = comm->size;
    return ncclSuccess;
  };
  table->comm_user_rank = [](const ncclComm_t comm, int* rank) {
    *rank = comm->rank;
    return ncclSuccess;
  };
  table->group_start = [] { return note("start"); };
  table->group_end = [] { return note("end"); };
  table->send = [](const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t,
                   cudaStream_t) {
    note("send " + text(data) + " " + std::to_string(count) + " " + std::to_string(type) + " to " +
         std::to_string(peer));
    return played.send_result;
  };
  table->recv = [](void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t,
                   cudaStream_t) {
    return note("recv " + text(data) + " " + std::to_string(count) + " " + std::to_string(type) +
                " from " + std::to_string(peer));
  };
  table->all_reduce = [](const void* in, void* out, std::size_t count, ncclDataType_t type,
                         ncclRedOp_t op, ncclComm_t, cudaStream_t) {
    return note("all_reduce " + text(in) + " " + text(out) + " " + std::to_string(count) + " " +
                std::to_string(type) + " " + std::to_string(op));
  };
  table->reduce_scatter = [](const void* in, void* out, std::size_t count, ncclDataType_t type,
                             ncclRedOp_t op, ncclComm_t, cudaStream_t) {
    return note("reduce_scatter " + text(in) + " " + text(out) + " " + std::to_string(count) + " " +
                std::to_string(type) + " " + std::to_string(op));
  };
  table->all_gather = [](const void* in, void* out, std::size_t count, ncclDataType_t type,
                         ncclComm_t, cudaStream_t) {
    return note("all_gather " + text(in) + " " + text(out) + " " + std::to_string(count) + " " +
                std::to_string(type));
  };
  return table;
}

NcclGroup group_of(int rank, int size, Seconds timeout = Seconds(60)) {
  return {.id = {'i', 'd'}, .rank = rank, .size = size, .timeout = timeout};
}

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

using Calls = std::vector<std::string>;
constexpr Stream kDevice{Place::cuda, nullptr};
const std::array kSends{Send{reinterpret_cast<void*>(16), 100, 1}};

}  // namespace

TEST_CASE("an NCCL group is made without blocking, waited for, and ended in order") {
  const auto nccl = played_nccl();
  played.busy_looks = 5;
  {
    const auto transport = make_nccl(group_of(1, 3), nccl);
    CHECK(played.busy_looks == 0);
    CHECK(transport->topology().rank() == 1);
    CHECK(transport->topology().size() == 3);
  }
  CHECK(played.calls == Calls{"init id blocking 0", "finalize", "destroy"});
}

TEST_CASE("a group that does not come together names rank, size and seconds, and is aborted") {
  const auto nccl = played_nccl();
  played.busy_looks = -1;
  CHECK_THROWS_WITH_AS(make_nccl(group_of(1, 3, Seconds(0.02)), nccl),
                       "ncclCommInitRankConfig of rank 1 in a group of size 3: not done after 0.02 "
                       "s, the timeout",
                       TransportError);
  CHECK(played.calls == Calls{"init id blocking 0", "abort"});
}

TEST_CASE("a group that NCCL refuses carries NCCL's words") {
  const auto nccl = played_nccl();
  played.busy_looks = 2;
  played.state = ncclRemoteError;
  CHECK_THROWS_WITH_AS(make_nccl(group_of(0, 2), nccl),
                       Contains("size 2: unhandled weather (the cable is wet)"), TransportError);
  CHECK(played.calls.back() == "abort");
}

TEST_CASE("an exchange is one NCCL group of bytes") {
  const auto nccl = played_nccl();
  const auto transport = make_nccl(group_of(0, 3), nccl);
  played.calls.clear();
  const std::array sends{Send{at(16), 100, 1}, Send{at(32), 0, 1}, Send{at(48), 7, 0}};
  const std::array recvs{Recv{at(64), 9, 2}, Recv{at(80), 7, 0}};
  transport->exchange(sends, recvs, kDevice);
  CHECK(played.calls == Calls{"start", "send 16 100 0 to 1", "send 48 7 0 to 0",
                              "recv 64 9 0 from 2", "recv 80 7 0 from 0", "end"});
  CHECK(transport->sent_bytes() == 100);
  played.calls.clear();
  transport->exchange({}, {}, kDevice);
  CHECK(played.calls.empty());
}

TEST_CASE("NCCL gathers and reduces by its own collectives") {
  const auto nccl = played_nccl();
  const auto transport = make_nccl(group_of(0, 3), nccl);
  played.calls.clear();
  transport->all_gather(at(16), at(64), 50, kDevice);
  CHECK(transport->sent_bytes() == 100);
  transport->exact_all_reduce({at(16), at(64), 5, DataType::float16}, Op::max, kDevice);
  transport->exact_reduce_scatter({at(16), at(64), 6, DataType::int64}, Op::avg, kDevice);
  transport->exact_all_gather({at(16), at(64), 7, DataType::bfloat16}, kDevice);
  CHECK(played.calls == Calls{"all_gather 16 64 50 0", "all_reduce 16 64 5 6 2",
                              "reduce_scatter 16 64 6 4 4", "all_gather 16 64 7 9"});
  CHECK(transport->sent_bytes() == 100);
  played.calls.clear();
  transport->exact_all_reduce({nullptr, nullptr, 0, DataType::float32}, Op::sum, kDevice);
  CHECK(played.calls.empty());
}

TEST_CASE("what NCCL cannot take is refused by its value and the group goes on") {
  const auto nccl = played_nccl();
  const auto transport = make_nccl(group_of(0, 2), nccl);
  const Buffers buffers{at(16), at(64), 5, DataType::float32};
  CHECK_THROWS_WITH_AS(transport->exchange(kSends, {}, Stream{}), Contains("host memory"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS(transport->all_gather(at(16), at(64), 4, Stream{}), Contains("host memory"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS(transport->exact_all_reduce(buffers, static_cast<Op>(9), kDevice),
                       Contains("op 9"), ArgumentError);
  CHECK_THROWS_WITH_AS(
      transport->exact_all_gather({at(16), at(64), 5, static_cast<DataType>(77)}, kDevice),
      Contains("77"), ArgumentError);
  CHECK_THROWS_WITH_AS(
      transport->exact_all_reduce({at(16), nullptr, 5, DataType::float32}, Op::sum, kDevice),
      Contains("output"), ArgumentError);
  CHECK_NOTHROW(transport->exchange(kSends, {}, kDevice));
  CHECK_THROWS_WITH_AS(make_nccl(group_of(2, 2), nccl), Contains("rank 2"), ArgumentError);
  CHECK_THROWS_WITH_AS(make_nccl(group_of(0, 2, Seconds(0)), nccl), Contains("0 s"), ArgumentError);
  CHECK_THROWS_WITH_AS(make_nccl(group_of(0, 2), nullptr), Contains("null"), ArgumentError);
  CHECK_THROWS_WITH_AS(borrow_nccl({.comm = nullptr}, nccl), Contains("null"), ArgumentError);
}

TEST_CASE("a call in progress is waited for, and no longer than the timeout") {
  const auto nccl = played_nccl();
  const auto transport = make_nccl(group_of(0, 2, Seconds(2)), nccl);
  played.busy_looks = 20;
  transport->exchange(kSends, {}, kDevice);
  CHECK(played.busy_looks == 0);
  played.busy_looks = -1;
  CHECK_THROWS_WITH_AS(transport->exchange(kSends, {}, kDevice),
                       "exchange: not done after 2 s, the timeout", TransportError);
  CHECK(played.calls.back() == "abort");
}

TEST_CASE("a failed send still ends its NCCL group, then the transport closes") {
  const auto nccl = played_nccl();
  const auto transport = make_nccl(group_of(0, 2), nccl);
  played.calls.clear();
  played.send_result = ncclInvalidArgument;
  const std::string words = "exchange: unhandled weather (the cable is wet)";
  CHECK_THROWS_WITH_AS(transport->exchange(kSends, {}, kDevice), words.c_str(), TransportError);
  CHECK(played.calls == Calls{"start", "send 16 100 0 to 1", "end", "abort"});
  CHECK_THROWS_WITH_AS(transport->exchange(kSends, {}, kDevice), words.c_str(), TransportError);
  CHECK(played.calls.size() == 4);
}

TEST_CASE("an error that NCCL met between calls surfaces at the next one") {
  const auto nccl = played_nccl();
  const auto transport = make_nccl(group_of(0, 2), nccl);
  played.calls.clear();
  played.state = ncclRemoteError;
  CHECK_THROWS_WITH_AS(
      transport->exact_all_reduce({at(16), at(64), 5, DataType::float32}, Op::sum, kDevice),
      Contains("the cable is wet"), TransportError);
  CHECK(played.calls == Calls{"abort"});
}

TEST_CASE("closing aborts an NCCL group once and gives later calls the reason") {
  const auto nccl = played_nccl();
  {
    const auto transport = make_nccl(group_of(0, 2), nccl);
    transport->close("a peer has died");
    transport->close("again");
    CHECK_THROWS_WITH_AS(transport->exchange(kSends, {}, kDevice), "a peer has died",
                         TransportError);
  }
  CHECK(played.calls == Calls{"init id blocking 0", "abort"});
}

TEST_CASE("closing wakes a call that NCCL does not finish") {
  const auto nccl = played_nccl();
  const auto transport = make_nccl(group_of(0, 2), nccl);
  played.busy_looks = -1;
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    transport->close("stopped");
  });
  CHECK_THROWS_WITH_AS(transport->exchange(kSends, {}, kDevice), "stopped", TransportError);
  closer.join();
}

TEST_CASE("a borrowed communicator is used, but neither aborted nor destroyed") {
  const auto nccl = played_nccl();
  played.comm = {2, 4};
  {
    const auto transport = borrow_nccl({.comm = &played.comm, .nodes = {0, 0, 1, 1}}, nccl);
    CHECK(transport->topology().rank() == 2);
    CHECK(transport->topology().nodes() == 2);
    transport->exchange(kSends, {}, kDevice);
    transport->close("done");
    CHECK_THROWS_WITH_AS(transport->exchange(kSends, {}, kDevice), "done", TransportError);
  }
  CHECK(played.calls == Calls{"start", "send 16 100 0 to 1", "end"});
}

TEST_CASE("an NCCL that is too old or lacks a function is refused by version and path") {
  played = Played{};
  const auto find = [](const char* name) -> void* {
    const std::string wanted = name;
    if (wanted == "ncclGetVersion") return reinterpret_cast<void*>(get_version);
    if (wanted == "ncclGetErrorString") return reinterpret_cast<void*>(get_error_string);
    if (wanted == "ncclGetLastError") return reinterpret_cast<void*>(get_last_error);
    return nullptr;
  };
  played.version = 22707;
  CHECK_THROWS_WITH_AS(read_nccl("/opt/libnccl.so.2", find),
                       "NCCL 2.27.7 at /opt/libnccl.so.2 is too old; coccl needs 2.28.0 or newer",
                       UnsupportedError);
  played.version = 22800;
  CHECK_THROWS_WITH_AS(read_nccl("/opt/libnccl.so.2", find),
                       Contains("/opt/libnccl.so.2 has no ncclGetUniqueId"), UnsupportedError);
}

TEST_CASE("NCCL is found, or the error says where it was looked for") {
  try {
    const NcclVersion version = nccl_version("/nowhere/libnccl.so.2");
    CHECK(version.number >= 22800);
    CHECK(version.path.find("libnccl") != std::string::npos);
  } catch (const UnsupportedError& error) {
    const std::string words = error.what();
    CAPTURE(words);
    CHECK(words.find("this process (none loaded); /nowhere/libnccl.so.2: ") != std::string::npos);
    CHECK(words.find("; libnccl.so.2: ") != std::string::npos);
  }
}

#else

TEST_CASE("NCCL without CUDA is refused") {
  CHECK_THROWS_WITH_AS(load_nccl(), Contains("built without CUDA"), UnsupportedError);
  CHECK_THROWS_WITH_AS(nccl_version(), Contains("built without CUDA"), UnsupportedError);
  CHECK_THROWS_WITH_AS(nccl_unique_id(), Contains("built without CUDA"), UnsupportedError);
  CHECK_THROWS_WITH_AS(make_nccl({}, nullptr), Contains("built without CUDA"), UnsupportedError);
  CHECK_THROWS_WITH_AS(borrow_nccl({}, nullptr), Contains("built without CUDA"), UnsupportedError);
}

#endif
