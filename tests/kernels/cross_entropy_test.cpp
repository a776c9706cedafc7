#include "kernels/cross_entropy.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/cross_entropy.hpp"
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
  std::int64_t rows, vocab, padded;
};

constexpr Sizes sizes[] = {
    {1, 1, 1}, {6, 2, 64}, {3, 7, 7}, {5, 63, 64}, {17, 1000, 1024}, {2, 50257, 50304}};

/// Logits spread over [-10, 10), with NaN in the padding: what is read there shows.
template <class T>
struct Loss {
  using A = Accumulator<T>;
  static constexpr bool is_in_place = std::is_same_v<T, A>;

  explicit Loss(Sizes const& s)
      : vocab{s.vocab},
        logits{random_view<A>("logits", s.rows, s.padded, 1, 3)},
        targets("targets", static_cast<std::size_t>(s.rows)),
        losses{random_view<A>("losses", s.rows, 2)} {
    for (std::size_t i = 0; i < logits.extent(0); ++i) {
      targets(i) = i % 4 == 1
                       ? -1
                       : static_cast<std::int32_t>((7919 * static_cast<std::int64_t>(i)) % s.vocab);
      for (std::size_t j = 0; j < logits.extent(1); ++j) {
        logits(i, j) = static_cast<std::int64_t>(j) < s.vocab ? A{10} * logits(i, j)
                                                              : std::numeric_limits<A>::quiet_NaN();
      }
    }
    if constexpr (is_in_place) {
      dlogits = logits;
    } else {
      dlogits = random_view<T>("dlogits", s.rows, s.padded, 4, 5);
    }
  }

  void run(A gradient_scale, Exec const& exec = {}) const {
    softmax_cross_entropy<T>(exec, logits, vocab, targets, gradient_scale, losses, dlogits);
    exec.fence();
  }
  [[nodiscard]] std::vector<std::int32_t> host_targets() const {
    return {targets.data(), targets.data() + targets.extent(0)};
  }

  std::int64_t vocab;
  View2<A> logits;
  View1<std::int32_t> targets;
  View1<A> losses;
  View2<T> dlogits;
};

template <class T>
class CrossEntropyTest : public testing::Test {};
TYPED_TEST_SUITE(CrossEntropyTest, test::ElementTypes, test::ElementTypeNames);

TYPED_TEST(CrossEntropyTest, equals_the_reference) {
  using A = Accumulator<TypeParam>;
  for (Sizes const& s : sizes) {
    SCOPED_TRACE(std::to_string(s.rows) + " x " + std::to_string(s.vocab));
    Loss<TypeParam> const loss{s};
    A const gradient_scale{0.125F};
    reference::CrossEntropyResult const expected = reference::softmax_cross_entropy(
        reference::matrix_of(loss.logits), s.vocab, loss.host_targets(), gradient_scale);
    loss.run(gradient_scale);
    EXPECT_TRUE(
        is_close("losses", values_of(loss.losses), expected.losses, {dtype_of<A>, s.vocab}));
    EXPECT_TRUE(is_close("dlogits",
                         values_of(loss.dlogits),
                         expected.dlogits.values,
                         {dtype_of<TypeParam>, s.vocab}));
  }
}

TYPED_TEST(CrossEntropyTest, ignored_rows_and_padding_get_exact_zeros) {
  Loss<TypeParam> const loss{{6, 61, 64}};
  loss.run(1);
  for (std::size_t i = 0; i < 6; ++i) {
    bool const is_ignored = loss.targets(i) < 0;
    EXPECT_EQ(loss.losses(i) == 0, is_ignored);
    for (std::size_t j = is_ignored ? 0 : 61; j < 64; ++j) {
      EXPECT_EQ(static_cast<double>(loss.dlogits(i, j)), 0.0);
    }
  }
}

TYPED_TEST(CrossEntropyTest, without_gradient_the_logits_stay) {
  Loss<TypeParam> const with{{5, 300, 320}};
  Loss<TypeParam> without{{5, 300, 320}};
  without.dlogits = {};
  with.run(1);
  without.run(0);
  EXPECT_TRUE(is_close("losses",
                       values_of(without.losses),
                       values_of(with.losses),
                       {dtype_of<Accumulator<TypeParam>>, 300}));
  Loss<TypeParam> const fresh{{5, 300, 320}};
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 300; ++j) EXPECT_EQ(without.logits(i, j), fresh.logits(i, j));
  }
}

TYPED_TEST(CrossEntropyTest, equal_logits_lose_the_logarithm_of_the_vocabulary) {
  using A = Accumulator<TypeParam>;
  for (A const level : {A{0}, A{-1000}, A{1000}}) {
    Loss<TypeParam> const loss{{1, 4, 4}};
    Kokkos::deep_copy(loss.logits, level);
    loss.run(0);
    EXPECT_TRUE(
        is_close("loss", values_of(loss.losses), std::vector{std::log(4.0)}, {dtype_of<A>}));
  }
}

TYPED_TEST(CrossEntropyTest, logits_far_apart_neither_overflow_nor_lose_the_loss) {
  using A = Accumulator<TypeParam>;
  Loss<TypeParam> const loss{{1, 2, 2}};
  loss.targets(0) = 0;
  loss.logits(0, 0) = -5e4F;
  loss.logits(0, 1) = 5e4F;
  loss.run(1);
  EXPECT_EQ(loss.losses(0), A{1e5F});
  EXPECT_EQ(static_cast<A>(loss.dlogits(0, 0)), A{-1});
  EXPECT_EQ(static_cast<A>(loss.dlogits(0, 1)), A{1});
}

TYPED_TEST(CrossEntropyTest, infinite_and_nan_logits_give_a_nan_loss) {
  using A = Accumulator<TypeParam>;
  for (A const bad : {std::numeric_limits<A>::infinity(), std::numeric_limits<A>::quiet_NaN()}) {
    Loss<TypeParam> const loss{{1, 50, 64}};
    loss.logits(0, 17) = bad;
    loss.run(1);
    EXPECT_TRUE(std::isnan(loss.losses(0)));
  }
}

TYPED_TEST(CrossEntropyTest, bits_do_not_depend_on_the_number_of_threads) {
  Loss<TypeParam> const one{{40, 1001, 1024}};
  Loss<TypeParam> const two{{40, 1001, 1024}};
  one.run(1, test::exec_with_threads(1));
  two.run(1, test::exec_with_threads(2));
  EXPECT_EQ(values_of(one.losses), values_of(two.losses));
  EXPECT_EQ(values_of(one.dlogits), values_of(two.dlogits));
}

TEST(CrossEntropyGradientTest, gradient_is_the_derivative) {
  View2<double> const logits = random_view<double>("logits", 3, 7, 1);
  View2<double> const gradient("gradient", 3, 7);
  View1<std::int32_t> const targets("targets", 3);
  targets(0) = 6;
  targets(1) = -1;
  targets(2) = 0;
  View1<double> const losses("losses", 3);
  Kokkos::deep_copy(gradient, logits);
  softmax_cross_entropy<double>(Exec{}, gradient, 6 + 1, targets, 0.5, losses, gradient);
  EXPECT_TRUE(test::is_gradient("dlogits", logits, gradient, [&] {
    softmax_cross_entropy<double>(Exec{}, logits, 6 + 1, targets, 0.0, losses, {});
    return 0.5 * (losses(0) + losses(1) + losses(2));
  }));
}

TEST(CrossEntropyShapeTest, wrong_shapes_are_bugs) {
  Loss<float> const good{{4, 7, 8}};
  auto const run = [&](std::int64_t vocab, std::size_t rows, View2<float> const& dlogits) {
    View1<float> const losses("losses", rows);
    softmax_cross_entropy<float>(Exec{}, good.logits, vocab, good.targets, 1.0F, losses, dlogits);
  };
  EXPECT_THROW(run(0, 4, good.dlogits), Error);
  EXPECT_THROW(run(9, 4, good.dlogits), Error);
  EXPECT_THROW(run(7, 3, good.dlogits), Error);
  EXPECT_THROW(run(7, 4, {}), Error);
}

#ifdef MOTLEY_ENABLE_CONTRACTS
TEST(CrossEntropyContractTest, a_target_beyond_the_vocabulary_is_a_bug) {
  for (std::int32_t const target : {7, -2}) {
    Loss<float> const loss{{4, 7, 8}};
    loss.targets(2) = target;
    EXPECT_THROW(loss.run(1), Error);
  }
}
#endif

}  // namespace
}  // namespace motley::kernels
