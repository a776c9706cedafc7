#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/reference/matmul.hpp"

// Written to be read.

namespace motley::kernels::reference {

[[nodiscard]] inline double sum(std::vector<double> const& x) {
  double result = 0.0;
  for (double const value : x) result += value;
  return result;
}

[[nodiscard]] inline double square_sum(std::vector<double> const& x) {
  double result = 0.0;
  for (double const value : x) result += value * value;
  return result;
}

/// Index of the first infinity or NaN, or -1.
[[nodiscard]] inline std::int64_t first_non_finite(std::vector<double> const& x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return static_cast<std::int64_t>(i);
  }
  return -1;
}

[[nodiscard]] inline std::vector<double> column_sum(Matrix const& dy) {
  std::vector<double> result(static_cast<std::size_t>(dy.columns));
  for (std::int64_t i = 0; i < dy.rows; ++i) {
    for (std::int64_t j = 0; j < dy.columns; ++j) result[static_cast<std::size_t>(j)] += dy(i, j);
  }
  return result;
}

}  // namespace motley::kernels::reference
