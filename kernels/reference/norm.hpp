#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/reference/matmul.hpp"

// Written to be read: one row at a time, in double. R rows, D columns.

namespace motley::kernels::reference {

/// Mean and 1 / sqrt(variance + eps) of one row; the mean of an RMSNorm is taken to be 0.
struct RowStatistics {
  double mean = 0.0;
  double rstd = 0.0;
};

enum class NormKind { layer, rms };

inline RowStatistics row_statistics(NormKind kind, Matrix const& x, std::int64_t row, double eps) {
  auto const count = static_cast<double>(x.columns);
  RowStatistics result;
  if (kind == NormKind::layer) {
    for (std::int64_t j = 0; j < x.columns; ++j) result.mean += x(row, j);
    result.mean /= count;
  }
  double squares = 0.0;
  for (std::int64_t j = 0; j < x.columns; ++j) {
    squares += (x(row, j) - result.mean) * (x(row, j) - result.mean);
  }
  result.rstd = 1.0 / std::sqrt(squares / count + eps);
  return result;
}

/// y = (x - mean) rstd weight + bias, weight and bias [1, D].
///
/// Source   Ba, Kiros, Hinton: "Layer normalization", 2016, eq. 4; Zhang, Sennrich: "Root mean
///          square layer normalization", NeurIPS 2019, eq. 4
inline Matrix norm_forward(
    NormKind kind, Matrix const& x, Matrix const& weight, Matrix const& bias, double eps) {
  Matrix y{x.rows, x.columns};
  for (std::int64_t i = 0; i < x.rows; ++i) {
    auto const [mean, rstd] = row_statistics(kind, x, i, eps);
    for (std::int64_t j = 0; j < x.columns; ++j) {
      y(i, j) = (x(i, j) - mean) * rstd * weight(0, j) + bias(0, j);
    }
  }
  return y;
}

struct NormGradients {
  Matrix dx;
  Matrix dweight;  ///< [1, D]
  Matrix dbias;    ///< [1, D]
};

/// Gradients of norm_forward, by the chain rule written out: y depends on x directly, through the
/// mean and through rstd.
inline NormGradients norm_backward(
    NormKind kind, Matrix const& dy, Matrix const& x, Matrix const& weight, double eps) {
  NormGradients result{{x.rows, x.columns}, {1, x.columns}, {1, x.columns}};
  auto const count = static_cast<double>(x.columns);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    auto const [mean, rstd] = row_statistics(kind, x, i, eps);
    double d_mean = 0.0;
    double d_rstd = 0.0;
    for (std::int64_t j = 0; j < x.columns; ++j) {
      double const g = dy(i, j) * weight(0, j);
      if (kind == NormKind::layer) d_mean -= g * rstd;
      d_rstd += g * (x(i, j) - mean);
      result.dweight(0, j) += dy(i, j) * (x(i, j) - mean) * rstd;
      result.dbias(0, j) += dy(i, j);
    }
    for (std::int64_t j = 0; j < x.columns; ++j) {
      // rstd = (variance + eps)^(-1/2), whose derivative is -rstd³/2 per variance.
      double const d_variance = -0.5 * rstd * rstd * rstd * d_rstd;
      result.dx(i, j) = dy(i, j) * weight(0, j) * rstd + d_mean / count +
                        d_variance * 2.0 * (x(i, j) - mean) / count;
    }
  }
  return result;
}

}  // namespace motley::kernels::reference
