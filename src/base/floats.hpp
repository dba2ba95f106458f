#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.hpp"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#endif

// Conversions between fp32 and the narrow formats. Each has a host form in integer arithmetic and,
// on the GPU, the hardware's instruction; both give the same bits for every input, NaN included.
namespace coccl {

// Raw storage of the 16-bit formats; a type of its own each, so that templates can tell them apart.
struct Bfloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

constexpr std::uint32_t kQuietNan = 0x7fc00000u;
constexpr std::uint32_t kInfinity = 0x7f800000u;

COCCL_HOST_DEVICE std::uint32_t bits_of(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  return std::bit_cast<std::uint32_t>(x);
#endif
}

COCCL_HOST_DEVICE float float_of(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

// |x| as an unsigned integer: ordered like |x|, with NaN above Inf above every finite value.
COCCL_HOST_DEVICE std::uint32_t magnitude_of(float x) { return bits_of(x) & 0x7fffffffu; }

// The larger of two magnitudes; NaN is larger than all. Which NaN is left open.
COCCL_HOST_DEVICE float larger_magnitude(float a, float b) {
#ifdef __CUDA_ARCH__
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(fabsf(a)), "f"(fabsf(b)));
  return larger;
#else
  const std::uint32_t x = magnitude_of(a), y = magnitude_of(b);
  return float_of(x > y ? x : y);
#endif
}

// sign·x + other for sign = ±1: one rounding, so the fused and the separate form agree.
COCCL_HOST_DEVICE float signed_sum(float sign, float x, float other) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(sign, x, other);
#else
  return sign * x + other;
#endif
}

COCCL_HOST_DEVICE float to_float(float x) { return x; }

COCCL_HOST_DEVICE float to_float(Bfloat16 x) { return float_of(std::uint32_t{x.bits} << 16); }

COCCL_HOST_DEVICE float to_float(Float16 x) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(x.bits));
#else
  const std::uint32_t sign = std::uint32_t{x.bits & 0x8000u} << 16;
  const std::uint32_t magnitude = x.bits & 0x7fffu;
  if (magnitude > 0x7c00u) return float_of(0x7fffffffu);
  if (magnitude == 0x7c00u) return float_of(sign | kInfinity);
  // 2^112 moves the exponent's bias from 15 to 127, and makes subnormals right as well.
  return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112f));
#endif
}

template <class To>
COCCL_HOST_DEVICE To from_float(float x);

template <>
COCCL_HOST_DEVICE float from_float<float>(float x) {
  return x;
}

template <>
COCCL_HOST_DEVICE Bfloat16 from_float<Bfloat16>(float x) {
#ifdef __CUDA_ARCH__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
#else
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const bool nan = (bits & 0x7fffffffu) > kInfinity;
  return {static_cast<std::uint16_t>(nan ? 0x7fffu : rounded >> 16)};
#endif
}

template <>
COCCL_HOST_DEVICE Float16 from_float<Float16>(float x) {
#ifdef __CUDA_ARCH__
  return {__half_as_ushort(__float2half_rn(x))};
#else
  const std::uint32_t magnitude = magnitude_of(x);
  const std::uint32_t sign = (bits_of(x) >> 16) & 0x8000u;
  if (magnitude > kInfinity) return {0x7fff};
  std::uint32_t half;
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 1/2 leaves steps of 2^-24, fp16's smallest
    half = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  } else {
    half = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    if (half > 0x7c00u) half = 0x7c00u;
  }
  return {static_cast<std::uint16_t>(sign | half)};
#endif
}

// Four values as e4m3 (fp8), the first in the low byte: round to nearest even, saturating at 448.
// NaN is not represented; callers mask it.
COCCL_HOST_DEVICE std::uint32_t to_e4m3x4(float a, float b, float c, float d) {
#ifdef __CUDA_ARCH__
  const std::uint32_t low = __nv_cvt_float2_to_fp8x2({a, b}, __NV_SATFINITE, __NV_E4M3);
  const std::uint32_t high = __nv_cvt_float2_to_fp8x2({c, d}, __NV_SATFINITE, __NV_E4M3);
  return low | high << 16;
#else
  const auto one = [](float x) -> std::uint32_t {
    const std::uint32_t magnitude = magnitude_of(x);
    const std::uint32_t sign = (bits_of(x) >> 24) & 0x80u;
    // Below 2^-6 steps are 2^-9 wide: those of 2^14. Above, round off 20 of the mantissa's bits.
    const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0x1p14f) - bits_of(0x1p14f);
    const std::uint32_t normal =
        (magnitude + 0x7ffffu + ((magnitude >> 20) & 1u) - (120u << 23)) >> 20;
    const std::uint32_t code = magnitude < 0x3c800000u ? subnormal : normal;
    return sign | (code < 0x7eu ? code : 0x7eu);
  };
  return one(a) | one(b) << 8 | one(c) << 16 | one(d) << 24;
#endif
}

// The inverse of to_e4m3x4, exact.
COCCL_HOST_DEVICE void from_e4m3x4(std::uint32_t codes, float* x) {
#ifdef __CUDA_ARCH__
  const __half2 low = __half2(
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(codes & 0xffffu), __NV_E4M3));
  const __half2 high = __half2(
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(codes >> 16), __NV_E4M3));
  x[0] = __low2float(low);
  x[1] = __high2float(low);
  x[2] = __low2float(high);
  x[3] = __high2float(high);
#else
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t code = codes >> (8 * i);
    // 2^120 moves the exponent's bias from 7 to 127, and makes subnormals right as well.
    const std::uint32_t magnitude = bits_of(float_of((code & 0x7fu) << 20) * 0x1p120f);
    x[i] = float_of(magnitude | (code & 0x80u) << 24);
  }
#endif
}

}  // namespace coccl
