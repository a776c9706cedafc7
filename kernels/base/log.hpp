#pragma once

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace motley {

enum class LogLevel { debug, info, warning, error, fatal, off };

[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

/// Level of a name as users write it in MOTLEY_LOG ("debug" … "off"); empty if there is none.
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view name) noexcept;

/// Where log lines go. Called from any thread; an implementation locks for itself.
class LogSink {
 public:
  LogSink() = default;
  LogSink(LogSink const&) = delete;
  LogSink& operator=(LogSink const&) = delete;
  LogSink(LogSink&&) = delete;
  LogSink& operator=(LogSink&&) = delete;
  virtual ~LogSink() = default;
  virtual void write(LogLevel level, std::string_view line) = 0;
};

/// What the logger needs to know of the process it runs in.
struct LogConfig {
  std::shared_ptr<LogSink> sink;  ///< null: standard error
  LogLevel threshold = LogLevel::info;
  int rank = 0;      ///< MPI world rank
  std::string host;  ///< printed by MOTLEY_LOG_LOCAL
};

/// Installs the logger of this process (S19: the one piece of global state). Main thread only.
void install_log(LogConfig config);

[[nodiscard]] int log_rank() noexcept;

namespace detail {

/// One log line: collects a message and hands it to the sink at the end of the statement.
class LogLine {
 public:
  enum class Scope { first_rank, every_rank };

  LogLine(LogLevel level, Scope scope);
  LogLine(LogLine const&) = delete;
  LogLine& operator=(LogLine const&) = delete;
  LogLine(LogLine&&) = delete;
  LogLine& operator=(LogLine&&) = delete;
  ~LogLine();

  template <class T>
  LogLine& operator<<(T const& value) {
    if (is_active_) text_ << value;
    return *this;
  }

 private:
  LogLevel level_;
  Scope scope_;
  bool is_active_;
  std::ostringstream text_;
};

}  // namespace detail
}  // namespace motley

/// MOTLEY_LOG(info) << …;  one line, from rank 0 only.
#define MOTLEY_LOG(level) \
  ::motley::detail::LogLine(::motley::LogLevel::level, ::motley::detail::LogLine::Scope::first_rank)

/// MOTLEY_LOG_LOCAL(error) << …;  one line from this rank, with rank and host.
#define MOTLEY_LOG_LOCAL(level) \
  ::motley::detail::LogLine(::motley::LogLevel::level, ::motley::detail::LogLine::Scope::every_rank)
