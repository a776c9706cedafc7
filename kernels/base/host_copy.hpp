#pragma once

#include <algorithm>
#include <span>

#include "kernels/base/error.hpp"
#include "kernels/base/view.hpp"

namespace motley {
namespace detail {
inline constexpr bool device_is_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, DeviceMemory>::accessible;
}  // namespace detail

/// Copies from host memory to the device.
///
/// Shapes   from [n]  ->  to [n]
/// Runs on  `exec`, and waits for it
/// Throws   Error{bug} if sizes disagree (contracts only)
template <class T>
void copy_to_device(Exec const& exec, std::span<T const> from, View1<T> const& to) {
  MOTLEY_EXPECT(from.size() == to.extent(0));
  exec.fence("motley::base::HostCopy::to_device");
  if constexpr (detail::device_is_host) {
    std::copy(from.begin(), from.end(), to.data());
  } else {
    Kokkos::deep_copy(exec, to, HostView1<T const>{from.data(), from.size()});
    exec.fence("motley::base::HostCopy::to_device");
  }
}

/// Copies from the device to host memory.
///
/// Shapes   from [n]  ->  to [n]
/// Runs on  `exec`, and waits for it
/// Throws   Error{bug} if sizes disagree (contracts only)
template <class T>
void copy_to_host(Exec const& exec, View1<T> const& from, std::span<T> to) {
  MOTLEY_EXPECT(to.size() == from.extent(0));
  exec.fence("motley::base::HostCopy::to_host");
  if constexpr (detail::device_is_host) {
    std::copy_n(from.data(), to.size(), to.begin());
  } else {
    Kokkos::deep_copy(exec, HostView1<T>{to.data(), to.size()}, from);
    exec.fence("motley::base::HostCopy::to_host");
  }
}

}  // namespace motley
