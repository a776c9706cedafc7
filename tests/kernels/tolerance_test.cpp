#include "tests/kernels/tolerance.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace motley::test {
namespace {

constexpr double fp32_epsilon = 0x1p-23;

TEST(ToleranceTest, fraction_follows_the_rule) {
  // RMS of {3, 4} is sqrt(12.5); K = 4, c = 2: allowed at 3 is 2 eps 2 (3 + 3.5355…).
  std::vector<double> const reference{3.0, 4.0};
  double const allowed = 4.0 * fp32_epsilon * (3.0 + std::sqrt(12.5));
  std::vector<double> const actual{3.0 + 0.5 * allowed, 4.0};
  Closeness const worst = closeness(actual, reference, {DType::fp32, 4, 2.0});
  EXPECT_NEAR(worst.fraction, 0.5, 1e-6);
  EXPECT_EQ(worst.index, 0U);
}

TEST(ToleranceTest, an_error_beyond_the_rule_is_refused) {
  std::vector<double> const reference{1.0, 1.0};
  std::vector<double> const close{1.0 + 7.9 * fp32_epsilon, 1.0};
  std::vector<double> const far{1.0 + 8.1 * fp32_epsilon, 1.0};
  EXPECT_TRUE(is_close("close", close, reference, {DType::fp32, 1}));
  EXPECT_FALSE(is_close("far", far, reference, {DType::fp32, 1}));
  EXPECT_TRUE(is_close("bf16", far, reference, {DType::bf16, 1}));
}

TEST(ToleranceTest, nan_and_infinity_are_refused) {
  std::vector<double> const reference{1.0, 1.0};
  std::vector<double> const nan{std::numeric_limits<double>::quiet_NaN(), 1.0};
  std::vector<double> const infinite{1.0, std::numeric_limits<double>::infinity()};
  EXPECT_FALSE(is_close("nan", nan, reference, {DType::bf16, 1000}));
  EXPECT_FALSE(is_close("infinite", infinite, reference, {DType::bf16, 1000}));
  EXPECT_FALSE(is_close("reference", reference, nan, {DType::bf16, 1000}));
}

TEST(ToleranceTest, other_sizes_nothing_to_compare_and_large_factors_are_refused) {
  std::vector<double> const one{1.0};
  std::vector<double> const two{1.0, 1.0};
  EXPECT_FALSE(is_close("sizes", one, two, {DType::fp32, 1}));
  EXPECT_FALSE(is_close("nothing", std::vector<double>{}, std::vector<double>{}, {}));
  EXPECT_FALSE(is_close("factor", one, one, {DType::fp32, 1, 5.0}));
}

TEST(ToleranceTest, values_of_a_padded_view_are_those_of_its_extents) {
  Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace> const whole("whole", 2, 3);
  for (std::size_t i = 0; i < 6; ++i) whole.data()[i] = static_cast<float>(i);
  auto const part = Kokkos::subview(whole, Kokkos::ALL, Kokkos::pair<int, int>{0, 2});
  EXPECT_EQ(values_of(part), (std::vector<double>{0.0, 1.0, 3.0, 4.0}));
}

}  // namespace
}  // namespace motley::test
