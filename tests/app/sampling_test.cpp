#include "app/sampling.hpp"

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace motley::app {
namespace {

// Probabilities 0.5, 0.25, 0.125, 0.125 of ids 2, 0, 1, 3.
std::array<double, 4> const logits{std::log(0.25), std::log(0.125), std::log(0.5), std::log(0.125)};

TEST(SamplingTest, temperature_zero_takes_the_likeliest) {
  EXPECT_EQ(sample_token(logits, {.temperature = 0}, 0.999), 2);
}

TEST(SamplingTest, draws_follow_the_probabilities) {
  // The cumulative probabilities of ids 2, 0, 1, 3 are 0.5, 0.75, 0.875, 1.
  EXPECT_EQ(sample_token(logits, {}, 0.0), 2);
  EXPECT_EQ(sample_token(logits, {}, 0.499), 2);
  EXPECT_EQ(sample_token(logits, {}, 0.501), 0);
  EXPECT_EQ(sample_token(logits, {}, 0.751), 1);
  EXPECT_EQ(sample_token(logits, {}, 0.999), 3);
}

TEST(SamplingTest, top_k_leaves_k_tokens) {
  // Of 2 and 0 alone: 2/3 and 1/3.
  EXPECT_EQ(sample_token(logits, {.top_k = 2}, 0.66), 2);
  EXPECT_EQ(sample_token(logits, {.top_k = 2}, 0.67), 0);
  EXPECT_EQ(sample_token(logits, {.top_k = 2}, 0.999), 0);
  EXPECT_EQ(sample_token(logits, {.top_k = 1}, 0.999), 2);
}

TEST(SamplingTest, top_p_leaves_the_smallest_set_that_reaches_p) {
  EXPECT_EQ(sample_token(logits, {.top_p = 0.4}, 0.999), 2);
  EXPECT_EQ(sample_token(logits, {.top_p = 0.7}, 0.999), 0);
  EXPECT_EQ(sample_token(logits, {.top_p = 0.0}, 0.999), 2);
}

TEST(SamplingTest, temperature_sharpens) {
  // At temperature 1/2 probabilities are squared: weights 16, 4, 1, 1 of 22.
  EXPECT_EQ(sample_token(logits, {.temperature = 0.5}, 15.9 / 22), 2);
  EXPECT_EQ(sample_token(logits, {.temperature = 0.5}, 16.1 / 22), 0);
}

TEST(SamplingTest, huge_logits_do_not_overflow) {
  std::vector<double> const huge{1e5, 1e5 - 1, -1e5};
  EXPECT_EQ(sample_token(huge, {}, 0.0), 0);
  EXPECT_EQ(sample_token(huge, {}, 0.999), 1);
}

}  // namespace
}  // namespace motley::app
