#include <string>

#include "coccl/compressor.hpp"
#include "coccl/error.hpp"

namespace coccl {

const Compressor& find_compressor(std::string_view name) {
  std::string known;
  for (const Compressor& compressor : compressors()) {
    if (compressor.name == name) return compressor;
    if (!known.empty()) known += ", ";
    known += compressor.name;
  }
  throw ArgumentError("unknown compressor \"" + std::string(name) + "\"; known: " + known);
}

}  // namespace coccl
