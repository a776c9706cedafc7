#pragma once

#include <cstdint>

#include "model/spec/model_spec.hpp"

// Shapes: D model width, H head width, N heads, L layers, T tokens of a window.

namespace motley::model {

/// Parameters that every token is multiplied with: all but learned positions and, where the head is
/// not tied to it, the token embedding (both are look-ups).
[[nodiscard]] std::int64_t multiplied_parameter_count(ModelSpec const& spec);

/// Floating point operations of forward and backward of some windows, as MFU counts them:
/// (6 P + 12 L N H T) T per window, P = multiplied_parameter_count. Recomputation and the half of
/// attention that the causal mask saves are not subtracted or added.
///
/// Source   Chowdhery et al. 2022, "PaLM", appendix B
[[nodiscard]] double step_flop(ModelSpec const& spec, std::int64_t windows, std::int64_t tokens);

}  // namespace motley::model
