#include "kernels/cast.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/element_types.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/threads.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using test::is_close;
using test::random_view;
using test::values_of;

constexpr std::int64_t counts[] = {1, 15, 16384, 16387, 50001};

template <class T>
class CastTest : public testing::Test {};
TYPED_TEST_SUITE(CastTest, test::ElementTypes, test::ElementTypeNames);

TYPED_TEST(CastTest, from_float_rounds_each_element) {
  for (std::int64_t const count : counts) {
    View1<float> const x = random_view<float>("x", count, 1);
    View1<TypeParam> const y("y", x.extent(0));
    cast<TypeParam, float>(test::exec_with_threads(2), x, y);
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      ASSERT_EQ(static_cast<float>(y(i)), static_cast<float>(static_cast<TypeParam>(x(i))));
    }
  }
}

TYPED_TEST(CastTest, there_and_back_loses_nothing) {
  View1<TypeParam> const x = random_view<TypeParam>("x", 1000, 1);
  View1<double> const wide("wide", 1000);
  View1<TypeParam> const back("back", 1000);
  cast<double, TypeParam>(Exec{}, x, wide);
  cast<TypeParam, double>(Exec{}, wide, back);
  EXPECT_EQ(values_of(back), values_of(x));
  EXPECT_EQ(values_of(wide), values_of(x));
}

TEST(CastToBFloat16Test, vector_loop_rounds_as_the_standard_says) {
  // Half-way cases go to the even neighbour; beyond the largest number to infinity; NaN stays.
  float const infinity = std::numeric_limits<float>::infinity();
  std::vector<float> const inputs{0x1.01p0F,
                                  0x1.03p0F,
                                  0x1.010002p0F,
                                  -0x1.03p0F,
                                  0x1.FFp127F,
                                  0x1.FEFFFEp127F,
                                  infinity,
                                  -infinity,
                                  -0.0F,
                                  0x1p-133F};
  std::vector<float> const expected{0x1.00p0F,
                                    0x1.04p0F,
                                    0x1.02p0F,
                                    -0x1.04p0F,
                                    infinity,
                                    0x1.FEp127F,
                                    infinity,
                                    -infinity,
                                    -0.0F,
                                    0x1p-133F};
  View1<float> const x("x", 64);
  View1<BFloat16> const y("y", 64);
  for (std::size_t i = 0; i < 64; ++i) x(i) = inputs[i % inputs.size()];
  x(63) = std::numeric_limits<float>::quiet_NaN();
  cast<BFloat16, float>(Exec{}, x, y);
  for (std::size_t i = 0; i < 63; ++i) {
    EXPECT_EQ(float{y(i)}, expected[i % inputs.size()]) << inputs[i % inputs.size()];
    EXPECT_EQ(std::signbit(float{y(i)}), std::signbit(expected[i % inputs.size()]));
  }
  EXPECT_TRUE(std::isnan(float{y(63)}));
}

TYPED_TEST(CastTest, fill_scale_and_axpy_equal_their_formulas) {
  using A = Accumulator<TypeParam>;
  for (std::int64_t const count : counts) {
    View1<TypeParam> const x = random_view<TypeParam>("x", count, 1);
    View1<TypeParam> const y = random_view<TypeParam>("y", count, 2);
    std::vector<double> sum = values_of(y);
    std::vector<double> scaled = values_of(x);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += 0.75 * scaled[i];
      scaled[i] *= -1.5;
    }
    test::Tolerance const rule{dtype_of<TypeParam>, 1};
    axpy<TypeParam>(Exec{}, A{0.75F}, x, y);
    EXPECT_TRUE(is_close("axpy", values_of(y), sum, rule));
    scale<TypeParam>(Exec{}, A{-1.5F}, x);
    EXPECT_TRUE(is_close("scale", values_of(x), scaled, rule));
    fill<TypeParam>(Exec{}, static_cast<TypeParam>(A{0.5F}), x);
    EXPECT_EQ(values_of(x), std::vector<double>(x.extent(0), 0.5));
  }
}

TEST(CastShapeTest, wrong_shapes_are_bugs) {
  View1<float> const eight("eight", 8);
  View1<float> const seven("seven", 7);
  EXPECT_THROW((cast<float, float>(Exec{}, eight, seven)), Error);
  EXPECT_THROW(axpy<float>(Exec{}, 1.0F, eight, seven), Error);
}

}  // namespace
}  // namespace motley::kernels
