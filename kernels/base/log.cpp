#include "kernels/base/log.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace motley {
namespace {

constexpr std::array<std::string_view, 6> level_names{
    "debug", "info", "warning", "error", "fatal", "off"};

LogConfig& current_config() {
  static LogConfig config;
  return config;
}

void write_to_stderr(LogLevel level, std::string_view line) {
  std::string text{to_string(level)};
  text.append(": ").append(line).append("\n");
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  return level_names[static_cast<std::size_t>(level)];
}

std::optional<LogLevel> parse_log_level(std::string_view name) noexcept {
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (level_names[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

void install_log(LogConfig config) { current_config() = std::move(config); }

int log_rank() noexcept { return current_config().rank; }

namespace detail {

LogLine::LogLine(LogLevel level, Scope scope) : level_{level}, scope_{scope} {
  LogConfig const& config = current_config();
  is_active_ = level >= config.threshold && (scope == Scope::every_rank || config.rank == 0);
}

LogLine::~LogLine() {
  if (!is_active_) return;
  try {
    LogConfig const& config = current_config();
    std::string line = text_.str();
    if (scope_ == Scope::every_rank) {
      line = "rank " + std::to_string(config.rank) + " on " +
             (config.host.empty() ? "this host" : config.host) + ": " + line;
    }
    if (config.sink) {
      config.sink->write(level_, line);
    } else {
      write_to_stderr(level_, line);
    }
  } catch (...) {
    // A log line that cannot be written must not end the run; there is nowhere left to say so.
    std::fputs("a log line was lost\n", stderr);
  }
}

}  // namespace detail
}  // namespace motley
