#pragma once

#include "kernels/detail/math.hpp"

namespace motley::kernels::detail {

// gelu(x) = x/2 (1 + tanh u) = x σ(2u), with 2u = x (inner + outer x²): one exponential.
// Source: Hendrycks, Gimpel 2016, section 2: u = √(2/π) (x + 0.044715 x³).
template <class A>
inline constexpr A gelu_inner = static_cast<A>(1.5957691216057307118);  // 2 √(2/π)
template <class A>
inline constexpr A gelu_outer = static_cast<A>(1.5957691216057307118 * 0.044715);

template <class A>
MOTLEY_FUNCTION A gelu(A x) {
  return x * sigmoid(x * (gelu_inner<A> + gelu_outer<A> * x * x));
}

template <class A>
MOTLEY_FUNCTION A gelu_derivative(A x) {
  auto const [value, slope] = sigmoid_with_slope(x * (gelu_inner<A> + gelu_outer<A> * x * x));
  return value + x * slope * (gelu_inner<A> + 3 * gelu_outer<A> * x * x);
}

}  // namespace motley::kernels::detail
