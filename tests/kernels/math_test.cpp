#include "kernels/detail/math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace motley::kernels::detail {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// |actual - expected| in units of the last place of expected, rounded to float.
double ulps(float actual, double expected) {
  auto const rounded = static_cast<float>(std::abs(expected));
  double const unit = static_cast<double>(std::nextafter(rounded, infinity)) - rounded;
  return std::abs(static_cast<double>(actual) - expected) / unit;
}

/// Calls visit(x) for floats of every exponent and both signs, a prime number of bit patterns
/// apart.
template <class Visit>
void for_many_floats(Visit const& visit) {
  constexpr std::uint64_t stride = 40009;
  for (std::uint64_t bits = 0; bits <= 0xFFFFFFFFU; bits += stride) {
    visit(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
}

TEST(MathTest, exp_is_within_two_ulp) {
  double worst = 0;
  for_many_floats([&](float x) {
    double const expected = std::exp(static_cast<double>(x));
    if (std::isnan(x) || expected > std::numeric_limits<float>::max()) return;
    worst = std::max(worst, ulps(exp(x), expected));
  });
  EXPECT_LE(worst, 2.0);
}

TEST(MathTest, exp_is_within_two_ulp_where_softmax_uses_it) {
  double worst = 0;
  for (float x = -20.0F; x < 20.0F; x += 1e-4F) {
    worst = std::max(worst, ulps(exp(x), std::exp(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 2.0);
}

TEST(MathTest, exp_keeps_denormals_infinities_and_nan) {
  EXPECT_EQ(exp(0.0F), 1.0F);
  EXPECT_EQ(exp(-0.0F), 1.0F);
  EXPECT_LE(ulps(exp(-100.0F), std::exp(-100.0)), 2.0);  // a denormal
  EXPECT_GT(exp(-103.0F), 0.0F);
  EXPECT_EQ(exp(-104.5F), 0.0F);
  EXPECT_EQ(exp(-infinity), 0.0F);
  EXPECT_LE(ulps(exp(88.7F), std::exp(static_cast<double>(88.7F))), 2.0);
  EXPECT_EQ(exp(88.8F), infinity);
  EXPECT_EQ(exp(1e30F), infinity);
  EXPECT_EQ(exp(infinity), infinity);
  EXPECT_TRUE(std::isnan(exp(nan)));
}

TEST(MathTest, tanh_is_within_three_ulp) {
  double worst = 0;
  for_many_floats([&](float x) {
    if (std::isnan(x)) return;
    worst = std::max(worst, ulps(std::abs(tanh(x)), std::tanh(std::abs(static_cast<double>(x)))));
    EXPECT_EQ(std::signbit(tanh(x)), std::signbit(x));
  });
  EXPECT_LE(worst, 3.0);
}

TEST(MathTest, tanh_keeps_zeros_infinities_and_nan) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(tanh(-0.0F)), 0x80000000U);
  EXPECT_EQ(tanh(infinity), 1.0F);
  EXPECT_EQ(tanh(-infinity), -1.0F);
  EXPECT_TRUE(std::isnan(tanh(nan)));
}

TEST(MathTest, sigmoid_has_limits_zero_and_one) {
  EXPECT_EQ(sigmoid(0.0F), 0.5F);
  EXPECT_EQ(sigmoid(-1e30F), 0.0F);
  EXPECT_EQ(sigmoid(1e30F), 1.0F);
  EXPECT_TRUE(std::isnan(sigmoid(nan)));
}

}  // namespace
}  // namespace motley::kernels::detail
