#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/base/view.hpp"

namespace motley::bench {

/// Seconds of several runs of one thing.
class Timing {
 public:
  void add(double seconds) { runs_.push_back(seconds); }
  [[nodiscard]] double median_s() const {
    std::vector<double> sorted = runs_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  [[nodiscard]] double fastest_s() const { return *std::min_element(runs_.begin(), runs_.end()); }
  /// (slowest - fastest) / median
  [[nodiscard]] double spread() const {
    auto const [fastest, slowest] = std::minmax_element(runs_.begin(), runs_.end());
    return (*slowest - *fastest) / median_s();
  }

 private:
  std::vector<double> runs_;
};

/// Seconds of one run of `work`, until the default execution space has finished it.
template <class Work>
[[nodiscard]] double seconds_of(Work const& work) {
  auto const start = std::chrono::steady_clock::now();
  work();
  Exec{}.fence("motley::bench::seconds_of");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Times two things in turn (A B A B), so that both meet the same disturbances.
template <class First, class Second>
void time_in_turn(int pairs,
                  First const& first,
                  Timing& first_times,
                  Second const& second,
                  Timing& second_times) {
  first();
  second();
  Exec{}.fence("motley::bench::time_in_turn");
  for (int pair = 0; pair < pairs; ++pair) {
    first_times.add(seconds_of(first));
    second_times.add(seconds_of(second));
  }
}

[[nodiscard]] inline std::string machine_name() {
  std::ifstream cpus{"/proc/cpuinfo"};
  for (std::string line; std::getline(cpus, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

/// A record with what every benchmark line holds; MOTLEY_COMMIT in the environment names the
/// sources.
[[nodiscard]] inline nlohmann::ordered_json record(std::string const& name, Timing const& timing) {
  char const* const commit = std::getenv("MOTLEY_COMMIT");
  return {{"case", name},
          {"time_s", timing.median_s()},
          {"fastest_s", timing.fastest_s()},
          {"spread", timing.spread()},
          {"threads", Exec{}.concurrency()},
          {"machine", machine_name()},
          {"commit", commit == nullptr ? "unknown" : commit}};
}

}  // namespace motley::bench
