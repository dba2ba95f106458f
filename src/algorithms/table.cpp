#include <string>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "coccl/error.hpp"

namespace coccl {
namespace {

std::span<const Algorithm> table_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return all_reduce_algorithms();
    case Collective::reduce_scatter:
      return reduce_scatter_algorithms();
    case Collective::all_gather:
      return all_gather_algorithms();
  }
  throw ArgumentError("unknown collective " + std::to_string(static_cast<int>(collective)) +
                      "; known: 0 (all_reduce), 1 (reduce_scatter), 2 (all_gather)");
}

}  // namespace

std::span<const Algorithm> algorithm_table() {
  static const std::vector<Algorithm> table = [] {
    std::vector<Algorithm> all;
    for (const auto family :
         {all_reduce_algorithms(), reduce_scatter_algorithms(), all_gather_algorithms()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return table;
}

std::span<const AlgorithmInfo> algorithms() {
  static const std::vector<AlgorithmInfo> infos = [] {
    std::vector<AlgorithmInfo> all;
    for (const Algorithm& algorithm : algorithm_table()) all.push_back(algorithm.info);
    return all;
  }();
  return infos;
}

const Algorithm& find_algorithm(Collective collective, std::string_view name) {
  std::string known;
  for (const Algorithm& algorithm : table_of(collective)) {
    if (algorithm.info.name == name) return algorithm;
    known.append(known.empty() ? "" : ", ").append(algorithm.info.name);
  }
  throw ArgumentError("unknown " + std::string(name_of(collective)) + " algorithm \"" +
                      std::string(name) + "\"; known: " + known);
}

}  // namespace coccl
