#include "kernels/embedding.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/embedding.hpp"
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

struct Sizes {
  std::int64_t batch, tokens, width, table_rows, first_row, vocab;
};

// Whole tables, shards at the start, in the middle and at the end of one; ids that repeat often.
constexpr Sizes sizes[] = {{1, 1, 1, 1, 0, 1},
                           {2, 7, 5, 3, 0, 3},
                           {3, 33, 65, 130, 0, 130},
                           {2, 40, 48, 64, 0, 200},
                           {2, 40, 48, 64, 64, 200},
                           {2, 40, 48, 72, 128, 200}};

/// Ids in [0, vocab), small ones more often.
View1<std::int32_t> some_ids(std::int64_t count, std::int64_t vocab) {
  View1<std::int32_t> const ids("ids", static_cast<std::size_t>(count));
  Philox const random{5};
  for (std::size_t r = 0; r < ids.extent(0); ++r) {
    float const u = uniform_from(random(0, r).w[0]);
    ids(r) = static_cast<std::int32_t>(u * u * static_cast<float>(vocab));
  }
  return ids;
}

template <class T>
struct EmbeddingCase {
  using A = Accumulator<T>;

  explicit EmbeddingCase(Sizes const& s)
      : spec{s.tokens, s.first_row},
        ids{some_ids(s.batch * s.tokens, s.vocab)},
        table{random_view<T>("table", s.table_rows, s.width, 1, 3)},
        positions{random_view<T>("positions", s.tokens + 2, s.width, 2, 1)},
        y{random_view<T>("y", s.batch * s.tokens, s.width, 3, 2)},
        dy{random_view<T>("dy", s.batch * s.tokens, s.width, 4, 5)},
        d_table{random_view<A>("d_table", s.table_rows, s.width, 5, 1)},
        d_positions{random_view<A>("d_positions", s.tokens + 2, s.width, 6, 3)} {}

  [[nodiscard]] std::vector<std::int32_t> host_ids() const {
    return {ids.data(), ids.data() + ids.extent(0)};
  }
  void backward(Exec const& exec = {}) const {
    embedding_backward<T>(exec, spec, ids, dy, d_table, d_positions);
    exec.fence();
  }

  EmbeddingSpec spec;
  View1<std::int32_t> ids;
  View2<T> table, positions, y, dy;
  View2<A> d_table, d_positions;
};

template <class T>
class EmbeddingTest : public testing::Test {};
TYPED_TEST_SUITE(EmbeddingTest, test::ElementTypes, test::ElementTypeNames);

TYPED_TEST(EmbeddingTest, forward_equals_the_reference) {
  for (Sizes const& s : sizes) {
    EmbeddingCase<TypeParam> const c{s};
    Matrix const table = reference::matrix_of(c.table);
    Matrix const positions = reference::matrix_of(c.positions);
    test::Tolerance const rule{dtype_of<TypeParam>, 1};
    embedding_forward<TypeParam>(Exec{}, c.spec, c.ids, c.table, c.positions, c.y);
    Exec{}.fence();
    Matrix expected = reference::embedding_forward(c.spec, c.host_ids(), table, &positions);
    EXPECT_TRUE(is_close("y", values_of(c.y), expected.values, rule));
    embedding_forward<TypeParam>(Exec{}, c.spec, c.ids, c.table, {}, c.y);
    Exec{}.fence();
    expected = reference::embedding_forward(c.spec, c.host_ids(), table, nullptr);
    EXPECT_EQ(values_of(c.y), expected.values);  // copies
  }
}

TYPED_TEST(EmbeddingTest, backward_adds_what_the_reference_does) {
  for (Sizes const& s : sizes) {
    EmbeddingCase<TypeParam> const c{s};
    reference::EmbeddingGradients expected = reference::embedding_backward(
        c.spec, c.host_ids(), reference::matrix_of(c.dy), s.table_rows, s.tokens + 2);
    std::vector<double> const table_before = values_of(c.d_table);
    std::vector<double> const positions_before = values_of(c.d_positions);
    for (std::size_t i = 0; i < table_before.size(); ++i) {
      expected.d_table.values[i] += table_before[i];
    }
    for (std::size_t i = 0; i < positions_before.size(); ++i) {
      expected.d_positions.values[i] += positions_before[i];
    }
    c.backward();
    test::Tolerance const rule{dtype_of<Accumulator<TypeParam>>, s.batch * s.tokens};
    EXPECT_TRUE(is_close("d_table", values_of(c.d_table), expected.d_table.values, rule));
    EXPECT_TRUE(
        is_close("d_positions", values_of(c.d_positions), expected.d_positions.values, rule));
    std::vector<double> const positions_after = values_of(c.d_positions);
    embedding_backward<TypeParam>(Exec{}, c.spec, c.ids, c.dy, c.d_table, {});
    EXPECT_EQ(values_of(c.d_positions), positions_after);
  }
}

TYPED_TEST(EmbeddingTest, shards_of_the_table_sum_to_the_whole) {
  EmbeddingCase<TypeParam> const whole{{2, 40, 48, 200, 0, 200}};
  embedding_forward<TypeParam>(Exec{}, whole.spec, whole.ids, whole.table, {}, whole.y);
  Exec{}.fence();
  std::vector<double> sum(whole.y.size());
  for (std::int64_t const first : {0, 64, 128}) {
    Kokkos::pair<std::int64_t, std::int64_t> const rows{first, first == 128 ? 200 : first + 64};
    View2<TypeParam> const shard = Kokkos::subview(whole.table, rows, Kokkos::ALL);
    View2<TypeParam> const part("part", whole.y.extent(0), whole.y.extent(1));
    embedding_forward<TypeParam>(
        Exec{}, {whole.spec.tokens_per_window, first}, whole.ids, shard, {}, part);
    Exec{}.fence();
    std::vector<double> const values = values_of(part);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  EXPECT_EQ(sum, values_of(whole.y));
}

TYPED_TEST(EmbeddingTest, bits_do_not_depend_on_the_number_of_threads) {
  EmbeddingCase<TypeParam> const one{{4, 100, 65, 130, 0, 130}};
  EmbeddingCase<TypeParam> const two{{4, 100, 65, 130, 0, 130}};
  one.backward(test::exec_with_threads(1));
  two.backward(test::exec_with_threads(2));
  EXPECT_EQ(values_of(one.d_table), values_of(two.d_table));
  EXPECT_EQ(values_of(one.d_positions), values_of(two.d_positions));
}

TEST(EmbeddingGradientTest, gradients_are_derivatives) {
  EmbeddingCase<double> const c{{2, 5, 3, 4, 0, 4}};
  Kokkos::deep_copy(c.d_table, 0.0);
  Kokkos::deep_copy(c.d_positions, 0.0);
  c.backward();
  auto const loss = [&] {
    embedding_forward<double>(Exec{}, c.spec, c.ids, c.table, c.positions, c.y);
    return test::inner_product(c.dy, c.y);
  };
  EXPECT_TRUE(test::is_gradient("d_table", c.table, c.d_table, loss));
  EXPECT_TRUE(test::is_gradient("d_positions", c.positions, c.d_positions, loss));
}

TEST(EmbeddingShapeTest, wrong_shapes_are_bugs) {
  EmbeddingCase<float> const c{{2, 7, 5, 3, 0, 3}};
  View2<float> const narrow("narrow", 14, 4);
  View2<float> const few_positions("few_positions", 6, 5);
  View1<std::int32_t> const few_ids("few_ids", 13);
  EXPECT_THROW(embedding_forward<float>(Exec{}, c.spec, c.ids, c.table, {}, narrow), Error);
  EXPECT_THROW(embedding_forward<float>(Exec{}, c.spec, few_ids, c.table, {}, c.y), Error);
  EXPECT_THROW(embedding_forward<float>(Exec{}, c.spec, c.ids, c.table, few_positions, c.y), Error);
  EXPECT_THROW(embedding_backward<float>(Exec{}, c.spec, c.ids, narrow, c.d_table, {}), Error);
  EXPECT_THROW(embedding_backward<float>(Exec{}, c.spec, c.ids, c.dy, c.d_table, few_positions),
               Error);
}

}  // namespace
}  // namespace motley::kernels
