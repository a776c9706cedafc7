#include "io/metrics_log.hpp"

#include <csignal>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "io/json.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/log_capture.hpp"
#include "tests/io/scratch.hpp"

namespace motley::io {
namespace {

using test::LogCapture;
using test::Scratch;

MetricsRow row_of(std::int64_t step) {
  MetricsRow row;
  row.step = step;
  row.tokens = 1000 * step;
  row.samples = 4 * step;
  row.loss = 3.25;
  return row;
}

std::vector<Json> rows_of(RunFolder const& folder) {
  std::vector<Json> rows;
  std::ifstream file{folder.metrics_file()};
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

/// "1 2 e2 3": steps of the rows, with an e in front of events.
std::string steps_of(RunFolder const& folder) {
  std::string steps;
  for (Json const& row : rows_of(folder)) {
    if (!steps.empty()) steps += " ";
    if (row.contains("event")) steps += "e";
    steps += std::to_string(row.at("step").get<std::int64_t>());
  }
  return steps;
}

TEST(MetricsLogTest, a_row_has_all_keys_in_their_order_and_null_for_the_unknown) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  MetricsLog log{folder, 0};
  MetricsRow row = row_of(10);
  row.grad_norm = std::numeric_limits<double>::infinity();
  row.nan = 1;
  row.per_type["h200"] = {12.5, 0.4, 1024};
  log.write(row);
  std::ifstream file{folder.metrics_file()};
  std::string line;
  std::getline(file, line);
  // The keys of conventions.md §4.
  EXPECT_EQ(line,
            R"({"step":10,"tokens":10000,"samples":40,"loss":3.25,"val_loss":null,"lr":null,)"
            R"("grad_norm":null,"tokens_per_s":null,"step_ms":null,"mfu":null,"mem_peak":null,)"
            R"("host_mem_peak":null,"skipped":null,"nan":1,"imbalance":null,)"
            R"("exposed_comm_ms":null,"bubble_pct":null,"data_wait_ms":null,)"
            R"("per_type":{"h200":{"stage_ms":12.5,"mfu":0.4,"mem_peak":1024}}})");
}

TEST(MetricsLogTest, a_fresh_log_has_no_event) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  MetricsLog log{folder, 0};
  log.write(row_of(1));
  EXPECT_EQ(steps_of(folder), "1");
}

TEST(MetricsLogTest, a_resume_cuts_rows_beyond_its_step_and_says_so) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  {
    MetricsLog log{folder, 0};
    for (std::int64_t step = 1; step <= 6; ++step) log.write(row_of(step));
    log.write_event("checkpoint", 6, "durable");
  }
  {
    MetricsLog log{folder, 4};
    log.write(row_of(5));
  }
  EXPECT_EQ(steps_of(folder), "1 2 3 4 e4 5");
  EXPECT_EQ(rows_of(folder)[4].at("event"), "resume");
  { MetricsLog const log{folder, 4}; }
  EXPECT_EQ(steps_of(folder), "1 2 3 4 e4 e4");
  { MetricsLog const log{folder, 0}; }
  EXPECT_EQ(steps_of(folder), "e0");
}

TEST(MetricsLogTest, a_line_cut_at_any_byte_by_a_crash_is_removed) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  {
    MetricsLog log{folder, 0};
    for (std::int64_t step = 1; step <= 3; ++step) log.write(row_of(step));
  }
  auto const whole = std::filesystem::file_size(folder.metrics_file());
  std::string const all = read_whole_file(folder.metrics_file());
  auto const last_line = all.rfind('\n', all.size() - 2) + 1;
  for (std::size_t length = last_line; length < whole; length += 7) {
    std::ofstream{folder.metrics_file()} << all.substr(0, length);
    {
      MetricsLog log{folder, 3};
      log.write(row_of(3));
    }
    EXPECT_EQ(steps_of(folder), "1 2 e3 3") << length << " bytes";
  }
}

TEST(MetricsLogTest, a_cut_far_back_in_a_long_log_is_found) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  {
    MetricsLog log{folder, 0};
    MetricsRow row = row_of(1);
    row.per_type[std::string(100'000, 'x')] = {};  // a line longer than what is read at once
    log.write(row);
    for (std::int64_t step = 2; step <= 1500; ++step) log.write(row_of(step));
  }
  { MetricsLog const log{folder, 700}; }
  std::vector<Json> const rows = rows_of(folder);
  ASSERT_EQ(rows.size(), 701U);
  EXPECT_EQ(rows[699].at("step"), 700);
  { MetricsLog const log{folder, 1}; }
  EXPECT_EQ(steps_of(folder), "1 e1");
}

TEST(MetricsLogTest, garbage_behind_the_last_good_row_is_removed) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  {
    MetricsLog log{folder, 0};
    log.write(row_of(1));
  }
  std::ofstream{folder.metrics_file(), std::ios::app} << std::string("\0\0{]\n[3]\n{\"step\":", 18);
  { MetricsLog const log{folder, 1}; }
  EXPECT_EQ(steps_of(folder), "1 e1");
}

TEST(MetricsLogTest, a_full_disk_is_warned_about_once_and_leaves_no_half_line) {
  Scratch const scratch;
  RunFolder const folder{scratch / "run"};
  MetricsLog log{folder, 0};
  log.write(row_of(1));
  auto const bytes = std::filesystem::file_size(folder.metrics_file());
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  LogCapture const capture;
  rlimit const limit{bytes + 100, old_limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  log.write(row_of(2));
  log.write(row_of(3));
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(steps_of(folder), "1");
  EXPECT_TRUE(capture.contains("cannot be written")) << capture.text();
  EXPECT_EQ(capture.text().find("cannot be written"), capture.text().rfind("cannot be written"));
  log.write(row_of(4));
  EXPECT_EQ(steps_of(folder), "1 4");
}

}  // namespace
}  // namespace motley::io
