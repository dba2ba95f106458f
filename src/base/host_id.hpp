#pragma once

#include <cstdint>
#include <string_view>

namespace coccl {

// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view text);

// Tells this host from others: a hash of NCCL_HOSTID where that is set (so that NCCL and coccl see
// the same nodes), else of the host's name and of its boot. Equal in every process of the host.
std::uint64_t host_id();

}  // namespace coccl
