#include "kernels/cpu/tiled_product.hpp"

#include <limits>

namespace motley::kernels::cpu {
namespace {

std::int64_t pieces(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }

/// `whole` in `count` nearly equal pieces, each a multiple of `unit`.
std::int64_t piece_of(std::int64_t whole, std::int64_t count, std::int64_t unit) {
  return pieces(pieces(whole, count), unit) * unit;
}

/// Rounds of tiles, in units of a tile element: what all threads wait for. The last half is what
/// a thread waits on average because another one was late.
double expected_time(TileGrid const& grid, int threads, double left_cost) {
  double const tile =
      static_cast<double>(grid.tile_rows) * (static_cast<double>(grid.tile_columns) + left_cost);
  return (static_cast<double>(pieces(grid.count(), threads)) + 0.5) * tile;
}

}  // namespace

TileGrid choose_grid(std::int64_t rows,
                     std::int64_t columns,
                     std::int64_t register_columns,
                     int threads,
                     double left_cost) {
  TileGrid best{};
  double best_time = std::numeric_limits<double>::infinity();
  std::int64_t const least_rows = pieces(rows, max_tile_rows);
  std::int64_t const least_columns = pieces(columns, max_tile_columns);
  constexpr std::int64_t choices = 16;
  for (std::int64_t r = least_rows; r < least_rows + choices; ++r) {
    std::int64_t const tile_rows = piece_of(rows, r, detail::register_rows);
    for (std::int64_t c = least_columns; c < least_columns + choices; ++c) {
      std::int64_t const tile_columns = piece_of(columns, c, register_columns);
      TileGrid const grid{
          tile_rows, tile_columns, pieces(rows, tile_rows), pieces(columns, tile_columns)};
      double const time = expected_time(grid, threads, left_cost);
      if (time >= best_time) continue;
      best = grid;
      best_time = time;
    }
  }
  return best;
}

}  // namespace motley::kernels::cpu
