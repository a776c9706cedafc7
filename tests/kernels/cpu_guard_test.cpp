#include "kernels/base/cpu_guard.hpp"

#include <string>

#include <gtest/gtest.h>

namespace motley {
namespace {

std::string names(CpuFeatures features) {
  char text[512];
  write_feature_names(features, text, sizeof text);
  return text;
}

TEST(CpuGuardTest, this_cpu_has_what_this_test_was_built_for) {
  EXPECT_EQ(missing_features(motley_cpu_required, find_cpu_features()), 0U);
}

TEST(CpuGuardTest, only_required_features_are_missing) {
  EXPECT_EQ(missing_features(0b1101, 0b0110), 0b1001U);
  EXPECT_EQ(missing_features(0b0110, 0b1110), 0U);
}

TEST(CpuGuardTest, names_are_separated_by_commas_and_cut_at_the_end_of_the_buffer) {
  EXPECT_EQ(names(0), "");
  EXPECT_EQ(names(0b101), "sse3, ssse3");
  char text[8];
  write_feature_names(0b101, text, sizeof text);
  EXPECT_STREQ(text, "sse3, s");
}

}  // namespace
}  // namespace motley
