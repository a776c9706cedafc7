#include "kernels/linear.hpp"

#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "kernels/base/error.hpp"
#include "tests/kernels/linear_cases.hpp"

namespace motley::kernels::test {
namespace {

/// A dtype and a way of multiplying that every CPU has. Products of bf16 by oneDNN have a test of
/// their own, since not every CPU has them.
template <class ElementType, ProductMode ModeValue>
struct Way {
  using T = ElementType;
  static MatmulConfig config() { return {ModeValue, {}}; }
  static std::string name() {
    return std::string{to_string(dtype_of<T>)} +
           (ModeValue == ProductMode::library ? "_library" : "_portable");
  }
};
using Ways = testing::Types<Way<float, ProductMode::library>,
                            Way<float, ProductMode::portable>,
                            Way<BFloat16, ProductMode::portable>,
                            Way<double, ProductMode::portable>>;
struct WayNames {
  template <class W>
  static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming)
    return W::name();
  }
};

template <class W>
class LinearTest : public testing::Test {};
TYPED_TEST_SUITE(LinearTest, Ways, WayNames);

TYPED_TEST(LinearTest, forward_equals_the_reference) {
  check_forward<typename TypeParam::T>(TypeParam::config());
}
TYPED_TEST(LinearTest, wide_forward_keeps_the_sums) {
  check_forward_wide<typename TypeParam::T>(TypeParam::config());
}
TYPED_TEST(LinearTest, every_epilogue_equals_the_reference) {
  check_epilogues<typename TypeParam::T>(TypeParam::config());
}
TYPED_TEST(LinearTest, backward_input_equals_the_reference) {
  check_backward_input<typename TypeParam::T>(TypeParam::config());
}
TYPED_TEST(LinearTest, weight_gradient_overwrites_or_accumulates) {
  check_backward_weight<typename TypeParam::T>(TypeParam::config());
}
TYPED_TEST(LinearTest, many_and_few_rows_with_one_operator) {
  check_many_and_few_rows<typename TypeParam::T>(TypeParam::config());
}
TYPED_TEST(LinearTest, repeats_bit_for_bit) {
  check_repeats_bit_for_bit<typename TypeParam::T>(TypeParam::config());
}
TYPED_TEST(LinearTest, a_changed_weight_is_packed_again) {
  check_packing_again<typename TypeParam::T>(TypeParam::config());
}

/// Σ_ij seed_ij y_ij for the forward product, in double.
double loss(Linear<double>& linear, View2<double> const& seed) {
  View2<double> const y("y", seed.extent(0), seed.extent(1));
  linear.product->pack(linear.exec, linear.weight);
  linear.product->forward(linear.exec, linear.x, {}, y);
  linear.fence();
  double sum = 0.0;
  for (std::size_t i = 0; i < y.extent(0); ++i) {
    for (std::size_t j = 0; j < y.extent(1); ++j) sum += seed(i, j) * y(i, j);
  }
  return sum;
}

/// (loss(v + 1) - loss(v - 1)) / 2 for each value: exact for a loss that is linear in it.
Matrix central_differences(Linear<double>& linear,
                           View2<double> const& values,
                           View2<double> const& seed) {
  Matrix result = reference::matrix_of(values);
  for (std::size_t i = 0; i < values.extent(0); ++i) {
    for (std::size_t j = 0; j < values.extent(1); ++j) {
      double const value = values(i, j);
      values(i, j) = value + 1.0;
      double const above = loss(linear, seed);
      values(i, j) = value - 1.0;
      double const below = loss(linear, seed);
      values(i, j) = value;
      result(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)) = (above - below) / 2.0;
    }
  }
  return result;
}

TEST(LinearGradientTest, gradients_equal_central_differences) {
  Sizes const s{3, 7, 5};
  for (WeightOrder const order : orders) {
    Linear<double> linear{{}, order, s};
    View2<double> const dx = random_view<double>("dx", s.rows, s.in, 9);
    View2<double> const dweight("dweight", linear.weight.extent(0), linear.weight.extent(1));
    linear.product->backward_input(linear.exec, linear.dy, dx, Accumulate::no);
    linear.product->backward_weight(linear.exec, linear.x, linear.dy, dweight, Accumulate::no);
    linear.fence();
    // The loss is a sum of this many products.
    Tolerance const tolerance{DType::fp64, s.rows * s.in * s.out};
    Matrix const dx_expected = central_differences(linear, linear.x, linear.dy);
    EXPECT_TRUE(is_close("dx", values_of(dx), dx_expected.values, tolerance));
    Matrix const dw_expected = central_differences(linear, linear.weight, linear.dy);
    EXPECT_TRUE(is_close("dw", values_of(dweight), dw_expected.values, tolerance));
  }
}

template <class Call>
std::string message_of_bug(Call const& call) {
  try {
    call();
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(LinearRefusalTest, views_of_other_shapes_are_refused) {
  Sizes const s{4, 6, 8};
  Linear<float> l{{}, WeightOrder::out_in, s};
  View2<float> const y = random_view<float>("y", s.rows, s.out, 1);
  View2<float> const dx = random_view<float>("dx", s.rows, s.in, 1);
  View2<float> const dweight = random_view<float>("dweight", s.out, s.in, 1);
  View1<float> const bias = random_view<float>("bias", s.out, 1);
  auto& op = *l.product;
  EXPECT_NE(message_of_bug([&] { op.forward(l.exec, l.dy, {}, y); }).find("[4, 6]"),
            std::string::npos);
  message_of_bug([&] { op.forward(l.exec, l.x, {}, dx); });
  message_of_bug([&] {
    op.forward(l.exec, l.x, {random_view<float>("b", 3, 1), {}, false, {}}, y);
  });
  message_of_bug([&] { op.forward(l.exec, l.x, {bias, dx, false, {}}, y); });
  message_of_bug([&] { op.forward(l.exec, l.x, {bias, {}, true, dx}, y); });
  message_of_bug([&] { op.forward_wide(l.exec, l.x, dx); });
  message_of_bug([&] { op.backward_input(l.exec, l.x, dx, Accumulate::no); });
  message_of_bug([&] { op.backward_input(l.exec, l.dy, y, Accumulate::no); });
  message_of_bug([&] { op.backward_weight(l.exec, l.x, l.x, dweight); });
  message_of_bug([&] { op.backward_weight(l.exec, l.x, l.dy, y); });
  message_of_bug([&] { op.pack(l.exec, l.x); });
}

TEST(LinearRefusalTest, more_rows_than_planned_are_refused) {
  Sizes const s{4, 6, 8};
  Linear<float> l{{}, WeightOrder::out_in, s, 3};
  View2<float> const y = random_view<float>("y", s.rows, s.out, 1);
  EXPECT_NE(message_of_bug([&] { l.product->forward(l.exec, l.x, {}, y); }).find("1 to 3"),
            std::string::npos);
}

TEST(LinearRefusalTest, calls_in_the_wrong_order_are_refused) {
  for (ProductMode const mode : {ProductMode::library, ProductMode::portable}) {
    Sizes const s{4, 6, 8};
    Exec const exec;
    MatmulEngine engine{{mode, {}}};
    Arena arena{1U << 22U};
    LinearSpec const spec{"early", WeightOrder::out_in, s.in, s.out, s.rows};
    LinearOperator<float> product{engine, arena, spec};
    View2<float> const x = random_view<float>("x", s.rows, s.in, 1);
    View2<float> const y = random_view<float>("y", s.rows, s.out, 1);
    EXPECT_NE(message_of_bug([&] { product.forward(exec, x, {}, y); }).find("\"early\""),
              std::string::npos);
    product.pack(exec, random_view<float>("weight", s.out, s.in, 1));
    EXPECT_NE(message_of_bug([&] { product.forward(exec, x, {}, y); }).find("allocate_workspace"),
              std::string::npos);
  }
}

TEST(LinearRefusalTest, a_forward_only_operator_has_no_gradients) {
  Sizes const s{4, 6, 8};
  Exec const exec;
  MatmulEngine engine;
  Arena arena{1U << 22U};
  LinearOperator<float> product{
      engine, arena, {"sampler", WeightOrder::out_in, s.in, s.out, s.rows, false}};
  engine.allocate_workspace(arena);
  View2<float> const x = random_view<float>("x", s.rows, s.in, 1);
  View2<float> const dy = random_view<float>("dy", s.rows, s.out, 1);
  View2<float> const dweight = random_view<float>("dweight", s.out, s.in, 1);
  product.pack(exec, dweight);
  message_of_bug([&] { product.backward_input(exec, dy, x, Accumulate::no); });
  message_of_bug([&] { product.backward_weight(exec, x, dy, dweight); });
}

TEST(MatmulEngineTest, memory_on_a_counting_arena_is_what_is_used) {
  for (ProductMode const mode : {ProductMode::library, ProductMode::portable}) {
    MatmulEngine engine{{mode, {}}};
    auto const build = [&](Arena& arena) {
      LinearOperator<float> const product{
          engine, arena, {"counted", WeightOrder::in_out, 100, 200, 50}};
      engine.allocate_workspace(arena);
      return arena.used_bytes();
    };
    Arena counting = Arena::counting();
    std::size_t const predicted = build(counting);
    Arena real{predicted};
    EXPECT_EQ(build(real), predicted);
  }
}

TEST(MatmulEngineTest, description_names_who_multiplies) {
  std::string const library = MatmulEngine{{ProductMode::library, {}}}.description();
  std::string const portable = MatmulEngine{{ProductMode::portable, {}}}.description();
  EXPECT_NE(library.find("fp32: oneDNN 2."), std::string::npos) << library;
  EXPECT_NE(portable.find("fp32: own tiles"), std::string::npos) << portable;
  EXPECT_NE(portable.find("bf16: widened"), std::string::npos) << portable;
  std::string const chosen = MatmulEngine{}.description();
  EXPECT_TRUE(chosen.starts_with("fp32: o")) << chosen;
}

TEST(MatmulEngineTest, peak_rate_is_that_of_a_processor) {
  Exec const exec;
  double const rate = MatmulEngine{}.measured_peak_flop_per_s(exec, DType::fp32);
  EXPECT_GT(rate, 1e8);
  EXPECT_LT(rate, 1e15);
}

#ifndef __SANITIZE_ADDRESS__  // its shadow memory faults by itself
TEST(MatmulEngineTest, a_steady_product_faults_no_page) {
  Sizes const s{300, 200, 400};
  Linear<float> l{{}, WeightOrder::out_in, s};
  View2<float> const y = l.dy;
  View2<float> const dx = random_view<float>("dx", s.rows, s.in, 1);
  View2<float> const dweight = random_view<float>("dweight", s.out, s.in, 1);
  auto const faults = [&] {
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_SELF, &before);
    l.product->pack(l.exec, l.weight);
    l.product->forward(l.exec, l.x, {}, y);
    l.product->backward_input(l.exec, y, dx, Accumulate::no);
    l.product->backward_weight(l.exec, l.x, y, dweight);
    l.fence();
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
  };
  faults();
  faults();
  EXPECT_EQ(faults(), 0);
}
#endif

}  // namespace
}  // namespace motley::kernels::test
