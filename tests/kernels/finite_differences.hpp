#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace motley::test {

/// Derivative of `loss`, in double, with respect to one number, by the central difference of fourth
/// order: (f(x-2h) - 8 f(x-h) + 8 f(x+h) - f(x+2h)) / 12h.
[[nodiscard]] inline double finite_difference(double& number,
                                              double step,
                                              std::function<double()> const& loss) {
  double const at = number;
  auto const loss_at = [&](double x) {
    number = x;
    double const value = loss();
    number = at;
    return value;
  };
  return ((loss_at(at - 2 * step) - loss_at(at + 2 * step)) +
          8 * (loss_at(at + step) - loss_at(at - step))) /
         (12 * step);
}

/// EXPECT_TRUE(is_gradient("dx", x, dx, loss)): dx[i] is the derivative of loss() with respect to
/// x[i], for host-accessible views of double of the same shape. `loss` reads x anew at each call.
///
/// The numerical derivative is off by h⁴/30 times the fifth derivative, which is taken to be at
/// most 30 times the scale of the loss, and by the loss's rounding over h.
template <class View, class Gradient>
[[nodiscard]] testing::AssertionResult is_gradient(std::string const& name,
                                                   View const& x,
                                                   Gradient const& dx,
                                                   std::function<double()> const& loss) {
  constexpr double step = 1e-3;
  double const scale = std::abs(loss()) + 1.0;
  double const terms = static_cast<double>(x.size());
  double const bound =
      scale * (std::pow(step, 4) + std::numeric_limits<double>::epsilon() * terms / step);
  std::size_t const columns = View::rank() > 1 ? x.extent(1) : 1;
  double largest = 0.0;
  for (std::size_t i = 0; i < x.extent(0); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double const expected = finite_difference(x.access(i, j), step, loss);
      double const actual = dx.access(i, j);
      largest = std::max(largest, std::abs(expected));
      if (!(std::abs(actual - expected) <= bound)) {
        return testing::AssertionFailure()
               << name << "[" << i << ", " << j << "] is " << actual
               << " where the finite difference is " << expected << " (allowed: " << bound << ")";
      }
    }
  }
  if (largest > 1e3 * bound) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << name << ": the gradients are all below " << largest
         << ", too small to be told from errors; choose other inputs for this test";
}

/// Σ a · b over two views of double of the same shape: a loss whose gradient with respect to b is
/// a.
template <class View, class Other>
[[nodiscard]] double inner_product(View const& a, Other const& b) {
  std::size_t const columns = View::rank() > 1 ? a.extent(1) : 1;
  double sum = 0.0;
  for (std::size_t i = 0; i < a.extent(0); ++i) {
    for (std::size_t j = 0; j < columns; ++j) sum += a.access(i, j) * b.access(i, j);
  }
  return sum;
}

}  // namespace motley::test
