#pragma once

// The matrix product of ours: C [M, N] (+)= A [M, K] · B [K, N] by one thread, on operands that fit
// the caches. It serves fp64, CPUs for which oneDNN has nothing better, and the attention tiles.
//
//   std::vector<float> packed(packed_right_count<float>(k, n));
//   pack_right(k, n, Strided{b, ldb}, packed.data());                      // b may be bf16
//   multiply_tile({m, n, k}, row_major(a, lda), right_panels(packed.data(), k), c, ldc,
//                 Accumulate::no);
//
// The caller owns all memory, chooses tiles and calls from its own parallel loop. A value of C is a
// sum over k in order, whatever M and N of the tile are, so results do not depend on how C was cut;
// a caller that cuts K adds one such sum per piece.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/linear.hpp"

namespace motley::kernels::detail {

#if defined(__AVX512F__)
inline constexpr std::size_t vector_bytes = 64;
inline constexpr int register_rows = 14;  // 28 of 32 registers hold sums
#else
inline constexpr std::size_t vector_bytes = 32;
inline constexpr int register_rows = 6;  // 12 of 16 registers hold sums
#endif

/// Sizes of the part of C that one pass over K keeps in registers: `rows` by `columns`.
template <class S>
struct RegisterTile {
  static constexpr int lanes = static_cast<int>(vector_bytes / sizeof(S));
  static constexpr int vectors = 2;
  static constexpr int rows = register_rows;
  static constexpr int columns = lanes * vectors;
};

/// Matrix whose element (i, j) is data[i * row_stride + j * column_stride].
template <class T>
struct Strided {
  T* data;
  std::int64_t row_stride;
  std::int64_t column_stride = 1;
};
template <class T>
Strided(T*, std::int64_t) -> Strided<T>;
template <class T>
Strided(T*, std::int64_t, std::int64_t) -> Strided<T>;

/// Left operand: its rows in panels of RegisterTile<S>::rows. Made by `row_major`, `column_major`
/// or `left_panels`.
template <class S>
struct LeftPanels {
  S const* data;
  std::int64_t panel_stride;
  std::int64_t row_stride;     ///< between rows of a panel
  std::int64_t column_stride;  ///< between steps of k
};

/// A left operand that lies row by row and needs no packing.
template <class S>
[[nodiscard]] LeftPanels<S> row_major(S const* a, std::int64_t row_stride) {
  return {a, RegisterTile<S>::rows * row_stride, row_stride, 1};
}

/// A left operand that lies column by column and needs no packing: the transpose of rows
/// `column_stride` apart.
template <class S>
[[nodiscard]] LeftPanels<S> column_major(S const* a, std::int64_t column_stride) {
  return {a, RegisterTile<S>::rows, 1, column_stride};
}

/// What `pack_left` made of a [m, k].
template <class S>
[[nodiscard]] LeftPanels<S> left_panels(S const* packed, std::int64_t k) {
  return {packed, RegisterTile<S>::rows * k, 1, RegisterTile<S>::rows};
}

/// Right operand: its columns in panels of RegisterTile<S>::columns, each [k, columns]. Made by
/// `right_panels` or `padded_row_major`.
template <class S>
struct RightPanels {
  S const* data;
  std::int64_t panel_stride;
  std::int64_t row_stride = RegisterTile<S>::columns;  ///< between steps of k

  /// The same columns from row `begin` of K on.
  [[nodiscard]] RightPanels from_row(std::int64_t begin) const {
    return {data + begin * row_stride, panel_stride, row_stride};
  }
  /// The same rows from column `begin` on, a multiple of RegisterTile<S>::columns.
  [[nodiscard]] RightPanels from_column(std::int64_t begin) const {
    return {data + begin / RegisterTile<S>::columns * panel_stride, panel_stride, row_stride};
  }
};

/// What `pack_right` made of b [k, n].
template <class S>
[[nodiscard]] RightPanels<S> right_panels(S const* packed, std::int64_t k) {
  return {packed, RegisterTile<S>::columns * k};
}

/// A right operand that lies row by row and needs no packing: its rows can be read up to the next
/// multiple of RegisterTile<S>::columns.
template <class S>
[[nodiscard]] RightPanels<S> padded_row_major(S const* b, std::int64_t row_stride) {
  return {b, RegisterTile<S>::columns, row_stride};
}

/// Elements that `pack_left` writes for [m, k].
template <class S>
[[nodiscard]] constexpr std::int64_t packed_left_count(std::int64_t m, std::int64_t k) {
  constexpr std::int64_t rows = RegisterTile<S>::rows;
  return (m + rows - 1) / rows * rows * k;
}

/// Elements that `pack_right` writes for [k, n].
template <class S>
[[nodiscard]] constexpr std::int64_t packed_right_count(std::int64_t k, std::int64_t n) {
  constexpr std::int64_t columns = RegisterTile<S>::columns;
  return (n + columns - 1) / columns * columns * k;
}

/// Copies one panel: packed[l * width + i] = a(i, l) for i < count and 0 up to width.
template <int Width, class S, class T>
void pack_panel(std::int64_t count, std::int64_t k, Strided<T const> a, S* packed) {
  if (count == Width && a.row_stride == 1) {
    for (std::int64_t l = 0; l < k; ++l) {
      T const* const from = a.data + l * a.column_stride;
      for (int i = 0; i < Width; ++i) packed[l * Width + i] = static_cast<S>(from[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < Width; ++i) {
    T const* const from = a.data + i * a.row_stride;
    for (std::int64_t l = 0; l < k; ++l) {
      packed[l * Width + i] = i < count ? static_cast<S>(from[l * a.column_stride]) : S{0};
    }
  }
}

/// Packs the rows of a [m, k] in panels of Width. Where k is contiguous, only a few steps of it at
/// a time, so that the lines of all rows of a panel stay in the first cache.
template <int Width, class S, class T>
void pack_panels(std::int64_t m, std::int64_t k, Strided<T const> a, S* packed) {
  std::int64_t const most_steps = a.row_stride == 1 ? std::max<std::int64_t>(k, 1) : 32;
  for (std::int64_t l = 0; l < k; l += most_steps) {
    std::int64_t const steps = std::min(most_steps, k - l);
    for (std::int64_t i = 0; i < m; i += Width) {
      Strided<T const> const panel{
          a.data + i * a.row_stride + l * a.column_stride, a.row_stride, a.column_stride};
      pack_panel<Width>(
          std::min<std::int64_t>(Width, m - i), steps, panel, packed + i * k + l * Width);
    }
  }
}

/// Packs a left operand, widening it to S. Worth it where rows are not contiguous in k, or where
/// the element type is not S.
///
/// Shapes   a [m, k] -> packed [packed_left_count<S>(m, k)]
template <class S, class T>
void pack_left(std::int64_t m, std::int64_t k, Strided<T> a, S* packed) {
  pack_panels<RegisterTile<S>::rows>(
      m, k, Strided<T const>{a.data, a.row_stride, a.column_stride}, packed);
}

/// Packs a right operand, widening it to S.
///
/// Shapes   b [k, n] -> packed [packed_right_count<S>(k, n)]
template <class S, class T>
void pack_right(std::int64_t k, std::int64_t n, Strided<T> b, S* packed) {
  pack_panels<RegisterTile<S>::columns>(
      n, k, Strided<T const>{b.data, b.column_stride, b.row_stride}, packed);
}

/// Where the right operand and C of a product are. `far`: in memory or the last cache, while the
/// left operand is in the second; the product then asks for each right panel while it multiplies
/// the one before (a fifth faster for weights), which `near` data would only suffer from.
enum class Distance { near, far };

/// What one register kernel asks for while it multiplies: `lines` cache lines from `begin` on for
/// every `prefetch_steps` steps of k.
struct Prefetch {
  std::byte const* begin = nullptr;
  std::int64_t lines = 0;
};
inline constexpr std::int64_t prefetch_steps = 16;
inline constexpr std::int64_t line_bytes = 64;
inline constexpr int second_cache = 2;  // of __builtin_prefetch: how near to bring a line

/// C's register tile: Rows by RegisterTile<S>::columns, all of which are stored.
///
/// Inlined into the loop over tiles: for k = 64 a call through a pointer costs a sixth of the time.
template <class S, int Rows, Distance Where>
[[gnu::always_inline]] inline void multiply_registers(std::int64_t k,
                                                      LeftPanels<S> a,
                                                      Strided<S const> b,
                                                      Strided<S> c,
                                                      Accumulate accumulate,
                                                      Prefetch later) {
  using Tile = RegisterTile<S>;
  using Vector [[gnu::vector_size(vector_bytes)]] = S;
  // As Vector, but allowed at any address and over plain arrays of S.
  using Loose [[gnu::vector_size(vector_bytes), gnu::aligned(alignof(S)), gnu::may_alias]] = S;

  if constexpr (Where == Distance::far) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) __builtin_prefetch(c.data + i * c.row_stride, 1);
  }
  Vector sum[Rows][Tile::vectors] = {};
  std::int64_t const chunk = Where == Distance::far ? prefetch_steps : k;
  for (std::int64_t begin = 0; begin < k; begin += chunk) {
    if constexpr (Where == Distance::far) {
      for (std::int64_t line = 0; line < later.lines; ++line, later.begin += line_bytes) {
        __builtin_prefetch(later.begin, 0, second_cache);
      }
    }
    std::int64_t const steps = std::min(chunk, k - begin);
#pragma GCC unroll 2
    for (std::int64_t l = 0; l < steps; ++l) {
      Vector right[Tile::vectors];
#pragma GCC unroll 16
      for (int j = 0; j < Tile::vectors; ++j) {
        right[j] = *reinterpret_cast<Loose const*>(b.data + j * Tile::lanes);
      }
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < Tile::vectors; ++j) sum[i][j] += a.data[i * a.row_stride] * right[j];
      }
      a.data += a.column_stride;
      b.data += b.row_stride;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < Tile::vectors; ++j) {
      auto* const to = reinterpret_cast<Loose*>(c.data + i * c.row_stride + j * Tile::lanes);
      *to = accumulate == Accumulate::yes ? *to + sum[i][j] : sum[i][j];
    }
  }
}

template <class S>
using RegisterKernel =
    void (*)(std::int64_t, LeftPanels<S>, Strided<S const>, Strided<S>, Accumulate, Prefetch);

/// register_kernel<S>[i] computes i + 1 rows.
template <class S, class Rows = std::make_integer_sequence<int, RegisterTile<S>::rows>>
inline constexpr std::array<RegisterKernel<S>, 0> register_kernels{};
template <class S, int... Rows>
inline constexpr std::array<RegisterKernel<S>, sizeof...(Rows)>
    register_kernels<S, std::integer_sequence<int, Rows...>>{
        multiply_registers<S, Rows + 1, Distance::near>...};

/// Extents of one product.
struct TileShape {
  std::int64_t m, n, k;
};

/// C's register tile at an edge: `edge.m` rows and `edge.n` columns of it are stored.
template <class S>
void multiply_edge(
    TileShape edge, LeftPanels<S> a, Strided<S const> b, Strided<S> c, Accumulate accumulate) {
  using Tile = RegisterTile<S>;
  RegisterKernel<S> const kernel = register_kernels<S>[static_cast<std::size_t>(edge.m - 1)];
  if (edge.n == Tile::columns) {
    kernel(edge.k, a, b, c, accumulate, {});
    return;
  }
  std::array<S, static_cast<std::size_t>(Tile::rows * Tile::columns)> sums;
  kernel(edge.k, a, b, {sums.data(), Tile::columns}, Accumulate::no, {});
  for (std::int64_t i = 0; i < edge.m; ++i) {
    for (std::int64_t j = 0; j < edge.n; ++j) {
      S const sum = sums[static_cast<std::size_t>(i * Tile::columns + j)];
      S& value = c.data[i * c.row_stride + j];
      value = accumulate == Accumulate::yes ? value + sum : sum;
    }
  }
}

/// Shares the lines of one right panel out over the register kernels of another.
template <class S>
[[nodiscard]] Prefetch prefetch_of_call(TileShape const& shape, S const* panel, std::int64_t call) {
  using Tile = RegisterTile<S>;
  auto const pieces = [](std::int64_t whole, std::int64_t piece) {
    return (whole + piece - 1) / piece;
  };
  constexpr auto row_bytes = static_cast<std::int64_t>(sizeof(S)) * Tile::columns;
  std::int64_t const chunks = pieces(shape.k, prefetch_steps);
  std::int64_t const lines =
      pieces(shape.k * row_bytes, line_bytes * chunks * pieces(shape.m, Tile::rows));
  return {reinterpret_cast<std::byte const*>(panel) + call * chunks * lines * line_bytes, lines};
}

/// C (+)= A · B on one thread.
///
/// Shapes   a [m, k], b [k, n] -> c [m, n], rows `row_stride` apart; c overlaps neither
/// Types    S float or double
/// Cost     2 m n k flop; fast while a register panel of b (k times 64 or 128 bytes) stays in the
///          first cache and a in the second: cut k at 384 or 192, and m at about 96
template <class S, Distance Where = Distance::near>
void multiply_tile(TileShape shape,
                   LeftPanels<S> a,
                   RightPanels<S> b,
                   S* c,
                   std::int64_t row_stride,
                   Accumulate accumulate) {
  using Tile = RegisterTile<S>;
  for (std::int64_t j = 0; j < shape.n; j += Tile::columns) {
    Strided<S const> const right{b.from_column(j).data, b.row_stride};
    S const* const next_panel = right.data + b.panel_stride;
    std::int64_t const columns = std::min<std::int64_t>(Tile::columns, shape.n - j);
    for (std::int64_t i = 0; i < shape.m; i += Tile::rows) {
      std::int64_t const rows = std::min<std::int64_t>(Tile::rows, shape.m - i);
      LeftPanels<S> left = a;
      left.data += i / Tile::rows * a.panel_stride;
      Strided<S> const to{c + i * row_stride + j, row_stride};
      Prefetch later;
      if constexpr (Where == Distance::far) {
        later = prefetch_of_call(shape, next_panel, i / Tile::rows);
      }
      if (rows == Tile::rows && columns == Tile::columns) {
        multiply_registers<S, Tile::rows, Where>(shape.k, left, right, to, accumulate, later);
      } else {
        multiply_edge<S>({rows, columns, shape.k}, left, right, to, accumulate);
      }
    }
  }
}

}  // namespace motley::kernels::detail
