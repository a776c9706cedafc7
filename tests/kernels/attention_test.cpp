#include "kernels/attention.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"
#include "kernels/detail/portable_attention.hpp"
#include "kernels/reference/attention.hpp"
#include "tests/kernels/element_types.hpp"
#include "tests/kernels/finite_differences.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/threads.hpp"
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
    {1, 40, 6, 1, 8},
    {2, 193, 5, 1, 24},
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
  // The size is for the threads of this process, often one; some tests use more.
  static constexpr std::size_t scratch_areas = 4;

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
        workspace("workspace", scratch_areas * attention_workspace_bytes<T>(s)) {}

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
TYPED_TEST_SUITE(AttentionTest, test::ElementTypes, test::ElementTypeNames);

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

TYPED_TEST(AttentionTest, bits_do_not_depend_on_the_number_of_threads) {
  // One head of several tiles, so that threads wait for each other's query gradients, and many.
  for (AttentionShape const& shape : {AttentionShape{1, 500, 1, 1, 16}, {2, 200, 6, 2, 8}}) {
    Attention<TypeParam> one{shape};
    one.run(test::exec_with_threads(1));
    for (int const threads : {2, 3, 4}) {
      Attention<TypeParam> many{shape};
      many.run(test::exec_with_threads(threads));
      EXPECT_EQ(values_of(many.out), values_of(one.out)) << threads;
      EXPECT_EQ(values_of(many.lse), values_of(one.lse)) << threads;
      EXPECT_EQ(values_of(many.dqkv), values_of(one.dqkv)) << threads;
    }
  }
}

TYPED_TEST(AttentionTest, the_padding_of_rows_stays_as_it_is) {
  Attention<TypeParam> attention{{2, 21, 2, 1, 5}};
  attention.run();
  auto const expect_nan_behind = [](auto const& view) {
    for (std::size_t row = 0; row < view.extent(0); ++row) {
      for (std::size_t c = view.extent(1); c < view.stride(0); ++c) {
        EXPECT_TRUE(std::isnan(static_cast<double>(view.data()[row * view.stride(0) + c])));
      }
    }
  };
  expect_nan_behind(attention.out);
  expect_nan_behind(attention.dqkv);
}

TYPED_TEST(AttentionTest, equal_keys_give_the_mean_of_the_values_seen) {
  AttentionShape const shape{1, 150, 2, 1, 12};
  Attention<TypeParam> attention{shape};
  for (std::int64_t token = 1; token < shape.tokens; ++token) {
    for (std::int64_t d = 0; d < shape.head_width; ++d) {
      std::int64_t const column = shape.key_column(0) + d;
      attention.qkv(token, column) = attention.qkv(0, column);
    }
  }
  attention.run();
  std::vector<double> expected;
  std::vector<double> sum(static_cast<std::size_t>(shape.head_width));
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    for (std::int64_t d = 0; d < shape.head_width; ++d) {
      sum[static_cast<std::size_t>(d)] +=
          static_cast<double>(attention.qkv(token, shape.value_column(0) + d));
    }
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      for (double const value : sum) expected.push_back(value / static_cast<double>(token + 1));
    }
  }
  EXPECT_TRUE(
      is_close("out", values_of(attention.out), expected, {dtype_of<TypeParam>, shape.tokens}));
}

TYPED_TEST(AttentionTest, the_first_token_sees_only_itself) {
  AttentionShape const shape{2, 9, 4, 2, 8};
  Attention<TypeParam> attention{shape};
  attention.run();
  for (std::int64_t window = 0; window < shape.batch; ++window) {
    std::int64_t const row = window * shape.tokens;
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      for (std::int64_t d = 0; d < shape.head_width; ++d) {
        EXPECT_EQ(attention.out(row, head * shape.head_width + d),
                  attention.qkv(row, shape.value_column(head / shape.group()) + d));
      }
    }
  }
}

TYPED_TEST(AttentionTest, scores_of_plus_and_minus_ten_thousand_select_exactly) {
  // q = (2, 0, 0, 0) and 1/√H = 1/2 make the score of key j exactly its first element: alternately
  // -x and x. From token 1 on, all weight lies evenly on the odd keys.
  using T = TypeParam;
  AttentionShape const shape{1, 130, 1, 1, 4};
  Attention<T> attention{shape};
  T const x{1e4F};
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    for (std::int64_t c = 0; c < shape.value_column(0); ++c) attention.qkv(token, c) = T{0.0F};
    attention.qkv(token, 0) = T{2.0F};
    attention.qkv(token, shape.key_column(0)) = token % 2 == 1 ? x : T{-static_cast<float>(x)};
  }
  attention.run();
  std::vector<double> expected;
  std::vector<double> expected_lse;
  std::vector<double> sum(4);
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    double const count = std::max(1.0, std::floor((static_cast<double>(token) + 1.0) / 2.0));
    for (std::size_t d = 0; d < 4; ++d) {
      double const value = static_cast<double>(attention.qkv(token, 8 + d));
      if (token == 1) sum[d] = 0.0;  // what token 0 saw weighs nothing now
      if (token % 2 == 1 || token == 0) sum[d] += value;
      expected.push_back(sum[d] / count);
    }
    expected_lse.push_back((token == 0 ? -1.0 : 1.0) * static_cast<double>(x) + std::log(count));
  }
  EXPECT_TRUE(is_close("out", values_of(attention.out), expected, {dtype_of<T>, shape.tokens}));
  EXPECT_TRUE(
      is_close("lse", values_of(attention.lse), expected_lse, {dtype_of<Accumulator<T>>, 1}));
  for (double const value : values_of(attention.dqkv)) EXPECT_TRUE(std::isfinite(value));
}

TYPED_TEST(AttentionTest, a_value_that_is_no_number_shows_in_the_result) {
  AttentionShape const shape{1, 20, 1, 1, 4};
  for (std::int64_t const column :
       {shape.query_column(0), shape.key_column(0), shape.value_column(0)}) {
    Attention<TypeParam> attention{shape};
    attention.qkv(7, column) = TypeParam{std::nanf("")};
    attention.run();
    EXPECT_TRUE(std::isnan(static_cast<double>(attention.out(7, 0)))) << column;
    EXPECT_TRUE(std::isnan(static_cast<double>(attention.dqkv(7, 0)))) << column;
  }
}

TEST(AttentionGradientTest, backward_equals_finite_differences) {
  for (AttentionShape const& shape : {AttentionShape{2, 5, 4, 2, 3}, {1, 9, 1, 1, 4}}) {
    Attention<double> attention{shape};
    attention.run();
    EXPECT_TRUE(test::is_gradient("dqkv", attention.qkv, attention.dqkv, [&] {
      attention_forward<double>(
          {}, shape, attention.qkv, attention.out, attention.lse, attention.workspace);
      return test::inner_product(attention.dout, attention.out);
    }));
  }
}

template <class Call>
void expect_bug(Call const& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug) << error.what();
  }
}

TEST(AttentionErrorTest, impossible_sizes_are_refused) {
  expect_bug([] { static_cast<void>(attention_workspace_bytes<float>({1, 8, 3, 2, 4})); });
  expect_bug([] { static_cast<void>(attention_workspace_bytes<float>({1, 0, 2, 2, 4})); });
}

TEST(AttentionErrorTest, views_of_other_shapes_are_refused) {
  AttentionShape const shape{2, 8, 2, 1, 4};
  AttentionShape const other{2, 8, 2, 2, 4};
  Attention<float> a{shape};
  Attention<float> b{other};
  expect_bug([&] { attention_forward<float>({}, shape, b.qkv, a.out, a.lse, a.workspace); });
  expect_bug([&] { attention_forward<float>({}, shape, a.qkv, b.qkv, a.lse, a.workspace); });
  expect_bug([&] {
    attention_backward<float>({}, shape, {a.qkv, a.out, a.lse}, a.dout, b.dqkv, a.workspace);
  });
}

TEST(AttentionErrorTest, a_small_workspace_is_refused) {
  AttentionShape const shape{2, 8, 2, 1, 4};
  Attention<float> a{shape};
  View1<std::byte> const small("small", attention_workspace_bytes<float>(shape) - 1);
  expect_bug([&] { attention_forward<float>({}, shape, a.qkv, a.out, a.lse, small); });
  expect_bug([&] {
    attention_backward<float>({}, shape, {a.qkv, a.out, a.lse}, a.dout, a.dqkv, small);
  });
}

}  // namespace
}  // namespace motley::kernels
