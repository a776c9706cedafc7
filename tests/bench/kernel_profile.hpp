#pragma once

#include <string>
#include <vector>

namespace motley::bench {

/// Wall time of the kernels with one label.
struct KernelTime {
  std::string label;
  double seconds = 0.0;
  long calls = 0;
};

/// Counts the time of every Kokkos kernel and region between start and stop, by label.
///
/// Uses the callbacks of Kokkos Tools, so one at a time.
void start_profile();
[[nodiscard]] std::vector<KernelTime> stop_profile();

}  // namespace motley::bench
