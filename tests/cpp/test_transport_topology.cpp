#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/host_id.hpp"
#include "coccl/error.hpp"
#include "coccl/transport.hpp"
#include "transport/nodes.hpp"

using coccl::ArgumentError;
using coccl::Topology;

namespace {

std::vector<int> members(const Topology& topology, int node) {
  const auto ranks = topology.members(node);
  return {ranks.begin(), ranks.end()};
}

}  // namespace

TEST_CASE("without nodes all ranks share one") {
  const Topology topology(2, 4);
  CHECK(topology.rank() == 2);
  CHECK(topology.size() == 4);
  CHECK(topology.nodes() == 1);
  CHECK(members(topology, 0) == std::vector{0, 1, 2, 3});
  CHECK(topology.local_rank(3) == 3);
}

TEST_CASE("nodes are renumbered by their lowest rank, also uneven and interleaved ones") {
  const Topology topology(0, 7, {42, -1, 42, 7, -1, 42, 42});
  CHECK(topology.nodes() == 3);
  CHECK(members(topology, 0) == std::vector{0, 2, 5, 6});
  CHECK(members(topology, 1) == std::vector{1, 4});
  CHECK(members(topology, 2) == std::vector{3});
  CHECK(topology.node_of(6) == 0);
  CHECK(topology.node_of(4) == 1);
  CHECK(topology.local_rank(6) == 3);
  CHECK(topology.local_rank(4) == 1);
  CHECK(topology.local_rank(3) == 0);
}

TEST_CASE("a rank or a size that cannot be is refused by its value") {
  CHECK_THROWS_WITH_AS(Topology(0, 0), doctest::Contains("size 0"), ArgumentError);
  CHECK_THROWS_WITH_AS(Topology(0, -3), doctest::Contains("size -3"), ArgumentError);
  CHECK_THROWS_WITH_AS(Topology(4, 4), doctest::Contains("rank 4"), ArgumentError);
  CHECK_THROWS_WITH_AS(Topology(-1, 4), doctest::Contains("rank -1"), ArgumentError);
  CHECK_THROWS_WITH_AS(Topology(0, 3, {0, 1}), doctest::Contains("nodes of 2 ranks"),
                       ArgumentError);
}

TEST_CASE("ranks of one host make one node") {
  const std::vector<std::uint64_t> hosts{~std::uint64_t{0}, 5, 5, ~std::uint64_t{0}, 0};
  CHECK(coccl::nodes_of(hosts) == std::vector{0, 1, 1, 0, 2});
  CHECK(coccl::nodes_of({}).empty());
}

TEST_CASE("the host's number is stable and follows NCCL_HOSTID") {
  unsetenv("NCCL_HOSTID");
  const std::uint64_t here = coccl::host_id();
  CHECK(coccl::host_id() == here);
  setenv("NCCL_HOSTID", "elsewhere", 1);
  CHECK(coccl::host_id() == coccl::hash_of("elsewhere"));
  CHECK(coccl::host_id() != here);
  unsetenv("NCCL_HOSTID");
  CHECK(coccl::host_id() == here);
}

TEST_CASE("texts are hashed as FNV-1a says") {
  CHECK(coccl::hash_of("") == 0xcbf29ce484222325);
  CHECK(coccl::hash_of("a") == 0xaf63dc4c8601ec8c);
  CHECK(coccl::hash_of("foobar") == 0x85944171f73967e8);
}
