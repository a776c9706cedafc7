#include "model/train/learning_rate.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/train/train_config.hpp"

namespace motley::model {
namespace {

OptimizerConfig schedule(LrDecayStyle style) {
  OptimizerConfig config;
  config.lr = 1e-3;
  config.min_lr = 1e-4;
  config.lr_warmup_iters = 10;
  config.lr_decay_style = style;
  config.lr_decay_share = 0.25;
  return config;
}

TEST(LearningRateTest, warm_up_rises_in_a_straight_line) {
  for (LrDecayStyle const style :
       {LrDecayStyle::cosine, LrDecayStyle::linear, LrDecayStyle::constant, LrDecayStyle::wsd}) {
    EXPECT_DOUBLE_EQ(learning_rate(schedule(style), 110, 1), 1e-4);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(style), 110, 5), 5e-4);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(style), 110, 10), 1e-3);
  }
}

TEST(LearningRateTest, cosine_passes_known_points) {
  OptimizerConfig const config = schedule(LrDecayStyle::cosine);
  EXPECT_NEAR(learning_rate(config, 110, 60), 5.5e-4, 1e-15);              // cos π/2 = 0
  EXPECT_NEAR(learning_rate(config, 109, 43), 1e-4 + 0.75 * 9e-4, 1e-15);  // cos π/3 = 1/2
  EXPECT_NEAR(learning_rate(config, 110, 110), 1e-4, 1e-15);
  EXPECT_NEAR(learning_rate(config, 110, 500), 1e-4, 1e-15);
}

TEST(LearningRateTest, linear_passes_known_points) {
  OptimizerConfig const config = schedule(LrDecayStyle::linear);
  EXPECT_NEAR(learning_rate(config, 110, 35), 1e-3 - 0.25 * 9e-4, 1e-15);
  EXPECT_NEAR(learning_rate(config, 110, 110), 1e-4, 1e-15);
}

TEST(LearningRateTest, constant_stays) {
  EXPECT_EQ(learning_rate(schedule(LrDecayStyle::constant), 110, 110), 1e-3);
}

TEST(LearningRateTest, wsd_is_stable_and_then_falls) {
  OptimizerConfig const config = schedule(LrDecayStyle::wsd);  // falls in the last 25 of 100
  EXPECT_EQ(learning_rate(config, 100, 75), 1e-3);
  EXPECT_NEAR(learning_rate(config, 100, 80), 1e-3 - 0.2 * 9e-4, 1e-15);
  EXPECT_NEAR(learning_rate(config, 100, 100), 1e-4, 1e-15);
}

TEST(LearningRateTest, last_rate_is_a_tenth_by_default) {
  OptimizerConfig config = schedule(LrDecayStyle::linear);
  config.min_lr.reset();
  EXPECT_DOUBLE_EQ(learning_rate(config, 110, 110), 1e-4);
}

TEST(TrainConfigTest, every_bad_value_is_a_problem_with_its_key) {
  TrainerConfig config;
  config.model = with_defaults(config.model);
  EXPECT_TRUE(problems(config).empty());
  config.optimizer.beta1 = 1.0;
  config.optimizer.eps = 0.0;
  config.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
  config.optimizer.min_lr = -1.0;
  config.optimizer.lr_warmup_iters = 1001;
  config.optimizer.lr_decay_share = 0.0;
  config.optimizer.weight_decay = -0.1;
  config.optimizer.clip_grad = -1.0;
  config.train.micro_batch_size = 3;
  config.memory.target = 0.0;
  config.fault.max_skips = -1;
  Problems const found = problems(config);
  std::vector<std::string> keys;
  for (Problem const& problem : found) keys.push_back(problem.key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"optimizer.betas",
                                      "optimizer.eps",
                                      "optimizer.weight_decay",
                                      "optimizer.clip_grad",
                                      "optimizer.lr",
                                      "optimizer.min_lr",
                                      "optimizer.lr_warmup_iters",
                                      "optimizer.lr_decay_share",
                                      "train.global_batch_size",
                                      "memory.target",
                                      "fault.max_skips"}));
  EXPECT_NE(found[8].message.find("6"), std::string::npos) << "the nearest batch above 4 is 6";
}

TEST(TrainConfigTest, names_are_parsed_back) {
  for (LrDecayStyle const style :
       {LrDecayStyle::cosine, LrDecayStyle::linear, LrDecayStyle::constant, LrDecayStyle::wsd}) {
    EXPECT_EQ(parse_lr_decay_style(to_string(style)), style);
  }
  EXPECT_FALSE(parse_lr_decay_style("cos").has_value());
  EXPECT_EQ(parse_recompute("full"), Recompute::full);
  EXPECT_FALSE(parse_recompute("some").has_value());
}

}  // namespace
}  // namespace motley::model
