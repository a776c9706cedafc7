#include "kernels/dropout.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/dropout.hpp"
#include "tests/kernels/element_types.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/threads.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using test::is_close;
using test::random_view;
using test::values_of;

constexpr DropoutKey key{1234, 7, 42};

View1<std::uint64_t> samples_of(std::vector<std::uint64_t> const& samples) {
  View1<std::uint64_t> const view("samples", samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) view(i) = samples[i];
  return view;
}

/// Ones after dropout: 0 or 1 / (1 - rate).
View2<float> mask_of(DropoutKey const& mask_key,
                     std::vector<std::uint64_t> const& samples,
                     double rate,
                     std::int64_t tokens,
                     std::int64_t width,
                     std::int64_t first_token = 0) {
  View2<float> const x(
      "x", samples.size() * static_cast<std::size_t>(tokens), static_cast<std::size_t>(width));
  Kokkos::deep_copy(x, 1.0F);
  dropout<float>(Exec{}, mask_key, samples_of(samples), rate, tokens, x, first_token);
  return x;
}

std::vector<double> rows_of(View2<float> const& view, std::int64_t begin, std::int64_t end) {
  return values_of(
      Kokkos::subview(view, Kokkos::pair<std::int64_t, std::int64_t>{begin, end}, Kokkos::ALL));
}

template <class T>
class DropoutTest : public testing::Test {};
TYPED_TEST_SUITE(DropoutTest, test::ElementTypes, test::ElementTypeNames);

TYPED_TEST(DropoutTest, equals_the_reference) {
  std::vector<std::uint64_t> const samples{3, 0xFFFFFFFFFFULL, 0};
  // Widths that are and are not a multiple of the four words of a Philox call.
  for (std::int64_t const width : {1, 3, 4, 33, 64, 260}) {
    auto const x = random_view<TypeParam>("x", 3 * 5, width, 1, 4);
    reference::Matrix const expected =
        reference::dropout(key, samples, 0.3, 5, reference::matrix_of(x));
    dropout<TypeParam>(Exec{}, key, samples_of(samples), 0.3, 5, x);
    EXPECT_TRUE(is_close("x", values_of(x), expected.values, {dtype_of<TypeParam>}));
  }
}

TYPED_TEST(DropoutTest, rate_zero_changes_nothing) {
  auto const x = random_view<TypeParam>("x", 10, 16, 1);
  std::vector<double> const before = values_of(x);
  dropout<TypeParam>(Exec{}, key, samples_of({1, 2}), 0.0, 5, x);
  EXPECT_EQ(values_of(x), before);
}

TYPED_TEST(DropoutTest, bits_do_not_depend_on_the_number_of_threads) {
  auto const one = random_view<TypeParam>("x", 300, 65, 1);
  auto const two = random_view<TypeParam>("x", 300, 65, 1);
  dropout<TypeParam>(test::exec_with_threads(1), key, samples_of({8, 9, 10}), 0.2, 100, one);
  dropout<TypeParam>(test::exec_with_threads(2), key, samples_of({8, 9, 10}), 0.2, 100, two);
  EXPECT_EQ(values_of(one), values_of(two));
}

TEST(DropoutMaskTest, does_not_depend_on_how_a_batch_is_split) {
  for (std::int64_t const width : {6, 64}) {
    View2<float> const whole = mask_of(key, {10, 11, 12}, 0.4, 8, width);
    // Two pipelines of unequal batch, in another order.
    EXPECT_EQ(values_of(mask_of(key, {12}, 0.4, 8, width)), rows_of(whole, 16, 24));
    EXPECT_EQ(values_of(mask_of(key, {10, 11}, 0.4, 8, width)), rows_of(whole, 0, 16));
    // Two ranks that share each window, 3 tokens and 5.
    EXPECT_EQ(values_of(mask_of(key, {11}, 0.4, 3, width)), rows_of(whole, 8, 11));
    EXPECT_EQ(values_of(mask_of(key, {11}, 0.4, 5, width, 3)), rows_of(whole, 11, 16));
  }
}

TEST(DropoutMaskTest, drops_at_the_rate_and_keeps_the_mean) {
  for (double const rate : {0.1, 0.5, 0.9}) {
    constexpr std::int64_t count = 64 * 4096;
    std::vector<double> const mask = values_of(mask_of(key, {1, 2, 3, 4}, rate, 1024, 64));
    double kept = 0;
    for (double const value : mask) kept += value > 0 ? 1 : 0;
    // Five standard deviations of the binomial distribution.
    double const deviation = std::sqrt(rate * (1 - rate) / count);
    EXPECT_NEAR(kept / count, 1 - rate, 5 * deviation);
    for (double const value : mask) {
      if (value > 0) {
        ASSERT_FLOAT_EQ(static_cast<float>(value), static_cast<float>(1 / (1 - rate)));
      }
    }
  }
}

TEST(DropoutMaskTest, differs_in_everything_it_is_keyed_by) {
  constexpr std::int64_t count = 64 * 64;
  std::vector<double> const mask = values_of(mask_of(key, {1}, 0.5, 64, 64));
  std::vector<std::vector<double>> const others{
      values_of(mask_of({1235, 7, 42}, {1}, 0.5, 64, 64)),
      values_of(mask_of({1234, 8, 42}, {1}, 0.5, 64, 64)),
      values_of(mask_of({1234, 7, 43}, {1}, 0.5, 64, 64)),
      values_of(mask_of({1234, 42, 7}, {1}, 0.5, 64, 64)),
      values_of(mask_of(key, {2}, 0.5, 64, 64)),
      values_of(mask_of(key, {1}, 0.5, 64, 64, 1)),
  };
  for (std::vector<double> const& other : others) {
    double equal = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) equal += mask[i] == other[i] ? 1 : 0;
    // Independent masks agree on half of the elements, within five standard deviations.
    EXPECT_NEAR(equal / count, 0.5, 5 * std::sqrt(0.25 / count));
  }
}

TEST(DropoutShapeTest, wrong_shapes_and_rates_are_bugs) {
  View2<float> const x("x", 10, 8);
  EXPECT_THROW(dropout<float>(Exec{}, key, samples_of({1}), 0.5, 5, x), Error);
  EXPECT_THROW(dropout<float>(Exec{}, key, samples_of({1, 2}), 1.0, 5, x), Error);
  EXPECT_THROW(dropout<float>(Exec{}, key, samples_of({1, 2}), -0.1, 5, x), Error);
}

}  // namespace
}  // namespace motley::kernels
