#pragma once

#include <cstdint>
#include <string>

#include <Kokkos_Core.hpp>

#include "kernels/base/error.hpp"
#include "kernels/base/shape.hpp"

namespace motley {

/// Where kernels run: one stream of a GPU build, all threads of a CPU build.
using Exec = Kokkos::DefaultExecutionSpace;
/// Memory kernels read and write.
using DeviceMemory = Exec::memory_space;

// Layout and space are explicit everywhere: the bytes cross between CPU and GPU ranks, go into
// files and into matrix products, and Kokkos' default layout differs between devices.
template <class T>
using View1 = Kokkos::View<T*, Kokkos::LayoutRight, DeviceMemory>;
template <class T>
using View2 = Kokkos::View<T**, Kokkos::LayoutRight, DeviceMemory>;
template <class T>
using View3 = Kokkos::View<T***, Kokkos::LayoutRight, DeviceMemory>;
template <class T>
using View4 = Kokkos::View<T****, Kokkos::LayoutRight, DeviceMemory>;

template <class T>
using HostView1 = Kokkos::View<T*, Kokkos::LayoutRight, Kokkos::HostSpace>;
template <class T>
using HostView2 = Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::HostSpace>;

namespace detail {
/// Views of a counting arena have no memory, and null must not be moved.
template <class T>
[[nodiscard]] T* moved(T* data, std::int64_t elements) {
  return data == nullptr ? nullptr : data + elements;
}
}  // namespace detail

/// `rows` by `columns` elements of a flat view, from element `first` on, as a matrix.
template <class T>
[[nodiscard]] View2<T> matrix_of(View1<T> const& flat,
                                 std::int64_t first,
                                 std::int64_t rows,
                                 std::int64_t columns) {
  MOTLEY_EXPECT(first >= 0 && first + rows * columns <= static_cast<std::int64_t>(flat.extent(0)));
  return View2<T>{detail::moved(flat.data(), first),
                  static_cast<std::size_t>(rows),
                  static_cast<std::size_t>(columns)};
}

/// `count` elements of a flat view, from element `first` on.
template <class T>
[[nodiscard]] View1<T> part_of(View1<T> const& flat, std::int64_t first, std::int64_t count) {
  MOTLEY_EXPECT(first >= 0 && first + count <= static_cast<std::int64_t>(flat.extent(0)));
  return View1<T>{detail::moved(flat.data(), first), static_cast<std::size_t>(count)};
}

/// `rows` rows of a matrix, from row `first` on.
template <class T>
[[nodiscard]] View2<T> rows_of(View2<T> const& matrix, std::int64_t first, std::int64_t rows) {
  MOTLEY_EXPECT(first >= 0 && first + rows <= static_cast<std::int64_t>(matrix.extent(0)));
  return View2<T>{detail::moved(matrix.data(), first * static_cast<std::int64_t>(matrix.extent(1))),
                  static_cast<std::size_t>(rows),
                  matrix.extent(1)};
}

/// All elements of a matrix whose rows follow each other without a gap.
template <class T>
[[nodiscard]] View1<T> flat_of(View2<T> const& matrix) {
  return View1<T>{matrix.data(), matrix.extent(0) * matrix.extent(1)};
}

/// Extents of a view as a Shape.
template <class View>
[[nodiscard]] Shape shape_of(View const& view) {
  static_assert(View::rank() >= 1 && View::rank() <= 4);
  auto const extent = [&](std::size_t dim) { return static_cast<std::int64_t>(view.extent(dim)); };
  if constexpr (View::rank() == 1) {
    return {extent(0)};
  } else if constexpr (View::rank() == 2) {
    return {extent(0), extent(1)};
  } else if constexpr (View::rank() == 3) {
    return {extent(0), extent(1), extent(2)};
  } else {
    return {extent(0), extent(1), extent(2), extent(3)};
  }
}

/// Throws Error{bug} unless the view has exactly this shape. Called at the entry of public kernels.
template <class View>
void expect_shape(View const& view, Shape const& expected) {
  if (shape_of(view) == expected) return;
  MOTLEY_FAIL(bug,
              "view \"" << view.label() << "\" has shape " << shape_of(view) << " where "
                        << expected << " is needed (shapes follow from the model and the batch); "
                        << "this is a bug of motley, please report it");
}

}  // namespace motley
