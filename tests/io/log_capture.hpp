#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "kernels/base/log.hpp"

namespace motley::test {

/// Keeps what is logged during its lifetime instead of printing it.
class LogCapture {
 public:
  LogCapture() : sink_{std::make_shared<Sink>()} {
    install_log({sink_, LogLevel::info, 0, "testhost"});
  }
  LogCapture(LogCapture const&) = delete;
  LogCapture& operator=(LogCapture const&) = delete;
  LogCapture(LogCapture&&) = delete;
  LogCapture& operator=(LogCapture&&) = delete;
  ~LogCapture() { install_log({}); }

  [[nodiscard]] std::string text() const {
    std::lock_guard const guard{sink_->mutex};
    return sink_->text;
  }
  [[nodiscard]] bool contains(std::string_view part) const {
    return text().find(part) != std::string::npos;
  }

 private:
  struct Sink final : LogSink {
    void write(LogLevel /*level*/, std::string_view line) override {
      std::lock_guard const guard{mutex};
      text.append(line).append("\n");
    }
    std::mutex mutex;
    std::string text;
  };
  std::shared_ptr<Sink> sink_;
};

}  // namespace motley::test
