#include "transport/nodes.hpp"

#include <unordered_map>

namespace coccl {

std::vector<int> nodes_of(std::span<const std::uint64_t> hosts) {
  std::unordered_map<std::uint64_t, int> numbers;
  std::vector<int> nodes;
  nodes.reserve(hosts.size());
  for (const std::uint64_t host : hosts) {
    nodes.push_back(numbers.try_emplace(host, static_cast<int>(numbers.size())).first->second);
  }
  return nodes;
}

std::vector<int> detect_nodes(Transport& transport, std::uint64_t host) {
  std::vector<std::uint64_t> hosts(static_cast<std::size_t>(transport.topology().size()));
  transport.all_gather(&host, hosts.data(), sizeof host, Stream{});
  return nodes_of(hosts);
}

}  // namespace coccl
