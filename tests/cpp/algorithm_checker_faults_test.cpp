#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "algorithms/algorithm.hpp"
#include "checker.hpp"
#include "checker_codec.hpp"

// The checker is worth what it catches: faulty variants of a right algorithm.
namespace coccl::checker {
namespace {

enum class Fault {
  none,
  loses,
  doubles,
  scales_twice,
  scales_parts,
  keeps_own_raw,
  sums_in_own_order,
  encodes_again,
  reads_too_early,
  overruns_scratch,
  overruns_output,
  changes_input,
  overlaps,
  waits_for_ever,
  leaves_early,
  expects_less,
  throws,
};

// A one_shot all_reduce with a fault.
template <Fault fault>
void run(const Call& call) {
  const std::size_t bytes = call.codec.bytes(call.count);
  const int rank = call.rank();
  const int size = call.size();
  const auto slot = [&](int of_rank) {
    const bool turned = fault == Fault::sums_in_own_order && rank == 1;
    return call.scratch + (turned ? size - 1 - of_rank : of_rank) * bytes;
  };
  std::byte* own = slot(rank);
  if (fault == Fault::throws && rank == 1) throw std::runtime_error("out of order");
  call.pass({.raw_in = call.input,
             .coded_out = own,
             .count = call.count,
             .scale = fault == Fault::scales_parts ? call.scale : 1});
  if (fault == Fault::encodes_again) {
    call.pass({.coded = own, .inputs = 1, .coded_out = own, .count = call.count});
  }
  if (fault == Fault::leaves_early && rank == 2) return;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const bool sends = fault != Fault::waits_for_ever || rank != 0 || peer != 1;
    if (sends) call.messages.send(own, bytes, peer);
    if (fault == Fault::reads_too_early && peer == 2) continue;
    call.messages.recv(slot(fault == Fault::overlaps ? rank : peer),
                       fault == Fault::expects_less ? bytes / 2 : bytes, peer);
  }
  call.exchange();
  if (fault == Fault::overruns_scratch) {
    call.pass({.raw_in = call.input, .coded_out = call.scratch + size * bytes, .count = 1});
  }
  if (fault == Fault::changes_input && call.output != call.input) {
    call.pass(
        {.coded = own, .inputs = 1, .raw_out = const_cast<void*>(call.input), .count = call.count});
  }
  const bool skip = fault == Fault::loses || (fault == Fault::keeps_own_raw && rank == 0);
  const bool add_raw = fault == Fault::doubles || (fault == Fault::keeps_own_raw && rank == 0);
  call.pass({.coded = call.scratch + (skip ? bytes : 0),
             .coded_stride = bytes,
             .inputs = size - (skip ? 1 : 0),
             .raw_in = add_raw ? call.input : nullptr,
             .raw_out = call.output,
             .count = call.count + (fault == Fault::overruns_output ? 1 : 0),
             .scale = fault == Fault::scales_parts ? 1 : call.scale});
  if (fault == Fault::scales_twice) {
    call.pass(
        {.raw_in = call.output, .raw_out = call.output, .count = call.count, .scale = call.scale});
  }
}

template <Fault fault>
std::string error_of(int size) {
  const Algorithm algorithm{
      {Collective::all_reduce, "faulty", "", [](const Topology&) { return 1; }},
      [](const Compressor& codec, const Topology& topology, std::uint64_t count) {
        return topology.size() * codec.bytes(count);
      },
      run<fault>};
  Cluster cluster(size);
  return check(cluster, {algorithm, std::vector<int>(size, 0), 7, false, true}).error;
}

TEST_CASE("the checker accepts the algorithm that the faults are made in") {
  CHECK(error_of<Fault::none>(3) == "");
  CHECK(error_of<Fault::none>(2) == "");
}

TEST_CASE("the checker finds contributions lost, doubled, or averaged wrongly") {
  const std::string wrong = "rank 0, element 0 has a contribution lost or doubled";
  CHECK(error_of<Fault::loses>(3) == wrong);
  CHECK(error_of<Fault::doubles>(3) == wrong);
  CHECK(error_of<Fault::scales_twice>(3) == wrong);
  CHECK(error_of<Fault::scales_parts>(3) == wrong);
}

TEST_CASE("the checker finds ranks that do not hold the same bits") {
  const std::string differs = "rank 1, element 0 has other bits than rank 0's";
  CHECK(error_of<Fault::keeps_own_raw>(3) == differs);
  CHECK(error_of<Fault::sums_in_own_order>(2) == differs);
}

TEST_CASE("the checker finds encodings that were not published") {
  CHECK(error_of<Fault::encodes_again>(3) ==
        "rank 0, element 0 was encoded 2 times, published is 1");
}

TEST_CASE("the checker finds memory read or written wrongly") {
  CHECK(error_of<Fault::reads_too_early>(3) == "rank 0: read of an unwritten coded element");
  CHECK(error_of<Fault::overruns_scratch>(3) == "rank 0 wrote outside its output or scratch");
  CHECK(error_of<Fault::overruns_output>(3) == "rank 0 wrote outside its output or scratch");
  CHECK(error_of<Fault::changes_input>(3) == "rank 0 changed its input");
  CHECK(error_of<Fault::overlaps>(3) == "two messages received in one place");
  CHECK(error_of<Fault::overlaps>(2) == "a message received where another is sent from");
}

TEST_CASE("the checker finds ranks that wait for ever") {
  CHECK(error_of<Fault::waits_for_ever>(3) ==
        "deadlock: rank 1 waits for 64 bytes of rank 0, which is done");
  CHECK(error_of<Fault::leaves_early>(3) ==
        "deadlock: rank 0 waits to send 64 bytes to rank 2, which is done");
}

TEST_CASE("the checker finds sizes that do not match and ranks that throw") {
  CHECK(error_of<Fault::expects_less>(3) == "rank 1 sends 64 bytes to rank 0, which expects 32");
  CHECK(error_of<Fault::throws>(3) == "rank 1: out of order");
}

}  // namespace
}  // namespace coccl::checker
