#pragma once

#include <cstdint>
#include <string>

#include "kernels/detail/loops.hpp"

namespace motley::kernels::detail {

/// A matrix in memory: `rows` rows of `columns` elements, `stride` elements apart.
template <class T>
struct MatrixRef {
  T const* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t stride;
};

/// Adds the column sums of a block of columns; subtotals of 64 rows keep long sums accurate.
template <class T, class A>
struct ColumnSum {
  // A few vectors on a CPU, one column per thread on a GPU.
  static constexpr int width = is_host ? 64 : 1;
  static constexpr std::int64_t subtotal_rows = 64;

  MatrixRef<T> matrix;
  A* sums;

  MOTLEY_FUNCTION void operator()(std::int64_t block) const {
    std::int64_t const first = block * width;
    std::int64_t const left = matrix.columns - first;
    if (left < width) {
      add_columns(first, static_cast<int>(left));
    } else {
      add_columns(first, width);
    }
  }

 private:
  MOTLEY_FUNCTION void add_columns(std::int64_t first, int columns) const {
    A total[width] = {};
    for (std::int64_t begin = 0; begin < matrix.rows; begin += subtotal_rows) {
      std::int64_t const left = matrix.rows - begin;
      std::int64_t const end = begin + (left < subtotal_rows ? left : subtotal_rows);
      A subtotal[width] = {};
      for (std::int64_t r = begin; r < end; ++r) {
        T const* const row = matrix.data + r * matrix.stride + first;
#pragma omp simd
        for (int j = 0; j < columns; ++j) subtotal[j] += static_cast<A>(row[j]);
      }
      for (int j = 0; j < columns; ++j) total[j] += subtotal[j];
    }
    for (int j = 0; j < columns; ++j) sums[first + j] += total[j];
  }
};

/// sums[c] += Σᵣ matrix[r, c], in a fixed order.
template <class T, class A>
void add_column_sums(Exec const& exec,
                     std::string const& label,
                     MatrixRef<T> const& matrix,
                     A* sums) {
  if (matrix.rows == 0) return;
  constexpr std::int64_t width = ColumnSum<T, A>::width;
  for_each_tile(exec, label, (matrix.columns + width - 1) / width, ColumnSum<T, A>{matrix, sums});
}

}  // namespace motley::kernels::detail
