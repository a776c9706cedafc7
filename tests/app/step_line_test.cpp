#include "app/step_line.hpp"

#include <gtest/gtest.h>

namespace motley::app {
namespace {

TEST(StepLineTest, says_what_the_readme_explains) {
  StepLine line;
  line.step = 1200;
  line.train_iters = 50000;
  line.loss = 3.21449;
  line.grad_norm = 0.812;
  line.lr = 5.91e-4;
  line.step_ms = 412;
  line.tokens_per_s = 318211;
  line.mfu = 0.381;
  line.mem_bytes = 61.25 * 1024 * 1024 * 1024;
  line.mem_limit_bytes = 79.5 * 1024 * 1024 * 1024;
  line.data_wait_ms = 0.04;
  line.tokens = 1'570'000'000;
  // 48,800 steps left at 412 ms: 20,105.6 s.
  EXPECT_EQ(format_step_line(line),
            "step 1200/50000 | loss 3.2145 | norm 0.812 | lr 5.91e-04 | 412 ms | 318211 tok/s | "
            "mfu 38.1% | mem 61.25/79.5 GiB | wait 0.0 ms | tokens 1.57e+09 | eta 5h35m");
}

TEST(StepLineTest, leaves_out_what_is_unknown_and_adds_what_is_rare) {
  StepLine line;
  line.val_loss = 2.5;
  line.skipped = 3;
  std::string const text = format_step_line(line);
  EXPECT_EQ(text.find("mfu"), std::string::npos);
  EXPECT_NE(text.find("| val 2.5000 |"), std::string::npos);
  EXPECT_NE(text.find("| skipped 3 |"), std::string::npos);
}

TEST(StepLineTest, durations_have_two_parts_at_most) {
  EXPECT_EQ(format_duration(48), "48s");
  EXPECT_EQ(format_duration(727), "12m07s");
  EXPECT_EQ(format_duration(20040), "5h34m");
}

}  // namespace
}  // namespace motley::app
