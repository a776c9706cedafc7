#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/embedding.hpp"
#include "kernels/reference/matmul.hpp"

// Written to be read: one row at a time, in double.

namespace motley::kernels::reference {

/// y = table[ids] + positions; tokens outside the table's rows contribute 0; positions may be null.
inline Matrix embedding_forward(EmbeddingSpec const& spec,
                                std::vector<std::int32_t> const& ids,
                                Matrix const& table,
                                Matrix const* positions) {
  Matrix y{static_cast<std::int64_t>(ids.size()), table.columns};
  for (std::int64_t r = 0; r < y.rows; ++r) {
    std::int64_t const row = ids[static_cast<std::size_t>(r)] - spec.first_row;
    for (std::int64_t j = 0; j < y.columns; ++j) {
      if (row >= 0 && row < table.rows) y(r, j) += table(row, j);
      if (positions != nullptr) y(r, j) += (*positions)(r % spec.tokens_per_window, j);
    }
  }
  return y;
}

struct EmbeddingGradients {
  Matrix d_table;
  Matrix d_positions;
};

inline EmbeddingGradients embedding_backward(EmbeddingSpec const& spec,
                                             std::vector<std::int32_t> const& ids,
                                             Matrix const& dy,
                                             std::int64_t table_rows,
                                             std::int64_t position_count) {
  EmbeddingGradients result{{table_rows, dy.columns}, {position_count, dy.columns}};
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    std::int64_t const row = ids[static_cast<std::size_t>(r)] - spec.first_row;
    for (std::int64_t j = 0; j < dy.columns; ++j) {
      if (row >= 0 && row < table_rows) result.d_table(row, j) += dy(r, j);
      if (position_count > 0) result.d_positions(r % spec.tokens_per_window, j) += dy(r, j);
    }
  }
  return result;
}

}  // namespace motley::kernels::reference
