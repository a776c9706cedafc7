#include "kernels/detail/tile_product.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/matmul.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels::detail {
namespace {

using test::is_close;
using test::random_view;
using test::values_of;

template <class S>
class TileProductTest : public testing::Test {};
struct TypeNames {
  template <class S>
  static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming)
    return std::string{to_string(dtype_of<S>)};
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(TileProductTest, Types, TypeNames);

template <class View>
auto strided(View const& view) {
  return Strided{view.data(), static_cast<std::int64_t>(view.stride(0))};
}
template <class View>
auto transposed(View const& view) {
  return Strided{view.data(), 1, static_cast<std::int64_t>(view.stride(0))};
}

template <class S>
std::vector<S> packed_right(View2<S> const& b) {
  auto const k = static_cast<std::int64_t>(b.extent(0));
  auto const n = static_cast<std::int64_t>(b.extent(1));
  std::vector<S> packed(static_cast<std::size_t>(packed_right_count<S>(k, n)));
  pack_right(k, n, strided(b), packed.data());
  return packed;
}

// Around one and several register tiles, of both widths of vectors.
constexpr std::int64_t extents[] = {1, 5, 6, 7, 13, 14, 15, 31, 32, 33, 70};

TYPED_TEST(TileProductTest, product_equals_the_reference_for_every_remainder) {
  using S = TypeParam;
  std::int64_t const k = 19;
  for (std::int64_t const m : extents) {
    for (std::int64_t const n : extents) {
      View2<S> const a = random_view<S>("a", m, k, 1, 3);
      View2<S> const b = random_view<S>("b", k, n, 2, 2);
      View2<S> const c = random_view<S>("c", m, n, 3, 4);
      std::vector<S> const packed = packed_right(b);
      multiply_tile({m, n, k},
                    row_major<S>(a.data(), a.stride(0)),
                    right_panels(packed.data(), k),
                    c.data(),
                    c.stride(0),
                    Accumulate::no);
      auto const expected = reference::multiply(reference::matrix_of(a), reference::matrix_of(b));
      ASSERT_TRUE(is_close("c", values_of(c), expected.values, {dtype_of<S>, k})) << m << " " << n;
    }
  }
}

TYPED_TEST(TileProductTest, packed_left_operand_and_accumulation_equal_the_reference) {
  using S = TypeParam;
  std::int64_t const m = 29;
  std::int64_t const n = 37;
  std::int64_t const k = 23;
  View2<S> const a_transposed = random_view<S>("a", k, m, 1, 3);
  View2<S> const b = random_view<S>("b", k, n, 2, 2);
  View2<S> const c = random_view<S>("c", m, n, 3, 4);
  auto const a = reference::transpose(reference::matrix_of(a_transposed));
  auto expected = reference::multiply(a, reference::matrix_of(b));
  auto const before = reference::matrix_of(c);
  for (std::size_t i = 0; i < expected.values.size(); ++i) expected.values[i] += before.values[i];

  std::vector<S> left(static_cast<std::size_t>(packed_left_count<S>(m, k)));
  pack_left(m, k, transposed(a_transposed), left.data());
  std::vector<S> const right = packed_right(b);
  multiply_tile({m, n, k},
                left_panels(left.data(), k),
                right_panels(right.data(), k),
                c.data(),
                c.stride(0),
                Accumulate::yes);
  EXPECT_TRUE(is_close("c", values_of(c), expected.values, {dtype_of<S>, k}));
}

TYPED_TEST(TileProductTest, operands_that_need_no_packing_equal_the_reference) {
  using S = TypeParam;
  std::int64_t const m = 29;
  std::int64_t const n = 37;
  std::int64_t const k = 23;
  std::int64_t const n_padded = packed_right_count<S>(1, n);
  View2<S> const a_transposed = random_view<S>("a", k, m, 1, 3);
  View2<S> const b = random_view<S>("b", k, n, 2, n_padded - n);
  View2<S> const c = random_view<S>("c", m, n, 3, 4);
  auto const a = reference::transpose(reference::matrix_of(a_transposed));
  auto const expected = reference::multiply(a, reference::matrix_of(b));
  multiply_tile({m, n, k},
                column_major<S>(a_transposed.data(), a_transposed.stride(0)),
                padded_row_major<S>(b.data(), b.stride(0)),
                c.data(),
                c.stride(0),
                Accumulate::no);
  EXPECT_TRUE(is_close("c", values_of(c), expected.values, {dtype_of<S>, k}));
}

TYPED_TEST(TileProductTest, bits_do_not_depend_on_how_rows_and_columns_are_cut) {
  using S = TypeParam;
  std::int64_t const m = 41;
  std::int64_t const n = 3 * RegisterTile<S>::columns;
  std::int64_t const k = 50;
  View2<S> const a = random_view<S>("a", m, k, 1);
  View2<S> const b = random_view<S>("b", k, n, 2);
  View2<S> const whole = random_view<S>("whole", m, n, 3);
  View2<S> const cut = random_view<S>("cut", m, n, 4);
  std::vector<S> const packed = packed_right(b);
  auto const right = right_panels(packed.data(), k);
  multiply_tile({m, n, k}, row_major<S>(a.data(), k), right, whole.data(), n, Accumulate::no);
  std::int64_t const split = RegisterTile<S>::columns;
  for (std::int64_t i = 0; i < m; ++i) {
    S const* const row = a.data() + i * k;
    S* const to = cut.data() + i * n;
    multiply_tile({1, split, k}, row_major<S>(row, k), right, to, n, Accumulate::no);
    multiply_tile({1, n - split, k},
                  row_major<S>(row, k),
                  right.from_column(split),
                  to + split,
                  n,
                  Accumulate::no);
  }
  EXPECT_EQ(values_of(cut), values_of(whole));
}

TYPED_TEST(TileProductTest, pieces_of_k_add_up) {
  using S = TypeParam;
  std::int64_t const m = 9;
  std::int64_t const n = 21;
  std::int64_t const k = 40;
  std::int64_t const split = 17;
  View2<S> const a = random_view<S>("a", m, k, 1);
  View2<S> const b = random_view<S>("b", k, n, 2);
  View2<S> const c = random_view<S>("c", m, n, 3);
  std::vector<S> const packed = packed_right(b);
  auto const right = right_panels(packed.data(), k);
  multiply_tile({m, n, split}, row_major<S>(a.data(), k), right, c.data(), n, Accumulate::no);
  multiply_tile({m, n, k - split},
                row_major<S>(a.data() + split, k),
                right.from_row(split),
                c.data(),
                n,
                Accumulate::yes);
  auto const expected = reference::multiply(reference::matrix_of(a), reference::matrix_of(b));
  EXPECT_TRUE(is_close("c", values_of(c), expected.values, {dtype_of<S>, k}));
}

TEST(TileProductBf16Test, packing_widens_and_pads_with_zeros) {
  std::int64_t const k = 3;
  std::int64_t const n = 5;
  View2<BFloat16> const b = random_view<BFloat16>("b", k, n, 2, 7);
  std::vector<float> packed(static_cast<std::size_t>(packed_right_count<float>(k, n)), 99.0F);
  pack_right(k, n, strided(b), packed.data());
  std::int64_t const width = RegisterTile<float>::columns;
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::int64_t j = 0; j < width; ++j) {
      float const expected = j < n ? static_cast<float>(b(l, j)) : 0.0F;
      EXPECT_EQ(packed[static_cast<std::size_t>(l * width + j)], expected);
    }
  }
}

}  // namespace
}  // namespace motley::kernels::detail
