#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "coccl/error.hpp"
#include "transport/local.hpp"
#include "transport/nodes.hpp"
#include "transport_world.hpp"

using namespace coccl;
using namespace coccl::testing;
using doctest::Contains;

namespace {

constexpr Place kHost = Place::host;

std::shared_ptr<LocalHub> make_hub(int size, Seconds timeout = Seconds(60)) {
  return std::make_shared<LocalHub>(size, std::vector<int>{}, timeout);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void receive_one(Transport& transport, int from, std::size_t bytes = 8) {
  std::vector<std::byte> data(bytes);
  transport.exchange({}, std::array{Recv{data.data(), bytes, from}}, {kHost});
}

void send_one(Transport& transport, int to, std::size_t bytes = 8) {
  const std::vector<std::byte> data(bytes);
  transport.exchange(std::array{Send{data.data(), bytes, to}}, {}, {kHost});
}

}  // namespace

TEST_CASE("random messages arrive whole, in order and nowhere else") {
  for (int size = 1; size <= 8; ++size) {
    CAPTURE(size);
    const auto hub = make_hub(size);
    std::atomic<int> wrong = 0;
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(size)), expected(sent);
    const auto errors = run_ranks(size, [&](int rank) {
      const auto transport = make_local(hub, rank);
      for (int round = 0; round < 200; ++round) {
        if (!exchange_round(*transport, round)) ++wrong;
        expected[rank] += sent_in_round(rank, size, round);
      }
      sent[rank] = transport->sent_bytes();
    });
    CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(size)));
    CHECK(wrong == 0);
    CHECK(sent == expected);
  }
}

TEST_CASE("all ranks gather the same bytes in rank order, in place or not") {
  for (const int size : {1, 2, 3, 5, 8}) {
    for (const std::size_t bytes : {0, 1, 7, 1000, 70001}) {
      CAPTURE(size);
      CAPTURE(bytes);
      const auto hub = make_hub(size);
      std::atomic<int> wrong = 0;
      const auto errors = run_ranks(size, [&](int rank) {
        const auto transport = make_local(hub, rank);
        for (const bool in_place : {false, true}) {
          if (!gather_round(*transport, bytes, in_place)) ++wrong;
        }
        if (transport->sent_bytes() != 2 * bytes * static_cast<std::size_t>(size - 1)) ++wrong;
      });
      CHECK(all_returned(errors));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("ranks that arrive in any order meet") {
  const auto hub = make_hub(4);
  const auto errors = run_ranks(4, [&](int rank) {
    std::this_thread::sleep_for(std::chrono::milliseconds(15 * ((rank * 3) % 4)));
    const auto transport = make_local(hub, rank);
    for (int round = 0; round < 8; ++round) {
      if ((round + rank) % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (!exchange_round(*transport, round)) throw TransportError("wrong bytes");
    }
  });
  CHECK(all_returned(errors));
}

TEST_CASE("ranks learn their nodes from each other") {
  const auto hub = make_hub(5);
  std::vector<std::vector<int>> nodes(5);
  const auto errors = run_ranks(5, [&](int rank) {
    const auto transport = make_local(hub, rank);
    nodes[rank] = detect_nodes(*transport, std::array<std::uint64_t, 5>{9, 4, 4, 9, 1}[rank]);
  });
  CHECK(all_returned(errors));
  for (const auto& seen : nodes) CHECK(seen == std::vector{0, 1, 1, 0, 2});
}

TEST_CASE("a hub hands its nodes to every rank") {
  const auto hub = std::make_shared<LocalHub>(3, std::vector<int>{5, 5, 2});
  CHECK(make_local(hub, 2)->topology().node_of(2) == 1);
  CHECK(make_local(hub, 0)->topology().nodes() == 2);
}

TEST_CASE("sizes that differ fail on both ranks and name both counts") {
  const auto hub = make_hub(3);
  const auto errors = run_ranks(3, [&](int rank) {
    const auto transport = make_local(hub, rank);
    if (rank == 0) send_one(*transport, 1, 800);
    if (rank == 1) receive_one(*transport, 0, 400);
    if (rank == 2) receive_one(*transport, 1);  // an onlooker, who would wait
  });
  for (const std::string& error : errors) {
    CAPTURE(error);
    CHECK(contains(error, "rank 0"));
    CHECK(contains(error, "800 bytes"));
    CHECK(contains(error, "rank 1"));
    CHECK(contains(error, "400 bytes"));
  }
}

TEST_CASE("a message to oneself must fit, too") {
  const auto transport = make_local(make_hub(1), 0);
  std::array<std::byte, 8> from{}, to{};
  CHECK_THROWS_WITH_AS(transport->exchange(std::array{Send{from.data(), 8, 0}},
                                           std::array{Recv{to.data(), 4, 0}}, {kHost}),
                       Contains("8 bytes"), TransportError);
}

TEST_CASE("closing by one rank wakes all others with its reason, and stays") {
  const auto hub = make_hub(4);
  std::vector<std::string> again(4);
  const auto start = std::chrono::steady_clock::now();
  const auto errors = run_ranks(4, [&](int rank) {
    const auto transport = make_local(hub, rank);
    if (rank == 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      transport->close("rank 3 is out of memory");
      transport->close("a later reason");
    }
    try {
      if (rank == 0) send_one(*transport, 3);
      if (rank != 0) receive_one(*transport, (rank + 1) % 4);
    } catch (const TransportError& error) {
      try {
        send_one(*transport, (rank + 1) % 4);
      } catch (const TransportError& later) {
        again[rank] = later.what();
      }
      throw;
    }
  });
  CHECK(errors == std::vector<std::string>(4, "rank 3 is out of memory"));
  CHECK(again == errors);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("closing the hub wakes its ranks") {
  const auto hub = make_hub(2);
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    hub->close("enough");
  });
  const auto errors = run_ranks(2, [&](int rank) {
    const auto transport = make_local(hub, rank);
    receive_one(*transport, 1 - rank);
  });
  closer.join();
  CHECK(errors == std::vector<std::string>(2, "enough"));
}

TEST_CASE("a rank that waits too long names operation, peer, bytes and seconds, and closes") {
  const auto hub = make_hub(2, Seconds(0.05));
  const auto receiver = make_local(hub, 1);
  CHECK_THROWS_WITH_AS(
      receive_one(*receiver, 0, 4096),
      "exchange: rank 1 waited for rank 0 to send 4096 bytes for 0.05 s, the timeout",
      TransportError);
  CHECK_THROWS_WITH_AS(send_one(*make_local(hub, 0), 1), Contains("4096 bytes"), TransportError);

  const auto other = make_hub(2, Seconds(0.05));
  CHECK_THROWS_WITH_AS(
      send_one(*make_local(other, 0), 1, 12),
      "exchange: rank 0 waited for rank 1 to receive 12 bytes for 0.05 s, the timeout",
      TransportError);
}

TEST_CASE("nobody waits for a rank that has left") {
  const auto hub = make_hub(3);
  const auto errors = run_ranks(3, [&](int rank) {
    const auto transport = make_local(hub, rank);
    if (rank == 0) receive_one(*transport, 2);
    if (rank == 1) send_one(*transport, 2);
  });
  CHECK(contains(errors[0], "rank 2 left"));
  CHECK(contains(errors[1], "rank 2 left"));
  CHECK(errors[2].empty());
}

TEST_CASE("memory may be used again as soon as a failed call throws") {
  constexpr std::size_t bytes = 1 << 22;
  constexpr std::byte used_again{1};
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const auto hub = make_hub(3);
    std::vector<std::byte> from(bytes), to(bytes);
    const auto errors = run_ranks(3, [&](int rank) {
      const auto transport = make_local(hub, rank);
      if (rank == 2) {
        std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
        return transport->close("ended");
      }
      try {
        while (rank == 0) transport->exchange(std::array{Send{from.data(), bytes, 1}}, {}, {kHost});
        while (rank == 1) transport->exchange({}, std::array{Recv{to.data(), bytes, 0}}, {kHost});
      } catch (const TransportError&) {
        if (rank == 0) std::fill(from.begin(), from.end(), used_again);
        throw;
      }
    });
    CHECK(errors == std::vector<std::string>{"ended", "ended", ""});
    CHECK(std::count(to.begin(), to.end(), used_again) == 0);
  }
}

TEST_CASE("a wrong rank, size, hub or timeout is refused by its value") {
  CHECK_THROWS_WITH_AS(LocalHub(0), Contains("size 0"), ArgumentError);
  CHECK_THROWS_WITH_AS(make_hub(2, Seconds(0)), Contains("0 s"), ArgumentError);
  CHECK_THROWS_WITH_AS(make_hub(2, Seconds(-2.5)), Contains("-2.5 s"), ArgumentError);
  CHECK_THROWS_WITH_AS(make_local(nullptr, 0), Contains("null"), ArgumentError);
  const auto hub = make_hub(2, Seconds(1e300));
  CHECK_THROWS_WITH_AS(make_local(hub, 2), Contains("rank 2"), ArgumentError);
  CHECK_THROWS_WITH_AS(make_local(hub, -1), Contains("rank -1"), ArgumentError);
  const auto first = make_local(hub, 1);
  CHECK_THROWS_WITH_AS(make_local(hub, 1), Contains("rank 1"), ArgumentError);
  CHECK_NOTHROW(make_local(hub, 0));
}

TEST_CASE("a wrong message is refused before anything moves, and the group goes on") {
  const auto hub = make_hub(1);
  const auto transport = make_local(hub, 0);
  std::byte data[4]{};
  CHECK_THROWS_WITH_AS(transport->exchange(std::array{Send{data, 4, 1}}, {}, {kHost}),
                       Contains("rank 1"), ArgumentError);
  CHECK_THROWS_WITH_AS(transport->exchange({}, std::array{Recv{data, 4, -1}}, {kHost}),
                       Contains("rank -1"), ArgumentError);
  CHECK_THROWS_WITH_AS(transport->exchange(std::array{Send{nullptr, 4, 0}}, {}, {kHost}),
                       Contains("null"), ArgumentError);
  CHECK_THROWS_WITH_AS(transport->all_gather(data, nullptr, 4, {kHost}), Contains("null"),
                       ArgumentError);
  CHECK(transport->sent_bytes() == 0);
  CHECK(exchange_round(*transport, 1));
}

#if !COCCL_HAS_CUDA
TEST_CASE("device memory without CUDA is an error on every rank") {
  const auto hub = make_hub(2);
  const auto errors = run_ranks(2, [&](int rank) {
    const auto transport = make_local(hub, rank);
    std::byte data[4]{};
    if (rank == 1) return receive_one(*transport, 0, 4);
    transport->exchange(std::array{Send{data, 4, 1}}, {}, {Place::cuda});
  });
  for (const std::string& error : errors) CHECK(contains(error, "built without CUDA"));
}
#endif
