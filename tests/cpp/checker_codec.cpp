#include "checker_codec.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

#include "coccl/error.hpp"

namespace coccl::checker {
namespace {

constexpr int block = 4;
constexpr int block_bytes = block * sizeof(Symbol);

std::uint32_t mix(std::uint64_t x) {  // a random-looking permutation of 64 bits, cut to 32
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
  return static_cast<std::uint32_t>(x >> 32);
}

Symbol load(const std::byte* from, const char* what) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  const auto symbol = std::bit_cast<Symbol>(word);
  if (symbol.encodings > Symbol::most_encodings) {
    throw Error(std::string("read of an unwritten ") + what + " element");
  }
  return symbol;
}

void store(std::byte* to, const Symbol& symbol) { std::memcpy(to, &symbol, sizeof(symbol)); }

void add(Symbol& sum, const Symbol& part) {
  sum.value += part.value;
  sum.encodings = std::max(sum.encodings, part.encodings);
  sum.digest = mix((std::uint64_t{sum.digest} << 32) + part.digest + 1);
}

struct Range {
  const std::byte* begin;
  std::size_t bytes;
};

// An output may be an input, but must not overlap it otherwise.
void check_apart(const Range& output, const Range& input, bool alike) {
  if (alike && output.begin == input.begin) return;
  if (output.begin < input.begin + input.bytes && input.begin < output.begin + output.bytes) {
    throw Error("a pass writes what it has yet to read");
  }
}

void check(const Fused& pass, Stream stream) {
  if (stream.place != Place::host || pass.type != symbol_type) throw Error("not symbols");
  if (pass.inputs < 0 || pass.chunks < 1) throw Error("a pass over nothing");
  if (pass.inputs == 0 && pass.raw_in == nullptr) throw Error("a pass without input");
  if (pass.coded_out == nullptr && pass.raw_out == nullptr) throw Error("a pass without output");
  const auto address = [](const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data); };
  const std::size_t stride = pass.inputs > 1 ? pass.coded_stride : 0;
  if ((address(pass.coded) | stride | address(pass.coded_out)) % 16 != 0) {
    throw Error("coded data not aligned");
  }

  const std::size_t coded_bytes = (pass.count + block - 1) / block * block_bytes * pass.chunks;
  const std::size_t raw_bytes = ((pass.chunks - 1) * pass.raw_stride + pass.count) * sizeof(Symbol);
  const bool raw_used = pass.raw_in != nullptr || pass.raw_out != nullptr;
  if (raw_used && pass.chunks > 1 && pass.raw_stride < pass.count) {
    throw Error("raw chunks overlap");
  }
  const Range raw_in{static_cast<const std::byte*>(pass.raw_in), raw_bytes};
  const Range outputs[] = {{pass.coded_out, coded_bytes},
                           {static_cast<const std::byte*>(pass.raw_out), raw_bytes}};
  for (const bool raw : {false, true}) {
    if (outputs[raw].begin == nullptr) continue;
    if (raw_in.begin != nullptr) check_apart(outputs[raw], raw_in, raw);
    for (int input = 0; input < pass.inputs; ++input) {
      check_apart(outputs[raw], {pass.coded + input * pass.coded_stride, coded_bytes}, !raw);
    }
  }
}

Symbol sum_at(const Fused& pass, std::size_t coded_at, const std::byte* raw_in) {
  Symbol sum;
  for (int input = 0; input < pass.inputs; ++input) {
    add(sum, load(pass.coded + input * pass.coded_stride + coded_at, "coded"));
  }
  if (raw_in != nullptr) add(sum, load(raw_in, "raw"));
  if (pass.scale != 1) {
    sum.value = averaged(sum.value);
    sum.digest = mix(sum.digest);
  }
  return sum;
}

void run(const Fused& pass, Stream stream) {
  if (pass.count == 0) return;
  check(pass, stream);
  const std::uint64_t padded = (pass.count + block - 1) / block * block;
  for (int chunk = 0; chunk < pass.chunks; ++chunk) {
    for (std::uint64_t index = 0; index < padded; ++index) {
      const std::size_t coded_at = (chunk * padded + index) * sizeof(Symbol);
      const std::size_t raw_at = (chunk * pass.raw_stride + index) * sizeof(Symbol);
      if (index >= pass.count) {
        for (int input = 0; input < pass.inputs; ++input) {
          const std::byte* padding = pass.coded + input * pass.coded_stride + coded_at;
          if (load(padding, "coded") != Symbol{}) throw Error("padding that is not zero");
        }
        if (pass.coded_out != nullptr) store(pass.coded_out + coded_at, Symbol{});
        continue;
      }
      const auto* raw_in = static_cast<const std::byte*>(pass.raw_in);
      Symbol sum = sum_at(pass, coded_at, raw_in == nullptr ? nullptr : raw_in + raw_at);
      if (pass.coded_out != nullptr) {
        ++sum.encodings;
        sum.digest = mix(sum.digest + (std::uint64_t{1} << 60));
        store(pass.coded_out + coded_at, sum);
      }
      if (pass.raw_out != nullptr) store(static_cast<std::byte*>(pass.raw_out) + raw_at, sum);
    }
  }
}

}  // namespace

Symbol contribution(int rank, std::uint64_t index) {
  const std::uint64_t seed = (static_cast<std::uint64_t>(rank) << 40) + index + 1;
  Symbol symbol;
  symbol.value = mix(seed);
  symbol.digest = mix(seed + (std::uint64_t{1} << 60));
  return symbol;
}

std::uint32_t averaged(std::uint32_t value) { return value * 0x9e3779b1u + 1; }

const Compressor& symbolic_codec() {
  static constexpr Compressor codec{.name = "symbolic",
                                    .method = "for the checker",
                                    .block = block,
                                    .block_bytes = block_bytes,
                                    .group = 1,
                                    .run = run};
  return codec;
}

}  // namespace coccl::checker
