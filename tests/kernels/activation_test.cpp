#include "kernels/activation.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "kernels/reference/activation.hpp"
#include "tests/kernels/element_types.hpp"
#include "tests/kernels/finite_differences.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/threads.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using reference::Matrix;
using test::is_close;
using test::random_view;
using test::values_of;

struct Sizes {
  std::int64_t rows, width;
};

constexpr Sizes sizes[] = {{1, 1}, {1, 7}, {3, 33}, {70, 129}};

/// Random numbers in [-12, 12): from where activations vanish to where they are the identity.
template <class T>
View2<T> wide_view(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  View2<T> const view = random_view<T>("wide", rows, columns, seed, 3);
  for (std::size_t i = 0; i < view.extent(0); ++i) {
    for (std::size_t j = 0; j < view.extent(1); ++j) {
      view(i, j) = static_cast<T>(Accumulator<T>{12} * static_cast<Accumulator<T>>(view(i, j)));
    }
  }
  return view;
}

template <class T>
class ActivationTest : public testing::Test {};
TYPED_TEST_SUITE(ActivationTest, test::ElementTypes, test::ElementTypeNames);

TYPED_TEST(ActivationTest, gelu_equals_the_reference) {
  for (auto const [rows, width] : sizes) {
    View2<TypeParam> const x = wide_view<TypeParam>(rows, width, 1);
    View2<TypeParam> const dy = random_view<TypeParam>("dy", rows, width, 2, 1);
    View2<TypeParam> const y = random_view<TypeParam>("y", rows, width, 3, 2);
    Matrix const input = reference::matrix_of(x);
    Matrix const gradient = reference::matrix_of(dy);
    gelu_forward<TypeParam>(Exec{}, x, y);
    gelu_backward<TypeParam>(Exec{}, x, dy, dy);  // in place
    Exec{}.fence();
    test::Tolerance const rule{dtype_of<TypeParam>, 1};
    EXPECT_TRUE(is_close("y", values_of(y), reference::gelu_forward(input).values, rule));
    EXPECT_TRUE(
        is_close("dx", values_of(dy), reference::gelu_backward(input, gradient).values, rule));
  }
}

TYPED_TEST(ActivationTest, swiglu_equals_the_reference) {
  for (auto const [rows, width] : sizes) {
    View2<TypeParam> const gate_up = wide_view<TypeParam>(rows, 2 * width, 1);
    View2<TypeParam> const dy = random_view<TypeParam>("dy", rows, width, 2, 1);
    View2<TypeParam> const y = random_view<TypeParam>("y", rows, width, 3, 2);
    Matrix const input = reference::matrix_of(gate_up);
    Matrix const gradient = reference::matrix_of(dy);
    swiglu_forward<TypeParam>(Exec{}, gate_up, y);
    swiglu_backward<TypeParam>(Exec{}, gate_up, dy, gate_up);  // in place
    Exec{}.fence();
    test::Tolerance const rule{dtype_of<TypeParam>, 1};
    EXPECT_TRUE(is_close("y", values_of(y), reference::swiglu_forward(input).values, rule));
    EXPECT_TRUE(is_close(
        "dx", values_of(gate_up), reference::swiglu_backward(input, gradient).values, rule));
  }
}

TYPED_TEST(ActivationTest, huge_arguments_give_their_limits) {
  using A = Accumulator<TypeParam>;
  View2<TypeParam> const x("x", 1, 2);
  View2<TypeParam> const y("y", 1, 2);
  x(0, 0) = static_cast<TypeParam>(A{1e4F});
  x(0, 1) = static_cast<TypeParam>(A{-1e4F});
  gelu_forward<TypeParam>(Exec{}, x, y);
  Exec{}.fence();
  EXPECT_EQ(static_cast<A>(y(0, 0)), static_cast<A>(x(0, 0)));
  EXPECT_EQ(static_cast<A>(y(0, 1)), A{0});
  View2<TypeParam> const ones("ones", 1, 2);
  Kokkos::deep_copy(ones, static_cast<TypeParam>(A{1}));
  gelu_backward<TypeParam>(Exec{}, x, ones, y);
  Exec{}.fence();
  EXPECT_EQ(static_cast<A>(y(0, 0)), A{1});
  EXPECT_EQ(static_cast<A>(y(0, 1)), A{0});
}

TYPED_TEST(ActivationTest, nan_stays_visible) {
  using A = Accumulator<TypeParam>;
  View2<TypeParam> const x("x", 1, 2);
  View2<TypeParam> const y("y", 1, 2);
  View2<TypeParam> const half("half", 1, 1);
  x(0, 1) = static_cast<TypeParam>(A{std::numeric_limits<A>::quiet_NaN()});
  gelu_forward<TypeParam>(Exec{}, x, y);
  swiglu_forward<TypeParam>(Exec{}, x, half);
  Exec{}.fence();
  EXPECT_TRUE(std::isnan(static_cast<A>(y(0, 1))));
  EXPECT_TRUE(std::isnan(static_cast<A>(half(0, 0))));
}

TYPED_TEST(ActivationTest, bits_do_not_depend_on_the_number_of_threads) {
  View2<TypeParam> const x = wide_view<TypeParam>(301, 66, 1);
  View2<TypeParam> const one = random_view<TypeParam>("one", 301, 66, 2);
  View2<TypeParam> const two = random_view<TypeParam>("two", 301, 66, 3);
  gelu_forward<TypeParam>(test::exec_with_threads(1), x, one);
  gelu_forward<TypeParam>(test::exec_with_threads(2), x, two);
  EXPECT_EQ(values_of(one), values_of(two));
}

TEST(ActivationGradientTest, gradients_are_derivatives) {
  View2<double> const x = random_view<double>("x", 4, 9, 1);
  View2<double> const y("y", 4, 9);
  View2<double> const dy = random_view<double>("dy", 4, 9, 2);
  View2<double> const dx("dx", 4, 9);
  gelu_backward<double>(Exec{}, x, dy, dx);
  EXPECT_TRUE(test::is_gradient("gelu", x, dx, [&] {
    gelu_forward<double>(Exec{}, x, y);
    return test::inner_product(dy, y);
  }));
  View2<double> const gate_up = random_view<double>("gate_up", 4, 18, 3);
  View2<double> const d_gate_up("d_gate_up", 4, 18);
  swiglu_backward<double>(Exec{}, gate_up, dy, d_gate_up);
  EXPECT_TRUE(test::is_gradient("swiglu", gate_up, d_gate_up, [&] {
    swiglu_forward<double>(Exec{}, gate_up, y);
    return test::inner_product(dy, y);
  }));
}

TEST(ActivationShapeTest, wrong_shapes_are_bugs) {
  View2<float> const x("x", 3, 8);
  View2<float> const narrow("narrow", 3, 7);
  View2<float> const half("half", 3, 4);
  EXPECT_THROW(gelu_forward<float>(Exec{}, x, narrow), Error);
  EXPECT_THROW(gelu_backward<float>(Exec{}, x, x, narrow), Error);
  EXPECT_THROW(gelu_backward<float>(Exec{}, x, narrow, x), Error);
  EXPECT_THROW(swiglu_forward<float>(Exec{}, x, narrow), Error);
  EXPECT_THROW(swiglu_backward<float>(Exec{}, x, half, half), Error);
  EXPECT_THROW(swiglu_backward<float>(Exec{}, narrow, half, x), Error);
}

}  // namespace
}  // namespace motley::kernels
