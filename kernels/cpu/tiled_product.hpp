#pragma once

// A whole product on all threads of a rank, made of our tile products. See tiled_linear.hpp.

#include <cstddef>
#include <cstdint>

#include "kernels/detail/loops.hpp"
#include "kernels/detail/tile_product.hpp"

namespace motley::kernels::cpu {

/// Most steps of K whose products are summed in registers before they are added to C: a right
/// panel of this height takes 24 KiB of the first cache.
inline constexpr std::int64_t most_k_steps = std::int64_t{24576} / (2 * detail::vector_bytes);

/// Steps of K from one addition to C to the next; depends on K alone, so that sums do too.
[[nodiscard]] inline std::int64_t k_steps(std::int64_t k) {
  std::int64_t const pieces = (k + most_k_steps - 1) / most_k_steps;
  return (k + pieces - 1) / pieces;
}

/// Largest tile of C: its left operand (most_k_steps wide) stays in a second cache of 512 KiB.
inline constexpr std::int64_t max_tile_rows =
    std::int64_t{96} / detail::register_rows * detail::register_rows;
inline constexpr std::int64_t max_tile_columns = 1024;

/// How C is cut into tiles.
struct TileGrid {
  std::int64_t tile_rows, tile_columns;
  std::int64_t row_tiles, column_tiles;

  [[nodiscard]] std::int64_t count() const { return row_tiles * column_tiles; }
};

/// The grid with the shortest expected time on `threads` threads. `register_columns` is the unit
/// of columns; preparing one row of the left operand costs as much as `left_cost` columns.
/// What is computed does not depend on the grid, only how long it takes.
[[nodiscard]] TileGrid choose_grid(std::int64_t rows,
                                   std::int64_t columns,
                                   std::int64_t register_columns,
                                   int threads,
                                   double left_cost);

/// Scratch memory of one thread.
template <class S>
struct TileScratch {
  static constexpr std::int64_t left_stride =
      most_k_steps + 16;  // not a power of two: no set conflicts
  static constexpr std::int64_t left_count = max_tile_rows * left_stride;
  static constexpr std::int64_t sum_count = max_tile_rows * max_tile_columns;
  static constexpr std::size_t bytes = sizeof(S) * (left_count + sum_count);

  S* left;
  S* sums;
};

/// Operands of C [m, n] (+)= A [m, k] · B [k, n]. Without `c` the sums of a tile go to scratch
/// memory, from where `finish` takes them.
template <class S, class T>
struct TiledProduct {
  detail::TileShape shape;
  detail::Strided<T const> a;
  detail::RightPanels<S> b;
  S* c = nullptr;
  std::int64_t c_stride = 0;
  Accumulate accumulate = Accumulate::no;
};

/// Part of C that was just computed: sums(i, j) at sums[i * stride + j].
template <class S>
struct FinishedTile {
  std::int64_t row, column, rows, columns;
  S* sums;
  std::int64_t stride;
};

/// Rows [row, row + m) and k [begin, begin + k) of A in the form that `multiply_tile` reads.
template <class S, class T>
detail::LeftPanels<S> load_left(detail::Strided<T const> a,
                                std::int64_t m,
                                std::int64_t k,
                                S* scratch) {
  constexpr std::int64_t stride = TileScratch<S>::left_stride;
  if (a.column_stride != 1) {
    detail::pack_left(m, k, a, scratch);
    return detail::left_panels(scratch, k);
  }
  for (std::int64_t i = 0; i < m; ++i) {
    T const* const from = a.data + i * a.row_stride;
    S* const to = scratch + i * stride;
#pragma omp simd
    for (std::int64_t l = 0; l < k; ++l) to[l] = static_cast<S>(from[l]);
  }
  return detail::row_major<S>(scratch, stride);
}

/// Computes the tile of C at (row, column) and returns where it is.
template <class S, class T>
FinishedTile<S> multiply_one(TiledProduct<S, T> const& product,
                             TileGrid const& grid,
                             std::int64_t index,
                             TileScratch<S> scratch) {
  std::int64_t const row = index / grid.column_tiles * grid.tile_rows;
  std::int64_t const column = index % grid.column_tiles * grid.tile_columns;
  FinishedTile<S> tile{row,
                       column,
                       std::min(grid.tile_rows, product.shape.m - row),
                       std::min(grid.tile_columns, product.shape.n - column),
                       scratch.sums,
                       grid.tile_columns};
  if (product.c != nullptr) {
    tile.sums = product.c + row * product.c_stride + column;
    tile.stride = product.c_stride;
  }
  detail::Strided<T const> a = product.a;
  a.data += row * a.row_stride;
  detail::RightPanels<S> const b = product.b.from_column(column);
  std::int64_t const step = k_steps(product.shape.k);
  for (std::int64_t begin = 0; begin < product.shape.k; begin += step) {
    std::int64_t const k = std::min(step, product.shape.k - begin);
    detail::LeftPanels<S> const left = load_left(a, tile.rows, k, scratch.left);
    detail::multiply_tile<S, detail::Distance::far>(
        {tile.rows, tile.columns, k},
        left,
        b.from_row(begin),
        tile.sums,
        tile.stride,
        begin > 0 ? Accumulate::yes : product.accumulate);
    a.data += k * a.column_stride;
  }
  return tile;
}

}  // namespace motley::kernels::cpu
