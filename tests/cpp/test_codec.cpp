#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/floats.hpp"
#include "coccl/compressor.hpp"
#include "coccl/error.hpp"

namespace {

using coccl::Compressor;
using coccl::DataType;
using coccl::Fused;
using coccl::Place;

std::vector<float> gaussian(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

std::vector<std::byte> encode(const Compressor& codec, const std::vector<float>& x, Place place) {
  std::vector<std::byte> wire(codec.bytes(x.size()));
  codec.run({.raw_in = x.data(), .coded_out = wire.data(), .count = x.size()}, {place, nullptr});
  return wire;
}

}  // namespace

TEST_CASE("thirty-two emulated lanes write the bytes of the host's loop") {
  for (const Compressor& codec : coccl::compressors()) {
    CAPTURE(codec.name);
    for (const std::size_t count : {1, 127, 511, 512, 513, 1100}) {
      CAPTURE(count);
      auto x = gaussian(count, static_cast<unsigned>(count));
      x[count / 2] = std::numeric_limits<float>::infinity();
      CHECK(encode(codec, x, Place::host) == encode(codec, x, Place::emulated));
    }
  }
}

TEST_CASE("every pass agrees between emulated lanes and the host's loop") {
  constexpr std::size_t count = 700;
  for (const Compressor& codec : coccl::compressors()) {
    CAPTURE(codec.name);
    const auto stride = static_cast<std::size_t>(codec.bytes(count));
    std::vector<std::byte> inputs;
    for (unsigned i = 0; i < 3; ++i) {
      const auto wire = encode(codec, gaussian(count, i), Place::host);
      inputs.insert(inputs.end(), wire.begin(), wire.end());
    }
    const auto raw = gaussian(count, 9);
    const auto run = [&](Place place, std::vector<std::byte>& coded, std::vector<float>& out) {
      codec.run({.coded = inputs.data(),
                 .coded_stride = stride,
                 .inputs = 3,
                 .raw_in = raw.data(),
                 .coded_out = coded.data(),
                 .raw_out = out.data(),
                 .count = count,
                 .scale = 0.25f},
                {place, nullptr});
    };
    std::vector<std::byte> coded(stride), coded_emulated(stride);
    std::vector<float> out(count), out_emulated(count);
    run(Place::host, coded, out);
    run(Place::emulated, coded_emulated, out_emulated);
    CHECK(coded == coded_emulated);
    CHECK(out == out_emulated);
  }
}

TEST_CASE("an unknown compressor is named with those that are known") {
  try {
    coccl::find_compressor("int3x");
    FAIL("found");
  } catch (const coccl::ArgumentError& error) {
    const std::string message = error.what();
    CHECK(message.find("unknown compressor \"int3x\"; known: ") == 0);
    for (const Compressor& codec : coccl::compressors()) {
      CHECK(message.find(codec.name) != std::string::npos);
    }
  }
}

TEST_CASE("a pass that cannot work is refused") {
  const Compressor& codec = coccl::find_compressor("int8");
  alignas(16) std::byte wire[1024] = {};
  float x[4] = {};
  CHECK_THROWS_AS(
      codec.run({.raw_in = x, .coded_out = wire, .type = DataType::int64, .count = 4}, {}),
      coccl::ArgumentError);
  CHECK_THROWS_AS(codec.run({.coded_out = wire, .count = 4}, {}), coccl::ArgumentError);
  CHECK_THROWS_AS(codec.run({.raw_in = x, .count = 4}, {}), coccl::ArgumentError);
  CHECK_THROWS_AS(codec.run({.raw_in = x, .coded_out = wire + 4, .count = 4}, {}),
                  coccl::ArgumentError);
  CHECK_THROWS_AS(codec.run({.coded = wire, .inputs = -1, .raw_out = x, .count = 4}, {}),
                  coccl::ArgumentError);
  CHECK_THROWS_AS(
      codec.run({.coded = wire, .coded_stride = 8, .inputs = 2, .raw_out = x, .count = 4}, {}),
      coccl::ArgumentError);
  CHECK_NOTHROW(codec.run({.count = 0}, {}));
}

TEST_CASE("16-bit floats convert as IEEE rounding says, for every value and between") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const coccl::Float16 half{static_cast<std::uint16_t>(bits)};
    const float value = coccl::to_float(half);
    if (std::isnan(value)) {
      CHECK((bits & 0x7fff) > 0x7c00);
      CHECK(coccl::from_float<coccl::Float16>(value).bits == 0x7fff);
      continue;
    }
    CHECK(coccl::from_float<coccl::Float16>(value).bits == bits);
    if ((bits & 0x7fff) >= 0x7bff) continue;
    // Between two neighbours: the midpoint goes to the even one, beside it to the nearer.
    const coccl::Float16 next{static_cast<std::uint16_t>(bits + 1)};
    const float middle = (value + coccl::to_float(next)) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    CHECK(coccl::from_float<coccl::Float16>(middle).bits == even);
    const float nearer = std::nextafter(middle, value);
    CHECK(coccl::from_float<coccl::Float16>(nearer).bits == bits);
  }
  CHECK(coccl::from_float<coccl::Float16>(65520.0f).bits == 0x7c00);
  CHECK(coccl::from_float<coccl::Float16>(1e-30f).bits == 0);
  for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const coccl::Bfloat16 narrow{static_cast<std::uint16_t>(bits)};
    const float value = coccl::to_float(narrow);
    CHECK(coccl::from_float<coccl::Bfloat16>(value).bits == bits);
    const float middle = coccl::float_of((bits << 16) | 0x8000u);
    CHECK(coccl::from_float<coccl::Bfloat16>(middle).bits == (bits % 2 == 0 ? bits : bits + 1));
  }
  CHECK(coccl::from_float<coccl::Bfloat16>(coccl::float_of(0xffffffffu)).bits == 0x7fff);
}

TEST_CASE("e4m3 rounds to the nearest of its values, ties to even, and saturates at 448") {
  float values[128];
  for (std::uint32_t code = 0; code < 127; ++code) {
    float four[4];
    coccl::from_e4m3x4(code, four);
    values[code] = four[0];
  }
  CHECK(values[1] == 0x1p-9f);
  CHECK(values[126] == 448.0f);
  for (std::uint32_t code = 0; code < 126; ++code) {
    CHECK(values[code] < values[code + 1]);
    const float middle = (values[code] + values[code + 1]) / 2;
    const std::uint32_t even = code % 2 == 0 ? code : code + 1;
    const std::uint32_t codes = coccl::to_e4m3x4(middle, std::nextafter(middle, 0.0f),
                                                 std::nextafter(middle, 1000.0f), -middle);
    CHECK((codes & 0xff) == even);
    CHECK((codes >> 8 & 0xff) == code);
    CHECK((codes >> 16 & 0xff) == code + 1);
    CHECK((codes >> 24) == (even | 0x80));
  }
  CHECK(coccl::to_e4m3x4(449.0f, 1e30f, -1e30f, 0.0f) == 0x00fe7e7e);
}

TEST_CASE("blocks and bytes of a count above 2^32 do not overflow") {
  const Compressor& codec = coccl::find_compressor("int4");
  const std::uint64_t count = (std::uint64_t{1} << 40) + 1;
  CHECK(codec.blocks(count) == (std::uint64_t{1} << 31) + 1);
  CHECK(codec.bytes(count) == ((std::uint64_t{1} << 31) + 1) * 272);
}
