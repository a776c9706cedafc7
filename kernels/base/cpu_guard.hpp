#pragma once

#include <cstdint>

namespace motley {

/// A set of CPU features, one bit per row of the table in detail/cpu_features.hpp.
using CpuFeatures = std::uint64_t;

/// What the compiler could use when it built this program (data of cpu_target.cpp).
extern "C" CpuFeatures const motley_cpu_required;

/// What this CPU offers and the operating system enables. Everything on CPUs other than x86-64,
/// whose features are not checked.
[[nodiscard]] CpuFeatures find_cpu_features() noexcept;

[[nodiscard]] constexpr CpuFeatures missing_features(CpuFeatures required,
                                                     CpuFeatures found) noexcept {
  return required & ~found;
}

/// Writes the names of a set into a buffer, separated by commas and cut where it ends.
void write_feature_names(CpuFeatures features, char* text, int capacity) noexcept;

}  // namespace motley
