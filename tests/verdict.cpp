#include "tests/verdict.hpp"

#include <gtest/gtest.h>

namespace motley::test {

int verdict(int run_all_tests_result) {
  testing::UnitTest const& tests = *testing::UnitTest::GetInstance();
  if (run_all_tests_result != 0 || tests.test_to_run_count() == 0) return 1;
  return tests.skipped_test_count() > 0 ? exit_code_skipped : 0;
}

}  // namespace motley::test
