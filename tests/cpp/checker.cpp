#include "checker.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "checker_codec.hpp"
#include "coccl/error.hpp"

namespace coccl::checker {
namespace {

// Unwritten memory between guards. The words keep it 16-byte aligned.
class Buffer {
 public:
  explicit Buffer(std::uint64_t symbols)
      : symbols_(symbols), words_(symbols + 2 * guard, filled_with(guard_byte)) {
    std::fill(words_.begin() + guard, words_.end() - guard, filled_with(unwritten_byte));
  }

  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data() + guard); }
  Symbol at(std::uint64_t index) const { return std::bit_cast<Symbol>(words_[guard + index]); }
  void set(std::uint64_t index, const Symbol& symbol) {
    words_[guard + index] = std::bit_cast<std::uint64_t>(symbol);
  }
  std::uint64_t symbols() const { return symbols_; }
  bool guarded() const {
    const auto whole = [](std::uint64_t word) { return word == filled_with(guard_byte); };
    return std::all_of(words_.begin(), words_.begin() + guard, whole) &&
           std::all_of(words_.end() - guard, words_.end(), whole);
  }

 private:
  static constexpr int guard = 8;
  static std::uint64_t filled_with(unsigned char byte) { return byte * 0x0101010101010101u; }

  std::uint64_t symbols_;
  std::vector<std::uint64_t> words_;
};

// A rank's memory. In place, the smaller buffer is the rank's own part of the larger one.
class Memory {
 public:
  Memory(const Case& what, int rank, std::uint64_t scratch_bytes)
      : collective_(what.algorithm.info.collective),
        rank_(rank),
        count_(what.count),
        in_place_(what.in_place),
        first_(make(what.nodes.size(), collective_ == Collective::reduce_scatter || in_place_)),
        second_(in_place_ ? 0 : make(what.nodes.size(), collective_ == Collective::all_gather)),
        scratch_((scratch_bytes + sizeof(Symbol) - 1) / sizeof(Symbol)) {
    const std::uint64_t inputs =
        what.count * (collective_ == Collective::reduce_scatter ? what.nodes.size() : 1);
    for (std::uint64_t i = 0; i < inputs; ++i) first_.set(input_at() + i, contribution(rank, i));
  }

  const void* input() { return first_.data() + input_at() * sizeof(Symbol); }
  void* output() {
    return in_place_ ? first_.data() + output_at() * sizeof(Symbol) : second_.data();
  }
  std::byte* scratch() { return scratch_.data(); }

  Symbol result(std::uint64_t index) const {
    return in_place_ ? first_.at(output_at() + index) : second_.at(index);
  }
  bool guarded() const { return first_.guarded() && second_.guarded() && scratch_.guarded(); }
  // Whether what is input and not output is as it was.
  bool input_kept() const {
    for (std::uint64_t i = 0; i < first_.symbols(); ++i) {
      const bool output = in_place_ && (collective_ != Collective::reduce_scatter ||
                                        (i >= output_at() && i < output_at() + count_));
      if (!output && first_.at(i) != contribution(rank_, i)) return false;
    }
    return true;
  }

 private:
  std::uint64_t make(std::size_t ranks, bool larger) const {
    return collective_ != Collective::all_reduce && larger ? ranks * count_ : count_;
  }
  std::uint64_t input_at() const {
    return in_place_ && collective_ == Collective::all_gather ? rank_ * count_ : 0;
  }
  std::uint64_t output_at() const {
    return collective_ == Collective::reduce_scatter ? rank_ * count_ : 0;
  }

  Collective collective_;
  int rank_;
  std::uint64_t count_;
  bool in_place_;
  Buffer first_;   // the input, and the output if in place
  Buffer second_;  // the output
  Buffer scratch_;
};

// Of every element of all ranks' results together: what it must be.
std::vector<std::uint32_t> expected_values(const Case& what) {
  const int size = static_cast<int>(what.nodes.size());
  const Collective collective = what.algorithm.info.collective;
  std::vector<std::uint32_t> values;
  if (collective == Collective::all_gather) {
    for (int rank = 0; rank < size; ++rank) {
      for (std::uint64_t i = 0; i < what.count; ++i) values.push_back(contribution(rank, i).value);
    }
    return values;
  }
  values.resize(collective == Collective::all_reduce ? what.count : size * what.count);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    for (int rank = 0; rank < size; ++rank) values[i] += contribution(rank, i).value;
    if (what.average) values[i] = averaged(values[i]);
  }
  return values;
}

std::string check_result(const Case& what, int rank, const Memory& memory, const Memory& rank_0,
                         const std::vector<std::uint32_t>& expected) {
  const bool scattered = what.algorithm.info.collective == Collective::reduce_scatter;
  const int published = what.algorithm.info.encodings(
      Topology(rank, static_cast<int>(what.nodes.size()), what.nodes));
  const std::uint64_t first = scattered ? rank * what.count : 0;
  const std::uint64_t count = scattered ? what.count : expected.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    const Symbol result = memory.result(i);
    const auto at = [&](const std::string& fault) {
      return "rank " + std::to_string(rank) + ", element " + std::to_string(i) + fault;
    };
    if (result.encodings > Symbol::most_encodings) return at(" was not written");
    if (result.value != expected[first + i]) return at(" has a contribution lost or doubled");
    if (static_cast<int>(result.encodings) > published) {
      return at(" was encoded " + std::to_string(result.encodings) + " times, published is " +
                std::to_string(published));
    }
    if (!scattered && result != rank_0.result(i)) return at(" has other bits than rank 0's");
  }
  const std::string who = "rank " + std::to_string(rank);
  if (!memory.guarded()) return who + " wrote outside its output or scratch";
  if (!memory.input_kept()) return who + " changed its input";
  return "";
}

}  // namespace

std::string Case::name() const {
  std::string text(name_of(algorithm.info.collective));
  text.append(" ").append(algorithm.info.name);
  text += ", count " + std::to_string(count) + (in_place ? ", in place" : "");
  text += (average ? ", average" : "") + std::string(", ranks on nodes");
  for (const int node : nodes) text += " " + std::to_string(node);
  return text;
}

Cluster::Outcome check(Cluster& cluster, const Case& what) {
  const int size = static_cast<int>(what.nodes.size());
  const Compressor& codec = symbolic_codec();
  std::vector<Memory> memories;
  for (int rank = 0; rank < size; ++rank) {
    const Topology topology(rank, size, what.nodes);
    memories.emplace_back(what, rank, what.algorithm.scratch_bytes(codec, topology, what.count));
  }

  Cluster::Outcome outcome = cluster.run(what.nodes, [&](Transport& transport) {
    Memory& memory = memories[transport.topology().rank()];
    Messages messages;
    what.algorithm.run({.codec = codec,
                        .transport = transport,
                        .messages = messages,
                        .stream = {},
                        .scratch = memory.scratch(),
                        .input = memory.input(),
                        .output = memory.output(),
                        .count = what.count,
                        .type = symbol_type,
                        .scale = what.average ? 1.0f / 3 : 1});
  });

  const std::vector<std::uint32_t> expected = expected_values(what);
  for (int rank = 0; rank < size && outcome.error.empty(); ++rank) {
    outcome.error = check_result(what, rank, memories[rank], memories[0], expected);
  }
  return outcome;
}

}  // namespace coccl::checker
