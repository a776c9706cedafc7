#include "kernels/attention.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/detail/portable_attention.hpp"
#include "kernels/reference/attention.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using reference::Matrix;
using test::is_close;
using test::random_view;
using test::values_of;

// Odd everything: windows that end inside a tile, head widths that are no multiple of a vector,
// one head, all heads on one key head, lengths around the sizes of the CPU kernel's tiles.
constexpr AttentionShape shapes[] = {
    {1, 1, 1, 1, 1},
    {2, 7, 3, 3, 5},
    {1, 33, 6, 2, 16},
    {3, 64, 4, 1, 64},
    {1, 65, 2, 1, 40},
    {1, 131, 4, 2, 64},
    {2, 97, 2, 2, 80},
    {1, 70, 1, 1, 256},
    {1, 300, 3, 1, 7},
};

std::string text_of(AttentionShape const& s) {
  return "B" + std::to_string(s.batch) + " T" + std::to_string(s.tokens) + " N" +
         std::to_string(s.heads) + " G" + std::to_string(s.kv_heads) + " H" +
         std::to_string(s.head_width);
}

/// Operands of one attention with padded rows, and the results of a forward and backward pass.
template <class T>
struct Attention {
  using A = Accumulator<T>;

  explicit Attention(AttentionShape const& s, std::uint64_t seed = 1)
      : shape{s},
        qkv{random_view<T>("qkv", s.rows(), s.qkv_columns(), seed, 3)},
        dout{random_view<T>("dout", s.rows(), s.heads * s.head_width, seed + 1, 1)},
        out{random_view<T>("out", s.rows(), s.heads * s.head_width, seed + 2, 2)},
        dqkv{random_view<T>("dqkv", s.rows(), s.qkv_columns(), seed + 3, 5)},
        lse("lse",
            static_cast<std::size_t>(s.batch),
            static_cast<std::size_t>(s.heads),
            static_cast<std::size_t>(s.tokens)),
        workspace("workspace", attention_workspace_bytes<T>(s)) {}

  void run(Exec const& exec = {}) {
    attention_forward<T>(exec, shape, qkv, out, lse, workspace);
    attention_backward<T>(exec, shape, {qkv, out, lse}, dout, dqkv, workspace);
    exec.fence();
  }
  void run_portable() {
    Exec const exec;
    detail::portable_attention_forward<T>(exec, shape, qkv, out, lse);
    detail::portable_attention_backward<T>(exec, shape, {qkv, out, lse}, dout, dqkv, workspace);
    exec.fence();
  }
  void expect_reference() const {
    SCOPED_TRACE(text_of(shape));
    Matrix const input = reference::matrix_of(qkv);
    auto const [expected, expected_lse] = reference::attention_forward(shape, input);
    Matrix const gradient = reference::attention_backward(shape, input, reference::matrix_of(dout));
    std::int64_t const length = std::max(shape.tokens, shape.head_width);
    EXPECT_TRUE(is_close("out", values_of(out), expected.values, {dtype_of<T>, length}));
    EXPECT_TRUE(is_close("lse", values_of(lse), expected_lse, {dtype_of<A>, length}));
    EXPECT_TRUE(is_close("dqkv", values_of(dqkv), gradient.values, {dtype_of<T>, length}));
  }

  AttentionShape shape;
  View2<T> qkv, dout, out, dqkv;
  View3<A> lse;
  View1<std::byte> workspace;
};

template <class T>
class AttentionTest : public testing::Test {};
struct TypeNames {
  template <class T>
  static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming): GoogleTest
    return std::string{to_string(dtype_of<T>)};
  }
};
using Types = testing::Types<float, BFloat16, double>;
TYPED_TEST_SUITE(AttentionTest, Types, TypeNames);

TYPED_TEST(AttentionTest, equals_the_reference) {
  for (AttentionShape const& shape : shapes) {
    Attention<TypeParam> attention{shape};
    attention.run();
    attention.expect_reference();
  }
}

TYPED_TEST(AttentionTest, portable_kernels_equal_the_reference) {
  for (AttentionShape const& shape : shapes) {
    if (shape.tokens > 100) continue;  // the portable kernels know no tiles
    Attention<TypeParam> attention{shape};
    attention.run_portable();
    attention.expect_reference();
  }
}

}  // namespace
}  // namespace motley::kernels
