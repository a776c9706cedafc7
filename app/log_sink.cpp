#include "app/log_sink.hpp"

#include <cstdlib>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "kernels/base/error.hpp"

namespace motley::app {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::fatal:
      return spdlog::level::critical;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

std::shared_ptr<spdlog::logger> make_logger(std::string const& name,
                                            spdlog::sink_ptr const& sink,
                                            std::string const& pattern) {
  auto logger = std::make_shared<spdlog::logger>(name, sink);
  logger->set_pattern(pattern);
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);
  return logger;
}

class TerminalAndFileSink final : public LogSink {
 public:
  explicit TerminalAndFileSink(std::string const& file_path)
      : out_{make_logger("out", std::make_shared<spdlog::sinks::stdout_sink_mt>(), "%v")},
        error_{make_logger("error", std::make_shared<spdlog::sinks::stderr_sink_mt>(), "%v")} {
    if (file_path.empty()) return;
    file_ = make_logger("file",
                        std::make_shared<spdlog::sinks::basic_file_sink_mt>(file_path),
                        "%Y-%m-%dT%H:%M:%S.%e %l %v");
  }

  void write(LogLevel level, std::string_view line) override {
    spdlog::level::level_enum const spd_level = spdlog_level(level);
    spdlog::string_view_t const text{line.data(), line.size()};
    if (level <= LogLevel::info) {
      out_->log(spd_level, text);
    } else {
      error_->log(spd_level, "{}: {}", to_string(level), line);
    }
    if (file_) file_->log(spd_level, text);
  }

 private:
  std::shared_ptr<spdlog::logger> out_;
  std::shared_ptr<spdlog::logger> error_;
  std::shared_ptr<spdlog::logger> file_;
};

}  // namespace

std::shared_ptr<LogSink> make_log_sink(std::string const& file_path) {
  try {
    return std::make_shared<TerminalAndFileSink>(file_path);
  } catch (spdlog::spdlog_ex const& error) {
    MOTLEY_FAIL(write,
                "log file \"" << file_path << "\" cannot be opened (" << error.what()
                              << "); check the permissions and the free space of run.dir");
  }
}

LogLevel log_level_from_environment() {
  char const* const name = std::getenv("MOTLEY_LOG");
  if (name == nullptr) return LogLevel::info;
  auto const level = parse_log_level(name);
  MOTLEY_VALIDATE(usage,
                  level.has_value(),
                  "environment variable MOTLEY_LOG is \""
                      << name << "\" (not a level); use debug, info, warning, error, fatal or off");
  return *level;
}

}  // namespace motley::app
