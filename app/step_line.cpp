#include "app/step_line.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace motley::app {

std::string format_step_line(StepLine const& line) {
  std::string text =
      fmt::format("step {}/{} | loss {:.4f}", line.step, line.train_iters, line.loss);
  if (line.val_loss) text += fmt::format(" | val {:.4f}", *line.val_loss);
  text += fmt::format(" | norm {:.3f} | lr {:.2e} | {:.0f} ms | {:.0f} tok/s",
                      line.grad_norm,
                      line.lr,
                      line.step_ms,
                      line.tokens_per_s);
  if (line.mfu) text += fmt::format(" | mfu {:.1f}%", 100 * *line.mfu);
  constexpr double gib = 1024.0 * 1024.0 * 1024.0;
  text += fmt::format(" | mem {:.2f}/{:.1f} GiB", line.mem_bytes / gib, line.mem_limit_bytes / gib);
  text += fmt::format(" | wait {:.1f} ms", line.data_wait_ms);
  if (line.skipped > 0) text += fmt::format(" | skipped {}", line.skipped);
  double const steps_left =
      static_cast<double>(std::max<std::int64_t>(line.train_iters - line.step, 0));
  text += fmt::format(" | tokens {:.2e} | eta {}",
                      static_cast<double>(line.tokens),
                      format_duration(steps_left * line.step_ms / 1000));
  return text;
}

std::string format_duration(double seconds) {
  auto const whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

std::string format_bytes(double bytes) {
  constexpr double kib = 1024;
  if (bytes >= kib * kib * kib) return fmt::format("{:.2f} GiB", bytes / (kib * kib * kib));
  if (bytes >= kib * kib) return fmt::format("{:.0f} MiB", bytes / (kib * kib));
  return fmt::format("{:.0f} KiB", bytes / kib);
}

}  // namespace motley::app
