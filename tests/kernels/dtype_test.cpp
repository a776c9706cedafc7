#include "kernels/base/dtype.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(DTypeTest, sizes_names_and_epsilons_are_those_of_the_formats) {
  EXPECT_EQ(size_bytes(DType::fp32), sizeof(float));
  EXPECT_EQ(size_bytes(DType::fp64), sizeof(double));
  EXPECT_EQ(size_bytes(DType::bf16), 2U);
  EXPECT_EQ(size_bytes(DType::fp16), 2U);
  EXPECT_EQ(epsilon(DType::fp32), std::numeric_limits<float>::epsilon());
  EXPECT_EQ(epsilon(DType::fp64), std::numeric_limits<double>::epsilon());
  EXPECT_EQ(epsilon(DType::bf16), std::ldexp(1.0, -7));   // 8 significant bits
  EXPECT_EQ(epsilon(DType::fp16), std::ldexp(1.0, -10));  // 11 significant bits
  for (DType const dtype : {DType::fp32, DType::bf16, DType::fp16, DType::fp64}) {
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("bf16"), DType::bf16);
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(BFloat16Test, every_value_survives_the_way_to_float_and_back) {
  for (std::uint32_t bits = 0; bits <= 0xFFFFU; ++bits) {
    auto const value = BFloat16::from_bits(static_cast<std::uint16_t>(bits));
    BFloat16 const back{float{value}};
    if (std::isnan(float{value})) {
      EXPECT_TRUE(std::isnan(float{back}));
    } else {
      EXPECT_EQ(back.bits(), bits);
    }
  }
}

TEST(BFloat16Test, epsilon_is_the_distance_from_one_to_the_next) {
  auto const next = BFloat16::from_bits(static_cast<std::uint16_t>(BFloat16{1.0F}.bits() + 1));
  EXPECT_EQ(static_cast<double>(float{next}) - 1.0, epsilon(DType::bf16));
}

/// The nearest of two neighbours, the one with an even last bit where both are as near.
float nearest(float x, float below, float above) {
  double const down = static_cast<double>(x) - below;
  double const up = static_cast<double>(above) - x;
  if (down != up) return down < up ? below : above;
  bool const below_is_even = (BFloat16{below}.bits() & 1U) == 0;
  return below_is_even ? below : above;
}

TEST(BFloat16Test, rounds_to_the_nearest_and_ties_to_even) {
  // Around neighbours of all exponents: just above the lower one, just off the middle, the middle.
  for (std::uint32_t bits = 0x0001U; bits < 0x7F7FU; bits += 37) {
    float const below = BFloat16::from_bits(static_cast<std::uint16_t>(bits));
    float const above = BFloat16::from_bits(static_cast<std::uint16_t>(bits + 1));
    for (std::uint32_t const low : {0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      auto const x = std::bit_cast<float>((bits << 16U) | low);
      EXPECT_EQ(float{BFloat16{x}}, nearest(x, below, above)) << x;
      EXPECT_EQ(float{BFloat16{-x}}, -nearest(x, below, above)) << -x;
    }
  }
}

TEST(BFloat16Test, rounds_beyond_the_largest_to_infinity) {
  auto const largest = std::bit_cast<float>(0x7F7F0000U);
  EXPECT_EQ(float{BFloat16{largest}}, largest);
  EXPECT_EQ(float{BFloat16{std::bit_cast<float>(0x7F7F7FFFU)}}, largest);
  EXPECT_EQ(float{BFloat16{std::bit_cast<float>(0x7F7F8000U)}}, infinity);
  EXPECT_EQ(float{BFloat16{-std::numeric_limits<float>::max()}}, -infinity);
}

TEST(BFloat16Test, keeps_infinities_signs_of_zero_and_nan) {
  EXPECT_EQ(float{BFloat16{infinity}}, infinity);
  EXPECT_EQ(float{BFloat16{-infinity}}, -infinity);
  EXPECT_EQ(BFloat16{-0.0F}.bits(), 0x8000U);
  // Also the NaN whose payload lies in the bits cut off, and the one that rounding would overflow.
  for (std::uint32_t const bits :
       {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU}) {
    EXPECT_TRUE(std::isnan(float{BFloat16{std::bit_cast<float>(bits)}})) << std::hex << bits;
  }
}

TEST(BFloat16Test, doubles_are_rounded_through_float) {
  EXPECT_EQ(float{BFloat16{1.0 / 3.0}}, float{BFloat16{1.0F / 3.0F}});
  EXPECT_EQ(float{BFloat16{1e300}}, infinity);
}

}  // namespace
}  // namespace motley
