#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include "kernels/base/dtype.hpp"

namespace motley::test {

/// The one rule by which results are compared (STYLE.md S40):
/// |a − r| ≤ c · ε · √K · (|r| + scale), with scale the root mean square of all r.
struct Tolerance {
  DType dtype = DType::fp32;  ///< gives ε: the coarsest type the result went through
  std::int64_t length = 1;    ///< K: how many terms the longest sum behind one value has
  double c = 4.0;             ///< at most 4
};

/// How close two sets of values are. `fraction` is |a − r| over what is allowed, at its largest:
/// above 1 (or NaN) the rule is broken.
struct Closeness {
  double fraction = 0.0;
  std::size_t index = 0;  ///< where it is largest
  double actual = 0.0;
  double reference = 0.0;
};

/// Values of a host-accessible view of order 1 to 4, row by row, widened.
template <class View>
[[nodiscard]] std::vector<double> values_of(View const& view) {
  std::vector<double> values;
  values.reserve(view.size());
  auto const n1 = View::rank() > 1 ? view.extent(1) : 1;
  auto const n2 = View::rank() > 2 ? view.extent(2) : 1;
  auto const n3 = View::rank() > 3 ? view.extent(3) : 1;
  for (std::size_t i0 = 0; i0 < view.extent(0); ++i0) {
    for (std::size_t i1 = 0; i1 < n1; ++i1) {
      for (std::size_t i2 = 0; i2 < n2; ++i2) {
        for (std::size_t i3 = 0; i3 < n3; ++i3) {
          values.push_back(static_cast<double>(view.access(i0, i1, i2, i3)));
        }
      }
    }
  }
  return values;
}

[[nodiscard]] inline double root_mean_square(std::span<double const> values) {
  double sum = 0.0;
  for (double const value : values) sum += value * value;
  return values.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(values.size()));
}

[[nodiscard]] inline Closeness closeness(std::span<double const> actual,
                                         std::span<double const> reference,
                                         Tolerance tolerance) {
  double const unit =
      tolerance.c * epsilon(tolerance.dtype) * std::sqrt(static_cast<double>(tolerance.length));
  double const scale = root_mean_square(reference);
  Closeness worst;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    double const error = std::abs(actual[i] - reference[i]);
    double const allowed = unit * (std::abs(reference[i]) + scale);
    // All-zero references allow no error; NaN on either side never passes.
    double fraction = error == 0.0 ? 0.0 : error / allowed;
    if (std::isnan(fraction)) fraction = std::numeric_limits<double>::infinity();
    if (fraction > worst.fraction) worst = {fraction, i, actual[i], reference[i]};
  }
  return worst;
}

/// EXPECT_TRUE(is_close("dx", values_of(dx), expected, {DType::fp32, K})). Records the fraction of
/// the tolerance that was used as a property of the test.
[[nodiscard]] inline testing::AssertionResult is_close(std::string const& name,
                                                       std::span<double const> actual,
                                                       std::span<double const> reference,
                                                       Tolerance tolerance) {
  if (tolerance.c > 4.0 || tolerance.length < 1) {
    return testing::AssertionFailure() << name << ": the tolerance is outside the rule (c <= 4)";
  }
  if (actual.size() != reference.size() || reference.empty()) {
    return testing::AssertionFailure() << name << ": " << actual.size() << " values against "
                                       << reference.size() << " of the reference";
  }
  Closeness const worst = closeness(actual, reference, tolerance);
  std::ostringstream fraction;
  fraction << worst.fraction;
  testing::Test::RecordProperty("tolerance_used." + name, fraction.str());
  if (worst.fraction <= 1.0) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << name << "[" << worst.index << "] is " << worst.actual << " where the reference has "
         << worst.reference << ": " << worst.fraction << " of what the tolerance allows";
}

}  // namespace motley::test
