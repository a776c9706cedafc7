#pragma once

#include <cstdint>
#include <span>

namespace motley::app {

/// How the next token is drawn from its logits.
struct SamplingOptions {
  double temperature = 1.0;  ///< logits are divided by it; 0: always the most likely token
  std::int64_t top_k = 0;    ///< only the k most likely tokens; 0: all
  double top_p = 1.0;        ///< only the likeliest tokens that together reach this probability
};

/// Draws a token id.
///
/// Shapes   logits [V]
/// @param uniform a random number in [0, 1)
/// Source   Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1
/// (top-p);
///          Fan et al. 2018, "Hierarchical neural story generation", section 5.3 (top-k)
[[nodiscard]] std::int32_t sample_token(std::span<double const> logits,
                                        SamplingOptions const& options,
                                        double uniform);

}  // namespace motley::app
