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
