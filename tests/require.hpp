#pragma once

#include <string_view>

#include <gtest/gtest.h>

namespace motley::test {

/// True if the environment variable MOTLEY_REQUIRE, a list such as "torch,cuda", names this.
[[nodiscard]] bool is_required(std::string_view name);

}  // namespace motley::test

/// Ends this test as skipped because the machine lacks `name`, with a streamed reason; as failed
/// where MOTLEY_REQUIRE names it: if (devices == 0) MOTLEY_SKIP_WITHOUT("cuda", "no device on " <<
/// host);
#define MOTLEY_SKIP_WITHOUT(name, reason)                                                    \
  do {                                                                                       \
    if (::motley::test::is_required(name)) {                                                 \
      FAIL() << "MOTLEY_REQUIRE names " << (name) << ", which this test misses: " << reason; \
    }                                                                                        \
    GTEST_SKIP() << "without " << (name) << ": " << reason;                                  \
  } while (false)
