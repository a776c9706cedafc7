#pragma once

namespace motley::test {

/// Exit code of a test program that CTest counts as skipped.
inline constexpr int exit_code_skipped = 77;

/// Exit code of this process after RUN_ALL_TESTS: 1 if a test failed or none ran, 77 if one was
/// skipped.
[[nodiscard]] int verdict(int run_all_tests_result);

}  // namespace motley::test
