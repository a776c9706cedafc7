#pragma once

#include <chrono>
#include <string>

namespace motley::app {

/// Progress of a long job: one line that is rewritten on a terminal, and a line every ten seconds
/// elsewhere. Writes to standard error, so that results can be piped.
class ProgressBar final {
 public:
  explicit ProgressBar(std::string what);
  ProgressBar(ProgressBar const&) = delete;
  ProgressBar& operator=(ProgressBar const&) = delete;
  ProgressBar(ProgressBar&&) = delete;
  ProgressBar& operator=(ProgressBar&&) = delete;
  /// Ends the line.
  ~ProgressBar();

  /// Shows a share of the work (0 … 1) and a remark, at most ten times a second.
  void show(double share, std::string const& remark);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool is_terminal_;
  bool is_line_open_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_shown_;
};

}  // namespace motley::app
