#include "base/host_id.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>

namespace coccl {

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001b3;
  }
  return hash;
}

std::uint64_t host_id() {
  if (const char* chosen = std::getenv("NCCL_HOSTID"); chosen != nullptr && *chosen != '\0') {
    return hash_of(chosen);
  }
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return hash_of(name.data() + boot);
}

}  // namespace coccl
