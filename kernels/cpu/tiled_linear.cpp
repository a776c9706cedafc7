#include "kernels/cpu/tiled_linear.hpp"

#include <algorithm>
#include <type_traits>

#include <omp.h>

#include "kernels/detail/gelu.hpp"

namespace motley::kernels::cpu {
namespace {

using detail::RegisterTile;
using detail::Strided;

// Costs of preparing an element of the left operand, in multiplications of its row with a column:
// copying and transposing, as measured on Zen 3.
constexpr double copy_cost = 6.0;
constexpr double transpose_cost = 16.0;

template <class T>
Strided<T const> plain(View2<T const> const& view) {
  return {view.data(), static_cast<std::int64_t>(view.stride(0)), 1};
}
template <class T>
Strided<T const> transposed(View2<T const> const& view) {
  return {view.data(), 1, static_cast<std::int64_t>(view.stride(0))};
}
template <class View>
std::int64_t extent(View const& view, std::size_t dim) {
  return static_cast<std::int64_t>(view.extent(dim));
}
template <class View>
std::int64_t stride(View const& view) {
  return static_cast<std::int64_t>(view.stride(0));
}

template <class S>
std::size_t thread_bytes() {
  return static_cast<std::size_t>(Exec{}.concurrency()) * TileScratch<S>::bytes;
}

/// Packs b [k, n] on all threads, panel by panel.
template <class S, class T>
void pack_panels(Exec const& exec,
                 char const* label,
                 std::int64_t k,
                 std::int64_t n,
                 Strided<T const> b,
                 S* packed) {
  constexpr std::int64_t columns = RegisterTile<S>::columns;
  detail::for_each_tile(exec, label, (n + columns - 1) / columns, [=](std::int64_t panel) {
    std::int64_t const j = panel * columns;
    Strided<T const> const from{b.data + j * b.column_stride, b.row_stride, b.column_stride};
    detail::pack_right(k, std::min(columns, n - j), from, packed + j * k);
  });
}

/// Computes all tiles of a product and hands each to `finish`.
template <class S, class T, class Finish>
void run(Exec const& exec,
         char const* label,
         TiledProduct<S, T> const& product,
         Shared const& shared,
         Finish const& finish) {
  TileGrid const grid = choose_grid(product.shape.m,
                                    product.shape.n,
                                    RegisterTile<S>::columns,
                                    exec.concurrency(),
                                    product.a.column_stride == 1 ? copy_cost : transpose_cost);
  auto* const scratch = reinterpret_cast<S*>(shared.workspace.take(thread_bytes<S>()));
  std::function<void()> const* const between_tiles =
      shared.between_tiles ? &shared.between_tiles : nullptr;
  detail::for_each_tile(exec, label, grid.count(), [=](std::int64_t index) {
    int const thread = omp_get_thread_num();
    S* const mine = scratch + thread * (TileScratch<S>::left_count + TileScratch<S>::sum_count);
    finish(multiply_one(product, grid, index, {mine, mine + TileScratch<S>::left_count}));
    if (between_tiles != nullptr && thread == 0) (*between_tiles)();
  });
}

struct NothingToFinish {
  template <class Tile>
  void operator()(Tile const& /*tile*/) const {}
};

/// Rounds the sums of a tile to T, adding them to what is there if asked to.
template <class T>
struct Store {
  View2<T> to;
  Accumulate accumulate;

  void operator()(FinishedTile<Accumulator<T>> const& tile) const {
    using A = Accumulator<T>;
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      A const* const sums = tile.sums + i * tile.stride;
      T* const row = &to(tile.row + i, tile.column);
      if (accumulate == Accumulate::yes) {
#pragma omp simd
        for (std::int64_t j = 0; j < tile.columns; ++j) {
          row[j] = static_cast<T>(static_cast<A>(row[j]) + sums[j]);
        }
      } else {
#pragma omp simd
        for (std::int64_t j = 0; j < tile.columns; ++j) row[j] = static_cast<T>(sums[j]);
      }
    }
  }
};

/// y = gelu(sums + bias) + residual for the elements of a tile.
template <class T>
struct Finish {
  Epilogue<T> epilogue;
  View2<T> y;

  void operator()(FinishedTile<Accumulator<T>> const& tile) const {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      finish_row(tile.row + i, tile.column, tile.columns, tile.sums + i * tile.stride);
    }
  }

  void finish_row(std::int64_t row,
                  std::int64_t column,
                  std::int64_t count,
                  Accumulator<T>* sums) const {
    using A = Accumulator<T>;
    if (epilogue.bias.data() != nullptr) {
      T const* const bias = &epilogue.bias(column);
#pragma omp simd
      for (std::int64_t j = 0; j < count; ++j) sums[j] += static_cast<A>(bias[j]);
    }
    if (epilogue.before_gelu.data() != nullptr) {
      T* const kept = &epilogue.before_gelu(row, column);
#pragma omp simd
      for (std::int64_t j = 0; j < count; ++j) kept[j] = static_cast<T>(sums[j]);
    }
    if (epilogue.gelu) {
#pragma omp simd
      for (std::int64_t j = 0; j < count; ++j) sums[j] = detail::gelu(sums[j]);
    }
    if (epilogue.residual.data() != nullptr) {
      T const* const residual = &epilogue.residual(row, column);
#pragma omp simd
      for (std::int64_t j = 0; j < count; ++j) sums[j] += static_cast<A>(residual[j]);
    }
    T* const to = &y(row, column);
    if constexpr (std::is_same_v<T, A>) {
      if (to == sums) return;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) to[j] = static_cast<T>(sums[j]);
  }
};

}  // namespace

template <class T>
TiledLinear<T>::TiledLinear(Shared& shared, Arena& arena, LinearSpec const& spec)
    : shared_{shared}, spec_{spec} {
  forward_weight_ =
      arena.make<A>(spec.label + ".packed", detail::packed_right_count<A>(spec.in, spec.out))
          .data();
  std::size_t panels = 0;
  if (spec.needs_backward) {
    backward_weight_ = arena
                           .make<A>(spec.label + ".packed_transposed",
                                    detail::packed_right_count<A>(spec.out, spec.in))
                           .data();
    std::int64_t const width = spec.order == WeightOrder::out_in ? spec.in : spec.out;
    panels =
        static_cast<std::size_t>(detail::packed_right_count<A>(spec.max_rows, width)) * sizeof(A);
  }
  shared_.workspace.reserve(thread_bytes<A>() + panels);
}

template <class T>
void TiledLinear<T>::pack(Exec const& exec, View2<T const> weight) {
  bool const is_out_in = spec_.order == WeightOrder::out_in;
  Strided<T const> const w = is_out_in ? transposed(weight) : plain(weight);
  pack_panels(
      exec, "motley::kernels::LinearOperator::pack", spec_.in, spec_.out, w, forward_weight_);
  if (!spec_.needs_backward) return;
  pack_panels(exec,
              "motley::kernels::LinearOperator::pack_transposed",
              spec_.out,
              spec_.in,
              Strided<T const>{w.data, w.column_stride, w.row_stride},
              backward_weight_);
}

template <class T>
TiledProduct<Accumulator<T>, T> TiledLinear<T>::forward_product(View2<T const> x) const {
  return {{extent(x, 0), spec_.out, spec_.in},
          plain(x),
          detail::right_panels(static_cast<A const*>(forward_weight_), spec_.in)};
}

template <class T>
void TiledLinear<T>::forward(Exec const& exec,
                             View2<T const> x,
                             Epilogue<T> const& epilogue,
                             View2<T> y) {
  TiledProduct<A, T> product = forward_product(x);
  if constexpr (std::is_same_v<T, A>) {
    // With a residual, which may be y itself, the sums must not go to y before they are complete.
    if (epilogue.residual.data() == nullptr) {
      product.c = y.data();
      product.c_stride = stride(y);
    }
  }
  run(exec, "motley::kernels::LinearOperator::forward", product, shared_, Finish<T>{epilogue, y});
}

template <class T>
void TiledLinear<T>::forward_wide(Exec const& exec, View2<T const> x, View2<A> y) {
  TiledProduct<A, T> product = forward_product(x);
  product.c = y.data();
  product.c_stride = stride(y);
  run(exec, "motley::kernels::LinearOperator::forward", product, shared_, NothingToFinish{});
}

template <class T>
void TiledLinear<T>::backward_input(Exec const& exec,
                                    View2<T const> dy,
                                    View2<T> dx,
                                    Accumulate accumulate) {
  TiledProduct<A, T> product{
      {extent(dy, 0), spec_.in, spec_.out},
      plain(dy),
      detail::right_panels(static_cast<A const*>(backward_weight_), spec_.out)};
  char const* const label = "motley::kernels::LinearOperator::backward_input";
  if constexpr (std::is_same_v<T, A>) {
    product.c = dx.data();
    product.c_stride = stride(dx);
    product.accumulate = accumulate;
    run(exec, label, product, shared_, NothingToFinish{});
  } else {
    run(exec, label, product, shared_, Store<T>{dx, accumulate});
  }
}

template <class T>
void TiledLinear<T>::backward_weight(Exec const& exec,
                                     View2<T const> x,
                                     View2<T const> dy,
                                     View2<A> dweight,
                                     Accumulate accumulate) {
  bool const is_out_in = spec_.order == WeightOrder::out_in;
  View2<T const> const left = is_out_in ? dy : x;
  View2<T const> const right = is_out_in ? x : dy;
  std::int64_t const rows = extent(x, 0);
  std::int64_t const n = extent(right, 1);
  std::size_t const panel_bytes =
      static_cast<std::size_t>(detail::packed_right_count<A>(rows, n)) * sizeof(A);
  auto* const panels = reinterpret_cast<A*>(
      shared_.workspace.take(thread_bytes<A>() + panel_bytes) + thread_bytes<A>());
  pack_panels(exec, "motley::kernels::LinearOperator::pack_right", rows, n, plain(right), panels);
  TiledProduct<A, T> product{{extent(left, 1), n, rows},
                             transposed(left),
                             detail::right_panels(static_cast<A const*>(panels), rows),
                             dweight.data(),
                             stride(dweight),
                             accumulate};
  run(exec,
      "motley::kernels::LinearOperator::backward_weight",
      product,
      shared_,
      NothingToFinish{});
}

template class TiledLinear<float>;
template class TiledLinear<BFloat16>;
template class TiledLinear<double>;

}  // namespace motley::kernels::cpu
