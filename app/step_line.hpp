#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace motley::app {

/// What one line of the training log says. Optional fields are left out of the line while unknown.
struct StepLine {
  std::int64_t step = 0;
  std::int64_t train_iters = 0;
  double loss = 0;                 ///< nats per token
  std::optional<double> val_loss;  ///< nats per token
  double grad_norm = 0;            ///< before clipping
  double lr = 0;
  double step_ms = 0;
  double tokens_per_s = 0;
  std::optional<double> mfu;  ///< 0…1, against the measured matrix-product peak
  double mem_bytes = 0;       ///< peak resident memory so far
  double mem_limit_bytes = 0;
  double data_wait_ms = 0;  ///< per step
  std::int64_t skipped = 0;
  std::int64_t tokens = 0;  ///< since step 0
};

/// "step 1200/50000 | loss 3.2145 | norm 0.812 | lr 5.91e-04 | 412 ms | 318211 tok/s | mfu 38.1% |
/// …"
[[nodiscard]] std::string format_step_line(StepLine const& line);

/// "5h34m", "12m07s", "48s"
[[nodiscard]] std::string format_duration(double seconds);

/// "1.49 GiB", "312 MiB"
[[nodiscard]] std::string format_bytes(double bytes);

}  // namespace motley::app
