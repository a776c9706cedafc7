#include "kernels/reduce.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/reduce.hpp"
#include "tests/kernels/element_types.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/threads.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using test::is_close;
using test::random_view;
using test::values_of;

// Around the sizes of the tiles (4096 and 32768) and of the streams of a sum.
constexpr std::int64_t counts[] = {1, 3, 5, 4095, 4097, 32768, 32769, 100003};

template <class A>
struct Sums {
  explicit Sums(View1<A> const& numbers, Exec const& exec = {}) {
    View1<double> const out("out", 1);
    View1<double> const workspace(
        "workspace", static_cast<std::size_t>(reduce_workspace_size(numbers.extent_int(0))));
    kernels::sum<A>(exec, numbers, out, workspace);
    exec.fence();
    plain = out(0);
    kernels::square_sum<A>(exec, numbers, out, workspace);
    exec.fence();
    squares = out(0);
  }
  double plain = 0;
  double squares = 0;
};

template <class A>
class SumTest : public testing::Test {};
using SumTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(SumTest, SumTypes, test::ElementTypeNames);

TYPED_TEST(SumTest, equals_the_reference_in_double) {
  for (std::int64_t const count : counts) {
    View1<TypeParam> const x = random_view<TypeParam>("x", count, 1);
    Sums<TypeParam> const sums{x};
    std::vector<double> const values = values_of(x);
    // A sum that cancels is compared on the scale of its terms.
    double const scale = std::sqrt(reference::square_sum(values));
    double const allowed = 4 * epsilon(DType::fp64) * std::sqrt(static_cast<double>(count)) * scale;
    EXPECT_NEAR(sums.plain, reference::sum(values), allowed);
    EXPECT_TRUE(is_close("squares",
                         std::vector{sums.squares},
                         std::vector{reference::square_sum(values)},
                         {DType::fp64, count}));
  }
}

TYPED_TEST(SumTest, does_not_overflow_where_a_float_would) {
  View1<TypeParam> const x("x", 1000);
  Kokkos::deep_copy(x, TypeParam{1e30F});
  double const value{TypeParam{1e30F}};
  EXPECT_TRUE(is_close("squares",
                       std::vector{Sums<TypeParam>{x}.squares},
                       std::vector{1000 * value * value},
                       {DType::fp64, 1000}));
}

TYPED_TEST(SumTest, bits_do_not_depend_on_the_number_of_threads) {
  View1<TypeParam> const x = random_view<TypeParam>("x", 300001, 1);
  Sums<TypeParam> const one{x, test::exec_with_threads(1)};
  Sums<TypeParam> const two{x, test::exec_with_threads(2)};
  EXPECT_EQ(one.plain, two.plain);
  EXPECT_EQ(one.squares, two.squares);
}

TYPED_TEST(SumTest, of_nothing_is_zero) {
  Sums<TypeParam> const sums{View1<TypeParam>("none", 0)};
  EXPECT_EQ(sums.plain, 0.0);
  EXPECT_EQ(sums.squares, 0.0);
}

template <class T>
class ReduceTest : public testing::Test {};
TYPED_TEST_SUITE(ReduceTest, test::ElementTypes, test::ElementTypeNames);

TYPED_TEST(ReduceTest, first_non_finite_finds_the_first_of_each_kind) {
  using A = Accumulator<TypeParam>;
  A const infinity = std::numeric_limits<A>::infinity();
  for (std::int64_t const count : counts) {
    View1<TypeParam> const x = random_view<TypeParam>("x", count, 1);
    EXPECT_EQ(first_non_finite<TypeParam>(Exec{}, x), -1);
    x(static_cast<std::size_t>(count - 1)) = static_cast<TypeParam>(infinity);
    EXPECT_EQ(first_non_finite<TypeParam>(Exec{}, x), count - 1);
    x(static_cast<std::size_t>(count / 2)) = static_cast<TypeParam>(-infinity);
    EXPECT_EQ(first_non_finite<TypeParam>(Exec{}, x), count / 2);
    x(static_cast<std::size_t>(count / 3)) =
        static_cast<TypeParam>(std::numeric_limits<A>::quiet_NaN());
    EXPECT_EQ(first_non_finite<TypeParam>(Exec{}, x), count / 3);
    EXPECT_EQ(first_non_finite<TypeParam>(test::exec_with_threads(2), x),
              reference::first_non_finite(values_of(x)));
  }
}

TYPED_TEST(ReduceTest, the_largest_finite_numbers_are_finite) {
  using A = Accumulator<TypeParam>;
  View1<TypeParam> const x("x", 3);
  x(0) = static_cast<TypeParam>(A{3.3e38F});  // close to the largest of float and bfloat16
  x(1) = static_cast<TypeParam>(A{-3.3e38F});
  x(2) = static_cast<TypeParam>(std::numeric_limits<A>::denorm_min());
  EXPECT_EQ(first_non_finite<TypeParam>(Exec{}, x), -1);
  EXPECT_EQ(first_non_finite<TypeParam>(Exec{}, View1<TypeParam>("none", 0)), -1);
}

TYPED_TEST(ReduceTest, column_sum_adds_what_the_reference_does) {
  using A = Accumulator<TypeParam>;
  for (std::int64_t const rows : {1, 63, 64, 65, 1000}) {
    for (std::int64_t const columns : {1, 63, 64, 200}) {
      View2<TypeParam> const dy = random_view<TypeParam>("dy", rows, columns, 1, 3);
      View1<A> const dbias = random_view<A>("dbias", columns, 2);
      std::vector<double> expected = reference::column_sum(reference::matrix_of(dy));
      std::vector<double> const before = values_of(dbias);
      for (std::size_t j = 0; j < expected.size(); ++j) expected[j] += before[j];
      column_sum<TypeParam>(test::exec_with_threads(2), dy, dbias);
      EXPECT_TRUE(is_close("dbias", values_of(dbias), expected, {dtype_of<A>, rows}));
    }
  }
}

TYPED_TEST(ReduceTest, column_sum_bits_do_not_depend_on_the_number_of_threads) {
  using A = Accumulator<TypeParam>;
  View2<TypeParam> const dy = random_view<TypeParam>("dy", 700, 300, 1);
  View1<A> const one("one", 300);
  View1<A> const two("two", 300);
  column_sum<TypeParam>(test::exec_with_threads(1), dy, one);
  column_sum<TypeParam>(test::exec_with_threads(2), dy, two);
  EXPECT_EQ(values_of(one), values_of(two));
}

TEST(ReduceShapeTest, wrong_shapes_are_bugs) {
  View1<float> const x("x", 40000);
  View1<double> const one("one", 1);
  View1<double> const two("two", 2);
  EXPECT_THROW(square_sum<float>(Exec{}, x, one, one), Error);
  EXPECT_THROW(square_sum<float>(Exec{}, x, two, two), Error);
  EXPECT_THROW(sum<float>(Exec{}, x, one, one), Error);
  EXPECT_THROW(column_sum<float>(Exec{}, View2<float>("dy", 3, 4), View1<float>("b", 3)), Error);
}

}  // namespace
}  // namespace motley::kernels
