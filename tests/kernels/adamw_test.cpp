#include "kernels/adamw.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/adamw.hpp"
#include "tests/kernels/element_types.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/threads.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using test::is_close;
using test::random_view;
using test::values_of;

AdamWStep usual_step(std::int64_t step) {
  AdamWStep result;
  result.lr = 1e-2;
  result.weight_decay = 0.1;
  result.step = step;
  result.gradient_scale = 0.5;
  return result;
}

/// State of an optimizer over `count` elements, and new gradients at each step.
template <class T>
struct Optimizer {
  using A = Accumulator<T>;

  explicit Optimizer(std::int64_t count)
      : master{random_view<A>("master", count, 1)}, m("m", size(count)), v("v", size(count)) {
    if constexpr (std::is_same_v<T, A>) {
      param = master;
    } else {
      param = View1<T>("param", size(count));
    }
  }
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

  View1<A> step(AdamWStep const& numbers, Exec const& exec = {}) const {
    View1<A> const gradient = random_view<A>(
        "gradient", master.extent_int(0), 100 + static_cast<std::uint64_t>(numbers.step));
    adamw_step<T>(exec, numbers, gradient, master, m, v, param);
    exec.fence();
    return gradient;
  }

  View1<A> master, m, v;
  View1<T> param;
};

template <class T>
class AdamWTest : public testing::Test {};
TYPED_TEST_SUITE(AdamWTest, test::ElementTypes, test::ElementTypeNames);

TYPED_TEST(AdamWTest, several_steps_equal_the_reference) {
  using A = Accumulator<TypeParam>;
  for (std::int64_t const count : {1, 7, 1000, 16385, 50000}) {
    Optimizer<TypeParam> const optimizer{count};
    std::vector<double> const zeros(optimizer.master.extent(0));
    reference::AdamWState expected{values_of(optimizer.master), zeros, zeros};
    std::vector<double> const start = expected.parameter;
    constexpr std::int64_t steps = 5;
    for (std::int64_t step = 1; step <= steps; ++step) {
      View1<A> const gradient = optimizer.step(usual_step(step));
      reference::adamw_step(usual_step(step), values_of(gradient), expected);
    }
    test::Tolerance const rule{dtype_of<A>, steps};
    EXPECT_TRUE(is_close("master", values_of(optimizer.master), expected.parameter, rule));
    EXPECT_TRUE(is_close("m", values_of(optimizer.m), expected.m, rule));
    EXPECT_TRUE(is_close("v", values_of(optimizer.v), expected.v, rule));
    EXPECT_TRUE(is_close(
        "param", values_of(optimizer.param), expected.parameter, {dtype_of<TypeParam>, steps}));
    // A comparison says something only if the parameters moved.
    std::vector<double> moved = start;
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= expected.parameter[i];
    double const tolerance = 4 * epsilon(dtype_of<A>) * std::sqrt(5.0);
    EXPECT_GT(test::root_mean_square(moved), 100 * tolerance * test::root_mean_square(start));
  }
}

TYPED_TEST(AdamWTest, first_step_moves_by_the_learning_rate_against_the_gradient) {
  using A = Accumulator<TypeParam>;
  Optimizer<TypeParam> const optimizer{9};
  std::vector<double> const before = values_of(optimizer.master);
  AdamWStep step = usual_step(1);
  step.weight_decay = 0;
  step.eps = 0;
  View1<A> const gradient = optimizer.step(step);
  // m̂ = g and v̂ = g², whatever the betas.
  std::vector<double> expected = before;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] -= std::copysign(step.lr, static_cast<double>(gradient(i)));
  }
  EXPECT_TRUE(is_close("master", values_of(optimizer.master), expected, {dtype_of<A>}));
}

TYPED_TEST(AdamWTest, zero_gradient_only_decays) {
  using A = Accumulator<TypeParam>;
  Optimizer<TypeParam> const optimizer{9};
  std::vector<double> expected = values_of(optimizer.master);
  View1<A> const zeros("zeros", 9);
  AdamWStep const step = usual_step(1);
  adamw_step<TypeParam>(
      Exec{}, step, zeros, optimizer.master, optimizer.m, optimizer.v, optimizer.param);
  Exec{}.fence();
  for (double& value : expected) value *= 1 - step.lr * step.weight_decay;
  EXPECT_TRUE(is_close("master", values_of(optimizer.master), expected, {dtype_of<A>}));
}

TYPED_TEST(AdamWTest, parameters_are_the_rounded_masters) {
  Optimizer<TypeParam> const optimizer{1000};
  static_cast<void>(optimizer.step(usual_step(1)));
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(static_cast<double>(optimizer.param(i)),
              static_cast<double>(static_cast<TypeParam>(optimizer.master(i))));
  }
}

TYPED_TEST(AdamWTest, bits_do_not_depend_on_the_number_of_threads) {
  Optimizer<TypeParam> const one{40000};
  Optimizer<TypeParam> const two{40000};
  static_cast<void>(one.step(usual_step(1), test::exec_with_threads(1)));
  static_cast<void>(two.step(usual_step(1), test::exec_with_threads(2)));
  EXPECT_EQ(values_of(one.master), values_of(two.master));
  EXPECT_EQ(values_of(one.v), values_of(two.v));
}

TEST(AdamWShapeTest, wrong_shapes_and_steps_are_bugs) {
  View1<float> const eight("eight", 8);
  View1<float> const seven("seven", 7);
  Exec const exec;
  EXPECT_THROW(adamw_step<float>(exec, usual_step(1), eight, seven, eight, eight, seven), Error);
  EXPECT_THROW(adamw_step<float>(exec, usual_step(1), eight, eight, seven, eight, eight), Error);
  EXPECT_THROW(adamw_step<float>(exec, usual_step(1), eight, eight, eight, seven, eight), Error);
  EXPECT_THROW(adamw_step<float>(exec, usual_step(0), eight, eight, eight, eight, eight), Error);
}

}  // namespace
}  // namespace motley::kernels
