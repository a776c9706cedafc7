#include "kernels/base/cpu_guard.hpp"
#include "kernels/base/detail/cpu_features.hpp"

namespace motley {

// Data alone: code of this file could already use what it names.
extern "C" constinit CpuFeatures const motley_cpu_required = detail::features_of_target();

}  // namespace motley
