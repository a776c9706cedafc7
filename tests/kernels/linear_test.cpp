#include "kernels/linear.hpp"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "kernels/reference/matmul.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using reference::Matrix;
using test::is_close;
using test::random_view;
using test::values_of;

struct Sizes {
  std::int64_t rows, in, out;
};

/// An operator with its engine and memory, and random operands with padded rows.
template <class T>
struct Linear {
  using A = Accumulator<T>;

  Linear(WeightOrder order,
         Sizes const& s,
         MatmulConfig const& config = {},
         std::int64_t max_rows = 0)
      : engine{config}, arena{Arena::counting()} {
    LinearSpec const spec{"test", order, s.in, s.out, max_rows == 0 ? s.rows : max_rows};
    {
      LinearOperator<T> const sizes{engine, arena, spec};
      engine.allocate_workspace(arena);
    }
    arena = Arena{arena.used_bytes()};
    product.emplace(engine, arena, spec);
    engine.allocate_workspace(arena);
    bool const is_out_in = order == WeightOrder::out_in;
    weight = random_view<T>("weight", is_out_in ? s.out : s.in, is_out_in ? s.in : s.out, 1, 5);
    x = random_view<T>("x", s.rows, s.in, 2, 3);
    dy = random_view<T>("dy", s.rows, s.out, 3, 1);
    product->pack(exec, weight);
    Matrix const stored = reference::matrix_of(weight);
    w = is_out_in ? reference::transpose(stored) : stored;
  }

  Exec exec;
  MatmulEngine engine;
  Arena arena;
  std::optional<LinearOperator<T>> product;
  View2<T> weight, x, dy;
  Matrix w{0, 0};  ///< [in, out]
};

template <class T>
class LinearTest : public testing::Test {};
struct TypeNames {
  template <class T>
  static std::string GetName(
      int /*index*/) {  // NOLINT(readability-identifier-naming): GoogleTest's name
    return std::string{to_string(dtype_of<T>)};
  }
};
using Types = testing::Types<float, BFloat16, double>;
TYPED_TEST_SUITE(LinearTest, Types, TypeNames);

constexpr Sizes odd_sizes[] = {
    {1, 1, 1}, {1, 37, 53}, {7, 64, 1}, {33, 1, 65}, {130, 131, 259}, {65, 300, 17}};
constexpr WeightOrder orders[] = {WeightOrder::out_in, WeightOrder::in_out};

TYPED_TEST(LinearTest, forward_equals_the_reference_for_odd_sizes) {
  using T = TypeParam;
  for (Sizes const& s : odd_sizes) {
    for (WeightOrder const order : orders) {
      Linear<T> linear{order, s};
      View2<T> const y = random_view<T>("y", s.rows, s.out, 9, 2);
      linear.product->forward(linear.exec, linear.x, {}, y);
      linear.exec.fence("motley::tests::LinearTest::fence");
      Matrix const expected = reference::multiply(reference::matrix_of(linear.x), linear.w);
      EXPECT_TRUE(is_close("y", values_of(y), expected.values, {dtype_of<T>, s.in}));
    }
  }
}

TYPED_TEST(LinearTest, weight_gradient_overwrites_or_accumulates) {
  using T = TypeParam;
  Sizes const s{33, 65, 130};
  for (WeightOrder const order : orders) {
    Linear<T> linear{order, s};
    bool const is_out_in = order == WeightOrder::out_in;
    std::int64_t const rows = is_out_in ? s.out : s.in;
    std::int64_t const columns = is_out_in ? s.in : s.out;
    Matrix expected = reference::multiply(reference::transpose(reference::matrix_of(linear.x)),
                                          reference::matrix_of(linear.dy));
    if (is_out_in) expected = reference::transpose(expected);
    auto const dweight = random_view<Accumulator<T>>("dweight", rows, columns, 9, 0);
    linear.product->backward_weight(linear.exec, linear.x, linear.dy, dweight, Accumulate::no);
    linear.exec.fence("motley::tests::LinearTest::fence");
    EXPECT_TRUE(is_close("once", values_of(dweight), expected.values, {dtype_of<T>, s.rows}));
    linear.product->backward_weight(linear.exec, linear.x, linear.dy, dweight, Accumulate::yes);
    linear.exec.fence("motley::tests::LinearTest::fence");
    for (double& value : expected.values) value *= 2;
    EXPECT_TRUE(is_close("twice", values_of(dweight), expected.values, {dtype_of<T>, s.rows}));
  }
}

}  // namespace
}  // namespace motley::kernels
