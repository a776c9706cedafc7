#include "kernels/base/shape.hpp"

#include <sstream>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"
#include "kernels/base/ids.hpp"
#include "kernels/base/named_tensor.hpp"
#include "kernels/base/view.hpp"

namespace motley {
namespace {

TEST(ShapeTest, counts_elements_and_rows) {
  Shape const shape{4, 1024, 768};
  EXPECT_EQ(shape.order(), 3);
  EXPECT_EQ(shape[1], 1024);
  EXPECT_EQ(shape.count(), 3145728);
  EXPECT_EQ(shape.row_count(), 786432);
  EXPECT_EQ(Shape{}.count(), 1);
  EXPECT_EQ((Shape{5}.row_count()), 1);
  EXPECT_EQ((Shape{3, 0, 7}.count()), 0);
}

TEST(ShapeTest, counts_beyond_32_bits) { EXPECT_EQ((Shape{70000, 70000}.count()), 4900000000); }

TEST(ShapeTest, is_printed_as_a_list) {
  std::ostringstream text;
  text << Shape{4, 1024, 768} << Shape{} << Interval{2, 5};
  EXPECT_EQ(text.str(), "[4, 1024, 768][][2, 5)");
}

TEST(ShapeTest, shapes_of_other_order_differ) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_NE((Shape{2}), (Shape{2, 0}));
}

TEST(ShapeTest, order_five_is_a_bug) { EXPECT_THROW((Shape{1, 2, 3, 4, 5}), Error); }

TEST(IntervalTest, is_half_open) {
  Interval const interval{2, 5};
  EXPECT_EQ(interval.size(), 3);
  EXPECT_FALSE(interval.contains(1));
  EXPECT_TRUE(interval.contains(2));
  EXPECT_TRUE(interval.contains(4));
  EXPECT_FALSE(interval.contains(5));
  EXPECT_TRUE((Interval{5, 5}.is_empty()));
  EXPECT_FALSE(interval.is_empty());
}

TEST(IntervalTest, intersections_are_what_both_contain) {
  for (std::int64_t a0 = 0; a0 < 5; ++a0) {
    for (std::int64_t a1 = a0; a1 < 5; ++a1) {
      for (std::int64_t b0 = 0; b0 < 5; ++b0) {
        for (std::int64_t b1 = b0; b1 < 5; ++b1) {
          Interval const a{a0, a1};
          Interval const b{b0, b1};
          Interval const both = intersect(a, b);
          EXPECT_GE(both.size(), 0);
          for (std::int64_t i = 0; i < 5; ++i) {
            EXPECT_EQ(both.contains(i), a.contains(i) && b.contains(i));
          }
        }
      }
    }
  }
}

TEST(ExpectShapeTest, names_the_view_and_both_shapes) {
  View2<float> const view("activations", 3, 4);
  EXPECT_EQ(shape_of(view), (Shape{3, 4}));
  EXPECT_NO_THROW(expect_shape(view, {3, 4}));
  try {
    expect_shape(view, {3, 5});
    ADD_FAILURE() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug);
    std::string_view const text = error.what();
    for (char const* part : {"\"activations\"", "[3, 4]", "[3, 5]"}) {
      EXPECT_NE(text.find(part), std::string_view::npos) << text;
    }
  }
}

TEST(NamedTensorTest, counts_what_is_here) {
  NamedTensor tensor;
  tensor.shape = {50257, 768};
  tensor.interval = {64, 128};
  tensor.dtype = DType::bf16;
  EXPECT_EQ(tensor.count(), 64 * 768);
  EXPECT_EQ(tensor.bytes(), 2U * 64 * 768);
}

TEST(IdTest, ids_of_different_things_do_not_mix) {
  static_assert(!std::is_convertible_v<StageId, LayerId>);
  static_assert(!std::is_convertible_v<std::int64_t, StageId>);
  static_assert(!std::is_convertible_v<StageId, std::int64_t>);
  static_assert(!std::is_constructible_v<WorldRank, GroupRank>);
  EXPECT_LT(StageId{1}, StageId{2});
  EXPECT_EQ(StageId{}, StageId{0});
  EXPECT_EQ(WorldRank{7}.get(), 7);
}

}  // namespace
}  // namespace motley
