#include <iostream>

#include "coccl/compressor.hpp"
#include "coccl/error.hpp"

int main() {
  try {
    coccl::find_compressor("int3x");
  } catch (const coccl::ArgumentError& error) {
    std::cout << error.what() << "\n";
    return coccl::compressors().empty() ? 1 : 0;
  }
  return 1;
}
