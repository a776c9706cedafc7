// oneDNN's own bf16 products, which need AVX-512. On CPUs without bf16 instructions they are
// emulated and never chosen; they must be right all the same.
#include <gtest/gtest.h>

#include "kernels/base/error.hpp"
#include "kernels/linear.hpp"
#include "tests/kernels/linear_cases.hpp"
#include "tests/require.hpp"

namespace motley::kernels::test {
namespace {

MatmulConfig config() { return {ProductMode::library, {}}; }

/// What is said where the CPU has no such products; empty where it has.
std::string refusal() {
  try {
    MatmulEngine engine{config()};
    Arena arena = Arena::counting();
    LinearOperator<BFloat16> const product{engine, arena, {"probe", WeightOrder::out_in, 8, 8, 8}};
    return {};
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.what();
  }
}

TEST(LinearBf16RefusalTest, a_cpu_without_them_is_told_what_to_do) {
  std::string const message = refusal();
  if (!message.empty()) {
    EXPECT_NE(message.find("bf16"), std::string::npos) << message;
  }
}

class LinearBf16LibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string const message = refusal();
    if (!message.empty()) {
      MOTLEY_SKIP_WITHOUT("avx512", message);
    }
  }
};

TEST_F(LinearBf16LibraryTest, forward_equals_the_reference) { check_forward<BFloat16>(config()); }
TEST_F(LinearBf16LibraryTest, wide_forward_keeps_the_sums) {
  check_forward_wide<BFloat16>(config());
}
TEST_F(LinearBf16LibraryTest, every_epilogue_equals_the_reference) {
  check_epilogues<BFloat16>(config());
}
TEST_F(LinearBf16LibraryTest, backward_input_equals_the_reference) {
  check_backward_input<BFloat16>(config());
}
TEST_F(LinearBf16LibraryTest, weight_gradient_overwrites_or_accumulates) {
  check_backward_weight<BFloat16>(config());
}
TEST_F(LinearBf16LibraryTest, many_and_few_rows_with_one_operator) {
  check_many_and_few_rows<BFloat16>(config());
}
TEST_F(LinearBf16LibraryTest, repeats_bit_for_bit) {
  check_repeats_bit_for_bit<BFloat16>(config());
}
TEST_F(LinearBf16LibraryTest, a_changed_weight_is_packed_again) {
  check_packing_again<BFloat16>(config());
}

}  // namespace
}  // namespace motley::kernels::test
