#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention.hpp"
#include "kernels/detail/math.hpp"
#include "kernels/detail/tile_product.hpp"

// What the forward and the backward attention on CPU share: tiles of tokens, and products that
// skip the half behind the diagonal.

namespace motley::kernels::cpu {

using detail::LeftPanels;
using detail::RightPanels;
using detail::TileShape;

/// Tokens of a tile of queries or keys: whole register tiles in both directions with AVX2 (6 x 16),
/// nearly so with AVX-512 (14 x 32), and small enough for ten such tiles in the second cache.
inline constexpr std::int64_t tile_tokens = 96;
static_assert(tile_tokens % detail::RegisterTile<float>::columns == 0);

[[nodiscard]] inline std::int64_t divide_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit;
}

[[nodiscard]] inline std::int64_t tile_count(AttentionShape const& shape) {
  return divide_up(shape.tokens, tile_tokens);
}

/// Tokens in tile `index`: the last may be short.
[[nodiscard]] inline std::int64_t tile_size(AttentionShape const& shape, std::int64_t index) {
  return std::min(tile_tokens, shape.tokens - index * tile_tokens);
}

/// `count` up to whole register tiles.
[[nodiscard]] inline std::int64_t padded(std::int64_t count) {
  constexpr std::int64_t columns = detail::RegisterTile<float>::columns;
  return divide_up(count, columns) * columns;
}

/// Distance between the rows of a buffer of head vectors.
[[nodiscard]] inline std::int64_t padded_width(AttentionShape const& shape) {
  return padded(shape.head_width);
}

/// eˣ for x up to 88; 0 where the result would not be a normal number.
[[nodiscard]] inline float exp_normal(float x) {
  constexpr float lowest = -87.0F;
  auto const [exponent, rest] = detail::reduce_by_ln2(x < lowest ? lowest : x);
  float const value = (1.0F + detail::expm1_near_zero(rest)) * detail::power_of_two(exponent);
  return x < lowest ? 0.0F : value;
}

/// to[r, c] = factor from[r, c] for r < rows, c < width; 0 up to to_stride.
template <class T>
void load_rows(detail::Strided<T const> from,
               std::int64_t rows,
               std::int64_t width,
               float factor,
               float* to,
               std::int64_t to_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T const* const source = from.data + r * from.row_stride;
    float* const target = to + r * to_stride;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) target[c] = factor * static_cast<float>(source[c]);
    std::fill(target + width, target + to_stride, 0.0F);
  }
}

/// to[c, r] = factor from[r, c] for r < rows, c < width; 0 for r up to padded(rows). The rows of
/// `to` are tile_tokens apart.
template <class T>
void load_transposed(
    detail::Strided<T const> from, std::int64_t rows, std::int64_t width, float factor, float* to) {
  for (std::int64_t r = 0; r < padded(rows); ++r) {
    T const* const source = from.data + r * from.row_stride;
    for (std::int64_t c = 0; c < width; ++c) {
      to[c * tile_tokens + r] = r < rows ? factor * static_cast<float>(source[c]) : 0.0F;
    }
  }
}

/// to[r, c] = factor from[r, c], rounded to T.
template <class T>
void store_rows(detail::Strided<float const> from,
                std::int64_t rows,
                std::int64_t width,
                float factor,
                detail::Strided<T> to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float const* const source = from.data + r * from.row_stride;
    T* const target = to.data + r * to.row_stride;
#pragma GCC ivdep  // "omp simd" would keep GCC from vectorizing over the class BFloat16
    for (std::int64_t c = 0; c < width; ++c) target[c] = static_cast<T>(factor * source[c]);
  }
}

/// Which part of a tile's rows a product needs: all, or only what lies on one side of the tile's
/// diagonal (and, as registers come in blocks, a little of the other side).
enum class Reach { whole, to_diagonal, from_diagonal };

/// C = A B, of which row i is needed only at columns <= i (to_diagonal) or >= i (from_diagonal).
inline void multiply_columns(
    Reach reach, TileShape shape, LeftPanels<float> a, RightPanels<float> b, float* c) {
  using Tile = detail::RegisterTile<float>;
  if (reach == Reach::whole) {
    detail::multiply_tile<float>(shape, a, b, c, tile_tokens, Accumulate::no);
    return;
  }
  for (std::int64_t i = 0; i < shape.m; i += Tile::rows) {
    std::int64_t const rows = std::min<std::int64_t>(Tile::rows, shape.m - i);
    bool const is_from = reach == Reach::from_diagonal;
    std::int64_t const begin = is_from ? i / Tile::columns * Tile::columns : 0;
    std::int64_t const end = is_from ? shape.n : std::min(shape.n, padded(i + rows));
    detail::multiply_tile<float>({rows, end - begin, shape.k},
                                 a,
                                 b.from_column(begin),
                                 c + i * tile_tokens + begin,
                                 tile_tokens,
                                 Accumulate::no);
    a.data += a.panel_stride;
  }
}

/// C (+)= A B, where row i of A is zero beyond column i (to_diagonal) or before it (from_diagonal).
inline void multiply_depth(Reach reach,
                           TileShape shape,
                           LeftPanels<float> a,
                           RightPanels<float> b,
                           detail::Strided<float> c,
                           Accumulate accumulate) {
  using Tile = detail::RegisterTile<float>;
  if (reach == Reach::whole) {
    detail::multiply_tile<float>(shape, a, b, c.data, c.row_stride, accumulate);
    return;
  }
  for (std::int64_t i = 0; i < shape.m; i += Tile::rows) {
    std::int64_t const rows = std::min<std::int64_t>(Tile::rows, shape.m - i);
    bool const is_from = reach == Reach::from_diagonal;
    std::int64_t const begin = is_from ? i : 0;
    std::int64_t const end = is_from ? shape.k : std::min(shape.k, i + rows);
    LeftPanels<float> left = a;
    left.data += i / Tile::rows * a.panel_stride + begin * a.column_stride;
    detail::multiply_tile<float>({rows, shape.n, end - begin},
                                 left,
                                 b.from_row(begin),
                                 c.data + i * c.row_stride,
                                 c.row_stride,
                                 accumulate);
  }
}

}  // namespace motley::kernels::cpu
