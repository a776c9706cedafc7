#pragma once

#include <bit>
#include <cstdint>

#include <Kokkos_MathematicalFunctions.hpp>

#include "kernels/base/dtype.hpp"

/// Elementary functions for inner loops. The float versions are branch-free and made of operations
/// that exist for vectors, so that a loop over them vectorizes on any CPU; the double versions,
/// which only tests and fp64 runs use, are those of the standard library.
namespace motley::kernels::detail {

// ln 2 in two parts (Cody and Waite, "Software Manual for the Elementary Functions", 1980): the
// first has so few bits that its product with any exponent of a float is exact.
inline constexpr float ln2_high = 0.693359375F;
inline constexpr float ln2_low = -2.12194440e-4F;
inline constexpr float log2_e = 1.44269504F;

// Adding 1.5·2²³ to a float of magnitude below 2²² rounds it to an integer, which then stands in
// the low bits of the sum.
inline constexpr float round_shift = 0x1.8p23F;

/// x = exponent·ln 2 + rest with |rest| ≤ ln 2 / 2, for |x| below 10⁴.
struct ReducedArgument {
  std::int32_t exponent;
  float rest;
};

MOTLEY_FUNCTION ReducedArgument reduce_by_ln2(float x) {
  float const shifted = x * log2_e + round_shift;
  float const whole = shifted - round_shift;
  auto const exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                                  std::bit_cast<std::uint32_t>(round_shift));
  return {exponent, (x - whole * ln2_high) - whole * ln2_low};
}

/// 2^exponent for exponents from -126 to 127.
MOTLEY_FUNCTION float power_of_two(std::int32_t exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23U);
}

/// eʳ - 1 for |r| ≤ ln 2 / 2: its Taylor series to r⁷, whose first neglected term is 5·10⁻⁹.
MOTLEY_FUNCTION float expm1_near_zero(float r) {
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  return p * r * r + r;
}

/// eˣ within 2 ulp, denormal results included. 0 below -104, infinity above 88.73, NaN of NaN.
MOTLEY_FUNCTION float exp(float x) {
  // Written so that NaN fails both comparisons and passes through.
  float const low = x < -104.0F ? -104.0F : x;
  float const clamped = low > 89.0F ? 89.0F : low;
  auto const [exponent, rest] = reduce_by_ln2(clamped);
  // 2^exponent alone may be no float (2¹²⁸) or lose bits (below 2⁻¹²⁶): multiply by two halves.
  std::int32_t const half = exponent >> 1;
  return (1.0F + expm1_near_zero(rest)) * power_of_two(half) * power_of_two(exponent - half);
}

MOTLEY_FUNCTION double exp(double x) { return Kokkos::exp(x); }

/// tanh x within 3 ulp, also near 0: (e²ˣ - 1) / (e²ˣ + 1) from e²ˣ - 1 without cancellation.
MOTLEY_FUNCTION float tanh(float x) {
  std::uint32_t const sign = std::bit_cast<std::uint32_t>(x) & 0x80000000U;
  float const twice = 2.0F * std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ sign);
  float const clamped = twice > 20.0F ? 20.0F : twice;  // tanh 10 rounds to 1
  auto const [exponent, rest] = reduce_by_ln2(clamped);
  float const scale = power_of_two(exponent);
  float const expm1 = expm1_near_zero(rest) * scale + (scale - 1.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(expm1 / (expm1 + 2.0F)) | sign);
}

MOTLEY_FUNCTION double tanh(double x) { return Kokkos::tanh(x); }

/// The logistic function σ(x) = 1 / (1 + e⁻ˣ) and its derivative σ(x) (1 - σ(x)).
template <class A>
struct Sigmoid {
  A value;
  A slope;
};

/// From e^-|x|, which cannot overflow, and without the cancellation of 1 - σ.
template <class A>
MOTLEY_FUNCTION Sigmoid<A> sigmoid_with_slope(A x) {
  A const e = detail::exp(x < 0 ? x : -x);
  A const reciprocal = A{1} / (A{1} + e);
  A const other = e * reciprocal;
  return {x < 0 ? other : reciprocal, other * reciprocal};
}

template <class A>
MOTLEY_FUNCTION A sigmoid(A x) {
  return A{1} / (A{1} + detail::exp(-x));
}

}  // namespace motley::kernels::detail
