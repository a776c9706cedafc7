// The kernels that read token ids: embedding and cross-entropy.
#include <limits>
#include <string_view>

#include "kernels/base/batch.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/detail/loops.hpp"
#include "kernels/detail/math.hpp"
#include "kernels/embedding.hpp"

namespace motley::kernels {
namespace {

using detail::Lanes;

template <class View>
bool is_given(View const& view) {
  return view.data() != nullptr && view.size() > 0;
}

template <class View>
void check_positions(View const& positions, std::int64_t width, EmbeddingSpec const& spec) {
  auto const count = static_cast<std::int64_t>(positions.extent(0));
  expect_shape(positions, {count, width});
  MOTLEY_VALIDATE(bug,
                  count >= spec.tokens_per_window,
                  "a window has " << spec.tokens_per_window << " tokens where there are " << count
                                  << " positions (the model's maximum); this is a bug of motley, "
                                     "please report it");
}

/// Table row of a token, or -1 if another shard has it.
MOTLEY_FUNCTION std::int64_t local_row(std::int32_t id, std::int64_t first, std::int64_t rows) {
  std::int64_t const row = id - first;
  return row >= 0 && row < rows ? row : -1;
}

// Parts of the table that have one owner each, and so can be updated at the same time.
constexpr std::int64_t table_slices = 64;

template <class T>
void add_to_table(Exec const& exec,
                  std::int64_t first,
                  View1<std::int32_t const> const& ids,
                  View2<T const> const& dy,
                  View2<Accumulator<T>> const& d_table) {
  using A = Accumulator<T>;
  auto const rows = static_cast<std::int64_t>(ids.extent(0));
  auto const table_rows = static_cast<std::int64_t>(d_table.extent(0));
  auto const width = static_cast<int>(dy.extent(1));
  detail::for_each_row(
      exec,
      "motley::kernels::Embedding::add_to_table",
      table_slices,
      rows * width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t slice) {
        for (std::int64_t r = 0; r < rows; ++r) {
          std::int64_t const row = local_row(ids(r), first, table_rows);
          if (row < 0 || row % table_slices != slice) continue;
          T const* const gradient = &dy(r, 0);
          A* const sum = &d_table(row, 0);
          lanes.for_each(width, [&](int j) { sum[j] += static_cast<A>(gradient[j]); });
        }
      });
}

template <class T>
void add_to_positions(Exec const& exec,
                      std::int64_t tokens,
                      View2<T const> const& dy,
                      View2<Accumulator<T>> const& d_positions) {
  using A = Accumulator<T>;
  auto const rows = static_cast<std::int64_t>(dy.extent(0));
  auto const width = static_cast<int>(dy.extent(1));
  detail::for_each_row(
      exec,
      "motley::kernels::Embedding::add_to_positions",
      tokens,
      width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t position) {
        A* const sum = &d_positions(position, 0);
        for (std::int64_t r = position; r < rows; r += tokens) {
          T const* const gradient = &dy(r, 0);
          lanes.for_each(width, [&](int j) { sum[j] += static_cast<A>(gradient[j]); });
        }
      });
}

}  // namespace

template <class T>
void embedding_forward(Exec const& exec,
                       EmbeddingSpec const& spec,
                       View1<std::int32_t const> ids,
                       View2<T const> table,
                       View2<T const> positions,
                       View2<T> y) {
  using A = Accumulator<T>;
  Shape const shape = shape_of(y);
  auto const table_rows = static_cast<std::int64_t>(table.extent(0));
  expect_shape(ids, {shape[0]});
  expect_shape(table, {table_rows, shape[1]});
  bool const has_positions = is_given(positions);
  if (has_positions) check_positions(positions, shape[1], spec);
  auto const width = static_cast<int>(shape[1]);
  std::int64_t const first = spec.first_row;
  std::int64_t const tokens = spec.tokens_per_window;
  detail::for_each_row(
      exec,
      "motley::kernels::Embedding::forward",
      shape[0],
      width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t r) {
        std::int64_t const row = local_row(ids(r), first, table_rows);
        // Row 0 stands in for a token of another shard, times 0.
        T const* const token = &table(row < 0 ? 0 : row, 0);
        T* const out = &y(r, 0);
        if (has_positions) {
          T const* const position = &positions(r % tokens, 0);
          lanes.for_each(width, [&](int j) {
            A const value = row < 0 ? A{0} : static_cast<A>(token[j]);
            out[j] = static_cast<T>(value + static_cast<A>(position[j]));
          });
        } else {
          lanes.for_each(width, [&](int j) {
            out[j] = static_cast<T>(row < 0 ? A{0} : static_cast<A>(token[j]));
          });
        }
      });
}

template <class T>
void embedding_backward(Exec const& exec,
                        EmbeddingSpec const& spec,
                        View1<std::int32_t const> ids,
                        View2<T const> dy,
                        View2<Accumulator<T>> d_table,
                        View2<Accumulator<T>> d_positions) {
  Shape const shape = shape_of(dy);
  expect_shape(ids, {shape[0]});
  expect_shape(d_table, {static_cast<std::int64_t>(d_table.extent(0)), shape[1]});
  add_to_table<T>(exec, spec.first_row, ids, dy, d_table);
  if (!is_given(d_positions)) return;
  check_positions(d_positions, shape[1], spec);
  add_to_positions<T>(exec, spec.tokens_per_window, dy, d_positions);
}

namespace {

/// Rows whose target is neither a column nor -1; waits for `exec`. For contracts only.
std::int64_t count_bad_targets(Exec const& exec,
                               View1<std::int32_t const> const& targets,
                               std::int64_t vocab) {
  std::int64_t bad = 0;
  Kokkos::parallel_reduce(
      "motley::kernels::CrossEntropy::check_targets",
      Kokkos::RangePolicy<Exec>(exec, 0, targets.extent(0)),
      KOKKOS_LAMBDA(std::size_t r, std::int64_t & count) {
        std::int32_t const target = targets(r);
        if (target < Batch::ignored_target || target >= vocab) ++count;
      },
      bad);
  return bad;
}

/// One row: with m = max x and e = exp(x - m), the loss is log Σe + m - x_target.
template <class T>
struct CrossEntropy {
  using A = Accumulator<T>;
  View2<A> logits;
  int vocab;
  View1<std::int32_t const> targets;
  A gradient_scale;  // 0: no gradient
  View1<A> losses;
  View2<T> dlogits;

  MOTLEY_FUNCTION void operator()(Lanes const& lanes, std::int64_t r) const {
    int const target = targets(r);
    A* const x = &logits(r, 0);
    if (target < 0) {
      if (gradient_scale != 0) write_zeros(lanes, r, 0);
      lanes.once([&] { losses(r) = 0; });
      return;
    }
    A const target_logit = x[target];
    A const largest = lanes.template max<A>(vocab, [&](int j) { return x[j]; });
    A const total = gradient_scale == 0 ? sum_exponentials(lanes, x, largest)
                                        : write_exponentials(lanes, x, largest);
    if (gradient_scale != 0) {
      write_gradient(lanes, r, target, gradient_scale / total);
      write_zeros(lanes, r, vocab);
    }
    lanes.once([&] { losses(r) = Kokkos::log(total) + (largest - target_logit); });
  }

 private:
  MOTLEY_FUNCTION A sum_exponentials(Lanes const& lanes, A const* x, A largest) const {
    return lanes.template sum<A>(vocab, [&](int j) { return detail::exp(x[j] - largest); });
  }

  MOTLEY_FUNCTION A write_exponentials(Lanes const& lanes, A* x, A largest) const {
    return lanes.template sum<A>(vocab, [&](int j) {
      A const e = detail::exp(x[j] - largest);
      x[j] = e;
      return e;
    });
  }

  MOTLEY_FUNCTION void write_gradient(Lanes const& lanes,
                                      std::int64_t r,
                                      int target,
                                      A factor) const {
    A const* const e = &logits(r, 0);
    T* const gradient = &dlogits(r, 0);
    lanes.for_each(vocab, [&](int j) {
      A const onehot = j == target ? gradient_scale : A{0};
      gradient[j] = static_cast<T>(e[j] * factor - onehot);
    });
  }

  MOTLEY_FUNCTION void write_zeros(Lanes const& lanes, std::int64_t r, int first) const {
    T* const gradient = &dlogits(r, 0) + first;
    lanes.for_each(static_cast<int>(dlogits.extent(1)) - first,
                   [&](int j) { gradient[j] = static_cast<T>(A{0}); });
  }
};

}  // namespace

template <class T>
void softmax_cross_entropy(Exec const& exec,
                           View2<Accumulator<T>> logits,
                           std::int64_t vocab,
                           View1<std::int32_t const> targets,
                           Accumulator<T> gradient_scale,
                           View1<Accumulator<T>> losses,
                           View2<T> dlogits) {
  Shape const shape = shape_of(logits);
  expect_shape(targets, {shape[0]});
  expect_shape(losses, {shape[0]});
  if (gradient_scale != 0) expect_shape(dlogits, shape);
  MOTLEY_VALIDATE(bug,
                  vocab >= 1 && vocab <= shape[1],
                  "a vocabulary of " << vocab << " was given for logits of " << shape[1]
                                     << " columns (it must fit, and not be empty); this is a bug "
                                        "of motley, please report it");
  MOTLEY_EXPECT(count_bad_targets(exec, targets, vocab) == 0);
  detail::for_each_row(
      exec,
      "motley::kernels::CrossEntropy::forward_backward",
      shape[0],
      shape[1],
      CrossEntropy<T>{logits, static_cast<int>(vocab), targets, gradient_scale, losses, dlogits});
}

#define MOTLEY_INSTANTIATE(T)                                       \
  template void embedding_forward<T>(Exec const&,                   \
                                     EmbeddingSpec const&,          \
                                     View1<std::int32_t const>,     \
                                     View2<T const>,                \
                                     View2<T const>,                \
                                     View2<T>);                     \
  template void embedding_backward<T>(Exec const&,                  \
                                      EmbeddingSpec const&,         \
                                      View1<std::int32_t const>,    \
                                      View2<T const>,               \
                                      View2<Accumulator<T>>,        \
                                      View2<Accumulator<T>>);       \
  template void softmax_cross_entropy<T>(Exec const&,               \
                                         View2<Accumulator<T>>,     \
                                         std::int64_t,              \
                                         View1<std::int32_t const>, \
                                         Accumulator<T>,            \
                                         View1<Accumulator<T>>,     \
                                         View2<T>)

MOTLEY_INSTANTIATE(float);
MOTLEY_INSTANTIATE(BFloat16);
MOTLEY_INSTANTIATE(double);

#undef MOTLEY_INSTANTIATE

}  // namespace motley::kernels
