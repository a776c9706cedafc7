#pragma once

#include <chrono>

#include "kernels/base/view.hpp"

namespace motley::model {

/// Adds the wall time since the last call to the phase that just ended. Waits for the device.
class PhaseClock final {
 public:
  explicit PhaseClock(Exec const& exec) : exec_{exec} {}

  void end_phase(double& phase_s) {
    exec_.fence("motley::model::PhaseClock::end_phase");
    auto const now = Clock::now();
    phase_s += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Exec exec_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace motley::model
