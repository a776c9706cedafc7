#pragma once

#include <cstddef>

namespace motley::model {

/// Host memory that this process may still take: the least of what the system has available and
/// what the control groups of the process leave (their reclaimable file cache counts as free).
///
/// Source   proc(5) MemAvailable; Linux Documentation/admin-guide/cgroup-v2.rst, memory.max
[[nodiscard]] std::size_t available_memory_bytes();

/// Memory that this process holds now, and the most it ever held (VmRSS, VmHWM); 0 if unknown.
[[nodiscard]] std::size_t resident_memory_bytes();
[[nodiscard]] std::size_t peak_resident_memory_bytes();

}  // namespace motley::model
