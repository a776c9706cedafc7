#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/base/philox.hpp"
#include "kernels/base/view.hpp"

namespace motley::test {

/// Overwrites a host-accessible view of order 1 or 2 with numbers in [-1, 1) that follow from
/// `seed`.
template <class View>
void fill_random(View const& view, std::uint64_t seed) {
  Philox const random{seed};
  std::size_t const columns = View::rank() > 1 ? view.extent(1) : 1;
  for (std::size_t i = 0; i < view.extent(0); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      float const value = 2.0F * uniform_from(random(i, j).w[0]) - 1.0F;
      view.access(i, j) = static_cast<typename View::value_type>(value);
    }
  }
}

/// A new view of the given extents whose rows lie `padding` elements further apart than their
/// width, filled by `fill_random`; the padding holds NaN, so whoever reads it shows.
template <class T>
[[nodiscard]] View2<T> random_view(std::string const& label,
                                   std::int64_t rows,
                                   std::int64_t columns,
                                   std::uint64_t seed,
                                   std::int64_t padding = 0) {
  View2<T> const whole(
      label, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns + padding));
  Kokkos::deep_copy(whole, static_cast<T>(std::nanf("")));
  View2<T> const view =
      Kokkos::subview(whole,
                      Kokkos::ALL,
                      Kokkos::pair<std::size_t, std::size_t>{0, static_cast<std::size_t>(columns)});
  fill_random(view, seed);
  return view;
}

template <class T>
[[nodiscard]] View1<T> random_view(std::string const& label,
                                   std::int64_t count,
                                   std::uint64_t seed) {
  View1<T> const view(label, static_cast<std::size_t>(count));
  fill_random(view, seed);
  return view;
}

}  // namespace motley::test
