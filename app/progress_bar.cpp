#include "app/progress_bar.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "app/step_line.hpp"

namespace motley::app {

ProgressBar::ProgressBar(std::string what)
    : what_{std::move(what)}, is_terminal_{isatty(STDERR_FILENO) == 1}, last_shown_{start_} {}

ProgressBar::~ProgressBar() {
  if (is_line_open_) std::fputs("\n", stderr);
}

void ProgressBar::show(double share, std::string const& remark) {
  auto const now = Clock::now();
  auto const pause =
      is_terminal_ ? std::chrono::milliseconds{100} : std::chrono::milliseconds{10'000};
  bool const is_last = share >= 1.0;
  if (now - last_shown_ < pause && !(is_last && is_terminal_)) return;
  last_shown_ = now;
  double const elapsed_s = std::chrono::duration<double>(now - start_).count();
  double const left_s = share > 0 ? elapsed_s * (1 - share) / share : 0;
  std::string line = fmt::format("{}: {:3.0f}% | {} | eta {}",
                                 what_,
                                 100 * std::min(share, 1.0),
                                 remark,
                                 format_duration(left_s));
  if (is_terminal_) {
    line = "\r\x1b[K" + line;
    is_line_open_ = true;
  } else {
    line += "\n";
  }
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace motley::app
