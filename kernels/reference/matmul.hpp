#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace motley::kernels::reference {

/// Row-major matrix of doubles in host memory.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> values;

  Matrix(std::int64_t row_count, std::int64_t column_count)
      : rows{row_count},
        columns{column_count},
        values(static_cast<std::size_t>(row_count * column_count)) {}

  double& operator()(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  double operator()(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

/// Values of a host view of order 2, widened.
template <class View>
[[nodiscard]] Matrix matrix_of(View const& view) {
  Matrix result{static_cast<std::int64_t>(view.extent(0)),
                static_cast<std::int64_t>(view.extent(1))};
  for (std::int64_t i = 0; i < result.rows; ++i) {
    for (std::int64_t j = 0; j < result.columns; ++j) {
      result(i, j) = static_cast<double>(view(i, j));
    }
  }
  return result;
}

[[nodiscard]] inline Matrix transpose(Matrix const& a) {
  Matrix result{a.columns, a.rows};
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.columns; ++j) result(j, i) = a(i, j);
  }
  return result;
}

/// a [M, K] · b [K, N] -> [M, N].
[[nodiscard]] inline Matrix multiply(Matrix const& a, Matrix const& b) {
  Matrix result{a.rows, b.columns};
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      for (std::int64_t j = 0; j < b.columns; ++j) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

/// GELU in its tanh form.
///
/// Source   Hendrycks, Gimpel: "Gaussian error linear units", 2016, section 2
[[nodiscard]] inline double gelu(double x) {
  double const sqrt_2_over_pi = std::sqrt(2.0 / std::acos(-1.0));
  return 0.5 * x * (1.0 + std::tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x)));
}

/// y = gelu(x W + bias) + residual, with x [R, K], w [K, C]; bias and residual may be null.
[[nodiscard]] inline Matrix linear_forward(
    Matrix const& x, Matrix const& w, Matrix const* bias, Matrix const* residual, bool with_gelu) {
  Matrix y = multiply(x, w);
  for (std::int64_t i = 0; i < y.rows; ++i) {
    for (std::int64_t j = 0; j < y.columns; ++j) {
      double value = y(i, j);
      if (bias != nullptr) value += (*bias)(0, j);
      if (with_gelu) value = gelu(value);
      if (residual != nullptr) value += (*residual)(i, j);
      y(i, j) = value;
    }
  }
  return y;
}

}  // namespace motley::kernels::reference
