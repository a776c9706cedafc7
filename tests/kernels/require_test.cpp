#include "tests/require.hpp"

#include <cstdlib>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace motley::test {
namespace {

class RequireTest : public testing::Test {
 protected:
  void TearDown() override { unsetenv("MOTLEY_REQUIRE"); }
};

TEST_F(RequireTest, only_whole_names_of_the_list_are_required) {
  setenv("MOTLEY_REQUIRE", "torch,cuda", 1);
  EXPECT_TRUE(is_required("torch"));
  EXPECT_TRUE(is_required("cuda"));
  EXPECT_FALSE(is_required("tor"));
  EXPECT_FALSE(is_required("quota"));
  unsetenv("MOTLEY_REQUIRE");
  EXPECT_FALSE(is_required("torch"));
}

void miss_a_unicorn() { MOTLEY_SKIP_WITHOUT("unicorn", "none in " << 1 << " stable"); }

TEST_F(RequireTest, missing_what_is_required_fails_with_the_reason) {
  setenv("MOTLEY_REQUIRE", "unicorn", 1);
  EXPECT_FATAL_FAILURE(miss_a_unicorn(), "none in 1 stable");
}

}  // namespace
}  // namespace motley::test
