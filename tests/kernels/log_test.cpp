#include "kernels/base/log.hpp"

#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

struct Line {
  LogLevel level;
  std::string text;
  bool operator==(Line const&) const = default;
};

class Recorder final : public LogSink {
 public:
  void write(LogLevel level, std::string_view line) override {
    lines.push_back({level, std::string{line}});
  }
  std::vector<Line> lines;
};

class FullDisk final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*line*/) override {
    throw std::runtime_error{"no space left"};
  }
};

/// Counts how often it is printed.
struct Counted {
  int* count;
  friend std::ostream& operator<<(std::ostream& out, Counted const& counted) {
    ++*counted.count;
    return out;
  }
};

class LogTest : public testing::Test {
 protected:
  void install(LogLevel threshold, int rank, std::string const& host = "") {
    install_log({recorder_, threshold, rank, host});
  }
  void TearDown() override { install_log({}); }

  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
};

TEST_F(LogTest, first_rank_writes_lines_as_they_are) {
  install(LogLevel::info, 0);
  MOTLEY_LOG(warning) << "loss " << 3.5 << " at step " << 7;
  EXPECT_EQ(recorder_->lines, (std::vector<Line>{{LogLevel::warning, "loss 3.5 at step 7"}}));
}

TEST_F(LogTest, other_ranks_write_only_local_lines_with_rank_and_host) {
  install(LogLevel::info, 3, "node7");
  MOTLEY_LOG(error) << "not from here";
  MOTLEY_LOG_LOCAL(error) << "disk full";
  EXPECT_EQ(recorder_->lines, (std::vector<Line>{{LogLevel::error, "rank 3 on node7: disk full"}}));
}

TEST_F(LogTest, a_host_without_name_is_this_host) {
  install(LogLevel::info, 0);
  MOTLEY_LOG_LOCAL(info) << "x";
  EXPECT_EQ(recorder_->lines.at(0).text, "rank 0 on this host: x");
}

TEST_F(LogTest, lines_below_the_threshold_are_dropped_unformatted) {
  int formatted = 0;
  install(LogLevel::warning, 0);
  MOTLEY_LOG(info) << Counted{&formatted};
  EXPECT_EQ(formatted, 0);
  MOTLEY_LOG(warning) << "kept" << Counted{&formatted};
  EXPECT_EQ(formatted, 1);
  install(LogLevel::off, 0);
  MOTLEY_LOG(fatal) << "dropped";
  EXPECT_EQ(recorder_->lines, (std::vector<Line>{{LogLevel::warning, "kept"}}));
}

TEST_F(LogTest, a_sink_that_throws_does_not_end_the_run) {
  install_log({std::make_shared<FullDisk>(), LogLevel::info, 0, ""});
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(MOTLEY_LOG(info) << "x");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a log line was lost\n");
}

TEST_F(LogTest, without_a_sink_lines_go_to_standard_error) {
  install_log({nullptr, LogLevel::info, 0, ""});
  testing::internal::CaptureStderr();
  MOTLEY_LOG(error) << "no such file";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: no such file\n");
}

TEST_F(LogTest, level_names_go_both_ways) {
  for (LogLevel const level : {LogLevel::debug,
                               LogLevel::info,
                               LogLevel::warning,
                               LogLevel::error,
                               LogLevel::fatal,
                               LogLevel::off}) {
    EXPECT_EQ(parse_log_level(to_string(level)), level);
  }
  EXPECT_EQ(parse_log_level("warning"), LogLevel::warning);
  EXPECT_EQ(parse_log_level("Warning"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

}  // namespace
}  // namespace motley
