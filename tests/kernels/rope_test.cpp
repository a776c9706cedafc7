#include "kernels/rope.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"
#include "kernels/reference/rope.hpp"
#include "tests/kernels/element_types.hpp"
#include "tests/kernels/finite_differences.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using test::is_close;
using test::random_view;
using test::values_of;

constexpr AttentionShape shapes[] = {
    {1, 1, 1, 1, 2}, {2, 7, 3, 1, 10}, {1, 33, 4, 2, 64}, {3, 5, 2, 2, 80}};
constexpr double theta = 10000.0;

/// A table in an arena that just holds it.
template <class A>
struct Table {
  explicit Table(RopeSpec const& spec)
      : arena{bytes(spec)}, table{make_rope_table<A>({}, arena, spec)} {}
  static std::size_t bytes(RopeSpec const& spec) {
    Arena counting = Arena::counting();
    static_cast<void>(make_rope_table<A>({}, counting, spec));
    return counting.used_bytes();
  }
  Arena arena;
  RopeTable<A> table;
};

template <class T>
class RopeTest : public testing::Test {};
TYPED_TEST_SUITE(RopeTest, test::ElementTypes, test::ElementTypeNames);

TYPED_TEST(RopeTest, forward_and_backward_equal_the_reference) {
  using T = TypeParam;
  for (AttentionShape const& s : shapes) {
    Table<Accumulator<T>> const rope{{theta, s.head_width, s.tokens + 3}};
    for (double const direction : {1.0, -1.0}) {
      View2<T> const qkv = random_view<T>("qkv", s.rows(), s.qkv_columns(), 1, 3);
      auto const expected = reference::rotate(s, theta, direction, reference::matrix_of(qkv));
      if (direction > 0.0) {
        rope_forward<T>({}, s, rope.table, qkv);
      } else {
        rope_backward<T>({}, s, rope.table, qkv);
      }
      EXPECT_TRUE(is_close("qkv", values_of(qkv), expected.values, {dtype_of<T>, 2}))
          << "T " << s.tokens << " H " << s.head_width << " direction " << direction;
    }
  }
}

TYPED_TEST(RopeTest, values_and_padding_stay_as_they_are) {
  using T = TypeParam;
  AttentionShape const s{2, 5, 2, 1, 6};
  Table<Accumulator<T>> const rope{{theta, s.head_width, s.tokens}};
  View2<T> const qkv = random_view<T>("qkv", s.rows(), s.qkv_columns(), 1, 3);
  auto const before = reference::matrix_of(qkv);
  rope_forward<T>({}, s, rope.table, qkv);
  auto const after = reference::matrix_of(qkv);
  for (std::int64_t row = 0; row < s.rows(); ++row) {
    for (std::int64_t c = s.value_column(0); c < s.qkv_columns(); ++c) {
      EXPECT_EQ(after(row, c), before(row, c));
    }
    for (std::int64_t c = s.qkv_columns(); c < s.qkv_columns() + 3; ++c) {
      EXPECT_TRUE(std::isnan(
          static_cast<double>(qkv.data()[row * static_cast<std::int64_t>(qkv.stride(0)) + c])));
    }
  }
}

TEST(RopeTableTest, angles_follow_from_position_and_column) {
  // H = 4, theta = 100: the two frequencies are 1 and 1/10.
  Table<double> const rope{{100.0, 4, 32}};
  EXPECT_DOUBLE_EQ(rope.table.cosine(0, 0), 1.0);
  EXPECT_DOUBLE_EQ(rope.table.sine(0, 1), 0.0);
  EXPECT_NEAR(rope.table.cosine(3, 0), std::cos(3.0), 1e-15);
  EXPECT_NEAR(rope.table.sine(31, 1), std::sin(3.1), 1e-15);
}

TEST(RopeTableTest, scores_depend_on_the_distance_of_tokens_only) {
  // One head, the same query and the same key at every token: q_i · k_j after the rotation must be
  // the same for all (i, j) with the same i - j, and differ between distances.
  AttentionShape const s{1, 12, 1, 1, 8};
  Table<double> const rope{{theta, s.head_width, s.tokens}};
  View2<double> const row = random_view<double>("row", 1, s.qkv_columns(), 5);
  View2<double> const qkv("qkv", 12, static_cast<std::size_t>(s.qkv_columns()));
  for (std::size_t t = 0; t < 12; ++t) {
    for (std::size_t c = 0; c < qkv.extent(1); ++c) qkv(t, c) = row(0, c);
  }
  rope_forward<double>({}, s, rope.table, qkv);
  auto const score = [&](std::int64_t i, std::int64_t j) {
    double sum = 0.0;
    for (std::int64_t d = 0; d < 8; ++d) sum += qkv(i, d) * qkv(j, s.key_column(0) + d);
    return sum;
  };
  for (std::int64_t i = 3; i < 12; ++i) EXPECT_NEAR(score(i, i - 3), score(3, 0), 1e-14);
  EXPECT_GT(std::abs(score(4, 0) - score(3, 0)), 1e-3);
}

TEST(RopeTableTest, backward_is_the_gradient) {
  AttentionShape const s{2, 3, 2, 1, 4};
  Table<double> const rope{{theta, s.head_width, s.tokens}};
  View2<double> const x = random_view<double>("x", s.rows(), s.qkv_columns(), 1);
  View2<double> const dy = random_view<double>("dy", s.rows(), s.qkv_columns(), 2);
  View2<double> const dx("dx", x.extent(0), x.extent(1));
  Kokkos::deep_copy(dx, dy);
  rope_backward<double>({}, s, rope.table, dx);
  View2<double> const y("y", x.extent(0), x.extent(1));
  EXPECT_TRUE(test::is_gradient("dx", x, dx, [&] {
    Kokkos::deep_copy(y, x);
    rope_forward<double>({}, s, rope.table, y);
    return test::inner_product(dy, y);
  }));
}

template <class Call>
void expect_bug(Call const& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug) << error.what();
  }
}

TEST(RopeTableTest, impossible_sizes_are_refused) {
  Arena counting = Arena::counting();
  expect_bug([&] { static_cast<void>(make_rope_table<float>({}, counting, {theta, 5, 8})); });
  expect_bug([&] { static_cast<void>(make_rope_table<float>({}, counting, {theta, 4, 0})); });
  expect_bug([&] { static_cast<void>(make_rope_table<float>({}, counting, {-1.0, 4, 8})); });

  AttentionShape const s{1, 6, 1, 1, 4};
  Table<float> const too_short{{theta, 4, 5}};
  Table<float> const other_width{{theta, 8, 6}};
  View2<float> const qkv("qkv", 6, 12);
  expect_bug([&] { rope_forward<float>({}, s, too_short.table, qkv); });
  expect_bug([&] { rope_forward<float>({}, s, other_width.table, qkv); });
}

}  // namespace
}  // namespace motley::kernels
