#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "coccl/error.hpp"
#include "transport/external.hpp"
#include "transport/local.hpp"
#include "transport_world.hpp"

using namespace coccl;
using namespace coccl::testing;
using doctest::Contains;

namespace {

struct Seen {
  std::atomic<int> exchanges = 0;
  std::atomic<int> gathers = 0;
  std::atomic<int> wrong = 0;  // messages that must not reach a caller's engine
};

// An engine of a caller's: a local transport.
ExternalCalls engine_of(const std::shared_ptr<Transport>& engine, Seen& seen, bool gathers) {
  ExternalCalls calls;
  calls.exchange = [engine, &seen](std::span<const Send> sends, std::span<const Recv> recvs) {
    ++seen.exchanges;
    const int rank = engine->topology().rank();
    for (const Send& send : sends) seen.wrong += send.peer == rank || send.bytes == 0;
    for (const Recv& recv : recvs) seen.wrong += recv.peer == rank || recv.bytes == 0;
    seen.wrong += sends.empty() && recvs.empty();
    engine->exchange(sends, recvs, Stream{});
  };
  if (gathers) {
    calls.all_gather = [engine, &seen](const void* send, void* recv, std::size_t bytes) {
      ++seen.gathers;
      engine->all_gather(send, recv, bytes, Stream{});
    };
  }
  return calls;
}

void ignore(std::span<const Send>, std::span<const Recv>) {}

}  // namespace

TEST_CASE("a caller's engine moves all but messages to oneself and of no bytes") {
  for (const int size : {1, 2, 3, 6}) {
    for (const bool gathers : {false, true}) {
      CAPTURE(size);
      CAPTURE(gathers);
      const auto hub = std::make_shared<LocalHub>(size);
      Seen seen;
      std::atomic<int> wrong = 0;
      const auto errors = run_ranks(size, [&](int rank) {
        const std::shared_ptr<Transport> engine = make_local(hub, rank);
        const auto transport =
            make_external(Topology(rank, size), engine_of(engine, seen, gathers));
        for (int round = 0; round < 50; ++round) {
          if (!exchange_round(*transport, round)) ++wrong;
          if (!gather_round(*transport, static_cast<std::size_t>(round * 7), round % 2 == 0)) {
            ++wrong;
          }
        }
        if (transport->sent_bytes() != engine->sent_bytes()) ++wrong;
      });
      CHECK(all_returned(errors));
      CHECK(wrong == 0);
      CHECK(seen.wrong == 0);
      CHECK((seen.exchanges > 0) == (size > 1));
      CHECK(seen.gathers == (gathers && size > 1 ? 49 * size : 0));
    }
  }
}

TEST_CASE("what a caller's engine throws closes the transport and goes on unchanged") {
  struct Odd : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  std::byte data[4]{};
  const std::array sends{Send{data, 4, 1}};
  const auto transport =
      make_external(Topology(0, 2), {[](auto, auto) { throw Odd("no route"); }, {}});
  CHECK_THROWS_WITH_AS(transport->exchange(sends, {}, Stream{}), "no route", Odd);
  CHECK_THROWS_WITH_AS(transport->exchange(sends, {}, Stream{}), "no route", TransportError);

  const auto picky =
      make_external(Topology(0, 2), {ignore, [](auto...) { throw ArgumentError("bad buffer"); }});
  std::byte all[8]{};
  CHECK_THROWS_WITH_AS(picky->all_gather(data, all, 4, Stream{}), "bad buffer", ArgumentError);
  CHECK_THROWS_WITH_AS(picky->all_gather(data, all, 4, Stream{}), "bad buffer", TransportError);

  const auto wild = make_external(Topology(0, 2), {[](auto, auto) { throw 3; }, {}});
  CHECK_THROWS_AS(wild->exchange(sends, {}, Stream{}), int);
  CHECK_THROWS_AS(wild->exchange(sends, {}, Stream{}), TransportError);
}

TEST_CASE("a closed external transport throws its reason and calls no engine") {
  int calls = 0;
  const auto transport = make_external(Topology(0, 2), {[&](auto, auto) { ++calls; }, {}});
  transport->close("stopped by the user");
  std::byte data[4]{};
  CHECK_THROWS_WITH_AS(transport->exchange(std::array{Send{data, 4, 1}}, {}, Stream{}),
                       "stopped by the user", TransportError);
  CHECK(calls == 0);
}

TEST_CASE("an external transport refuses device memory and an empty engine, and goes on") {
  CHECK_THROWS_WITH_AS(make_external(Topology(0, 2), {}), Contains("exchange"), ArgumentError);
  const auto transport = make_external(Topology(0, 2), {ignore, [](auto...) {}});
  std::byte data[8]{};
  CHECK_THROWS_WITH_AS(transport->exchange(std::array{Send{data, 4, 1}}, {}, {Place::cuda}),
                       Contains("device memory"), ArgumentError);
  CHECK_THROWS_WITH_AS(transport->all_gather(data, data, 4, {Place::cuda}),
                       Contains("device memory"), ArgumentError);
  CHECK_NOTHROW(transport->exchange(std::array{Send{data, 4, 1}}, {}, Stream{}));
}

TEST_CASE("an external message to oneself must have its counterpart") {
  std::byte data[8]{};
  const auto transport = make_external(Topology(0, 2), {ignore, {}});
  CHECK_THROWS_WITH_AS(
      transport->exchange(std::array{Send{data, 8, 0}}, std::array{Recv{data, 4, 0}}, Stream{}),
      Contains("8 bytes to itself, where it expects 4"), TransportError);
  const auto alone = make_external(Topology(0, 2), {ignore, {}});
  CHECK_THROWS_WITH_AS(alone->exchange(std::array{Send{data, 8, 0}}, {}, Stream{}),
                       Contains("expects 0"), TransportError);
}
