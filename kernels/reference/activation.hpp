#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/reference/matmul.hpp"

// Written to be read: one element at a time, in double. The GELU itself is in matmul.hpp, whose
// epilogue has it.

namespace motley::kernels::reference {

/// Derivative of gelu(x) = x/2 (1 + tanh u), u = √(2/π) (x + 0.044715 x³); that of tanh is
/// 1/cosh².
[[nodiscard]] inline double gelu_derivative(double x) {
  double const sqrt_2_over_pi = std::sqrt(2.0 / std::acos(-1.0));
  double const u = sqrt_2_over_pi * (x + 0.044715 * x * x * x);
  double const du = sqrt_2_over_pi * (1.0 + 3.0 * 0.044715 * x * x);
  return 0.5 * (1.0 + std::tanh(u)) + 0.5 * x * du / (std::cosh(u) * std::cosh(u));
}

[[nodiscard]] inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

[[nodiscard]] inline double silu(double x) { return x * sigmoid(x); }

[[nodiscard]] inline double silu_derivative(double x) {
  return sigmoid(x) + x * sigmoid(x) * sigmoid(-x);
}

[[nodiscard]] inline Matrix gelu_forward(Matrix const& x) {
  Matrix y = x;
  for (double& value : y.values) value = gelu(value);
  return y;
}

[[nodiscard]] inline Matrix gelu_backward(Matrix const& x, Matrix const& dy) {
  Matrix dx = dy;
  for (std::size_t i = 0; i < dx.values.size(); ++i) {
    dx.values[i] *= gelu_derivative(x.values[i]);
  }
  return dx;
}

/// y = silu(gate) up, with gate_up [R, 2 F] = (gate | up).
///
/// Source   Shazeer: "GLU variants improve transformer", 2020, eq. 5
[[nodiscard]] inline Matrix swiglu_forward(Matrix const& gate_up) {
  Matrix y{gate_up.rows, gate_up.columns / 2};
  for (std::int64_t i = 0; i < y.rows; ++i) {
    for (std::int64_t j = 0; j < y.columns; ++j) {
      y(i, j) = silu(gate_up(i, j)) * gate_up(i, j + y.columns);
    }
  }
  return y;
}

[[nodiscard]] inline Matrix swiglu_backward(Matrix const& gate_up, Matrix const& dy) {
  Matrix result{gate_up.rows, gate_up.columns};
  for (std::int64_t i = 0; i < dy.rows; ++i) {
    for (std::int64_t j = 0; j < dy.columns; ++j) {
      double const gate = gate_up(i, j);
      double const up = gate_up(i, j + dy.columns);
      result(i, j) = dy(i, j) * up * silu_derivative(gate);
      result(i, j + dy.columns) = dy(i, j) * silu(gate);
    }
  }
  return result;
}

}  // namespace motley::kernels::reference
