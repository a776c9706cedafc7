#include "kernels/norm.hpp"

#include <algorithm>
#include <string>

#include "kernels/detail/column_sum.hpp"
#include "kernels/detail/loops.hpp"

namespace motley::kernels {
namespace {

using detail::Lanes;
using detail::SumPair;

// Tiles of rows whose weight gradients are summed apart: at least 16 rows, so that few partial sums
// are written; enough tiles for the cores of a CPU or the multiprocessors of a GPU.
constexpr std::int64_t max_tiles = detail::is_host ? 128 : 512;
constexpr std::int64_t min_tile_rows = 16;

std::int64_t rows_per_tile(std::int64_t rows) {
  return std::max(min_tile_rows, (rows + max_tiles - 1) / max_tiles);
}

std::int64_t tile_count(std::int64_t rows) {
  std::int64_t const each = rows_per_tile(rows);
  return (rows + each - 1) / each;
}

template <class View>
bool is_given(View const& view) {
  return view.data() != nullptr && view.size() > 0;
}

/// One row of a layer norm's backward pass, with the operands as pointers to its first column.
template <class T>
struct NormRow {
  using A = Accumulator<T>;
  T const* dy;
  T const* x;
  T const* d_residual;  // or null
  T* dx;
  A mean;  // 0 for RMSNorm
  A rstd;

  [[nodiscard]] MOTLEY_FUNCTION A normalized(int j) const {
    return (static_cast<A>(x[j]) - mean) * rstd;
  }
};

/// Shared by both norms: with xhat the normalized row and g = weight · dy,
/// dx = rstd (g - mean(g) [LayerNorm only] - xhat · mean(g · xhat)) + d_residual,
/// and per tile of rows the partial sums dweight = Σ dy · xhat and dbias = Σ dy.
template <class T, bool HasMean>
struct NormBackward {
  using A = Accumulator<T>;
  View2<T const> dy;
  View2<T const> x;
  View1<T const> weight;
  View1<A const> mean;
  View1<A const> rstd;
  View2<T const> d_residual;
  View2<T> dx;
  A* partial;  // [tiles, 2, D], or [tiles, D] without bias
  std::int64_t tile_rows;
  bool has_residual;

  static constexpr int partials = HasMean ? 2 : 1;

  MOTLEY_FUNCTION void operator()(Lanes const& lanes, std::int64_t tile) const {
    auto const width = static_cast<int>(x.extent(1));
    auto const rows = static_cast<std::int64_t>(x.extent(0));
    A* const dweight = partial + tile * partials * width;
    lanes.for_each(partials * width, [&](int j) { dweight[j] = 0; });
    std::int64_t const begin = tile * tile_rows;
    std::int64_t const end = rows - begin < tile_rows ? rows : begin + tile_rows;
    for (std::int64_t r = begin; r < end; ++r) {
      A row_mean = 0;
      if constexpr (HasMean) row_mean = mean(r);
      NormRow<T> const row{&dy(r, 0),
                           &x(r, 0),
                           has_residual ? &d_residual(r, 0) : nullptr,
                           &dx(r, 0),
                           row_mean,
                           rstd(r)};
      add_weight_gradients(lanes, row, dweight, width);
      write_input_gradient(lanes, row, width);
    }
  }

 private:
  MOTLEY_FUNCTION void add_weight_gradients(Lanes const& lanes,
                                            NormRow<T> const& row,
                                            A* dweight,
                                            int width) const {
    A* const dbias = dweight + width;
    lanes.for_each(width, [&](int j) {
      auto const gradient = static_cast<A>(row.dy[j]);
      dweight[j] += gradient * row.normalized(j);
      if (HasMean) dbias[j] += gradient;
    });
  }

  MOTLEY_FUNCTION void write_input_gradient(Lanes const& lanes,
                                            NormRow<T> const& row,
                                            int width) const {
    T const* const w = weight.data();
    SumPair<A> const sums = lanes.template sum_pair<A>(width, [&](int j) {
      A const g = static_cast<A>(w[j]) * static_cast<A>(row.dy[j]);
      return SumPair<A>{g, g * row.normalized(j)};
    });
    A const mean_g = HasMean ? sums.first / static_cast<A>(width) : A{0};
    A const mean_gx = sums.second / static_cast<A>(width);
    auto const gradient = [&](int j) {
      A const g = static_cast<A>(w[j]) * static_cast<A>(row.dy[j]);
      return row.rstd * (g - mean_g - row.normalized(j) * mean_gx);
    };
    if (row.d_residual == nullptr) {
      lanes.for_each(width, [&](int j) { row.dx[j] = static_cast<T>(gradient(j)); });
    } else {
      lanes.for_each(width, [&](int j) {
        row.dx[j] = static_cast<T>(gradient(j) + static_cast<A>(row.d_residual[j]));
      });
    }
  }
};

template <class T, class Input>
void check_backward(Input const& in,
                    View2<T> const& dx,
                    View1<Accumulator<T>> const& dweight,
                    View1<Accumulator<T>> const& workspace) {
  Shape const shape = shape_of(in.x);
  expect_shape(in.dy, shape);
  expect_shape(dx, shape);
  expect_shape(in.weight, {shape[1]});
  expect_shape(in.rstd, {shape[0]});
  expect_shape(dweight, {shape[1]});
  if (is_given(in.d_residual)) expect_shape(in.d_residual, shape);
  std::int64_t const needed = norm_workspace_size(shape[0], shape[1]);
  MOTLEY_VALIDATE(bug,
                  static_cast<std::int64_t>(workspace.extent(0)) >= needed,
                  "the workspace of a norm has " << workspace.extent(0) << " elements where "
                                                 << needed
                                                 << " are needed (see norm_workspace_size); this "
                                                    "is a bug of motley, please report it");
}

}  // namespace

std::int64_t norm_workspace_size(std::int64_t rows, std::int64_t width) {
  return tile_count(rows) * 2 * width;
}

template <class T>
void layer_norm_forward(Exec const& exec,
                        View2<T const> x,
                        View1<T const> weight,
                        View1<T const> bias,
                        Accumulator<T> eps,
                        View2<T> y,
                        LayerNormStatistics<T> statistics) {
  using A = Accumulator<T>;
  Shape const shape = shape_of(x);
  expect_shape(y, shape);
  expect_shape(weight, {shape[1]});
  expect_shape(bias, {shape[1]});
  expect_shape(statistics.mean, {shape[0]});
  expect_shape(statistics.rstd, {shape[0]});
  View1<A> const means = statistics.mean;
  View1<A> const rstds = statistics.rstd;
  auto const width = static_cast<int>(shape[1]);
  detail::for_each_row(
      exec,
      "motley::kernels::LayerNorm::forward",
      shape[0],
      width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t r) {
        T const* const in = &x(r, 0);
        T* const out = &y(r, 0);
        T const* const w = weight.data();
        T const* const b = bias.data();
        A const mean = lanes.template sum<A>(width, [&](int j) { return static_cast<A>(in[j]); }) /
                       static_cast<A>(width);
        // The second sweep reads the row from cache and avoids the cancellation of E[x²] - E[x]².
        A const variance = lanes.template sum<A>(width, [&](int j) {
          A const d = static_cast<A>(in[j]) - mean;
          return d * d;
        }) / static_cast<A>(width);
        A const rstd = A{1} / Kokkos::sqrt(variance + eps);
        lanes.for_each(width, [&](int j) {
          A const normalized = (static_cast<A>(in[j]) - mean) * rstd;
          out[j] = static_cast<T>(normalized * static_cast<A>(w[j]) + static_cast<A>(b[j]));
        });
        lanes.once([&] {
          means(r) = mean;
          rstds(r) = rstd;
        });
      });
}

template <class T>
void layer_norm_backward(Exec const& exec,
                         LayerNormBackward<T> const& in,
                         View2<T> dx,
                         View1<Accumulator<T>> dweight,
                         View1<Accumulator<T>> dbias,
                         View1<Accumulator<T>> workspace) {
  using A = Accumulator<T>;
  check_backward(in, dx, dweight, workspace);
  Shape const shape = shape_of(in.x);
  expect_shape(in.mean, {shape[0]});
  expect_shape(dbias, {shape[1]});
  std::int64_t const each = rows_per_tile(shape[0]);
  std::int64_t const tiles = tile_count(shape[0]);
  detail::for_each_row(exec,
                       "motley::kernels::LayerNorm::backward",
                       tiles,
                       each * shape[1],
                       NormBackward<T, true>{in.dy,
                                             in.x,
                                             in.weight,
                                             in.mean,
                                             in.rstd,
                                             in.d_residual,
                                             dx,
                                             workspace.data(),
                                             each,
                                             is_given(in.d_residual)});
  detail::MatrixRef<A> const partial{workspace.data(), tiles, shape[1], 2 * shape[1]};
  detail::MatrixRef<A> const partial_bias{
      workspace.data() + shape[1], tiles, shape[1], 2 * shape[1]};
  detail::add_column_sums(exec, "motley::kernels::LayerNorm::sum_dweight", partial, dweight.data());
  detail::add_column_sums(
      exec, "motley::kernels::LayerNorm::sum_dbias", partial_bias, dbias.data());
}

template <class T>
void rms_norm_forward(Exec const& exec,
                      View2<T const> x,
                      View1<T const> weight,
                      Accumulator<T> eps,
                      View2<T> y,
                      View1<Accumulator<T>> rstd) {
  using A = Accumulator<T>;
  Shape const shape = shape_of(x);
  expect_shape(y, shape);
  expect_shape(weight, {shape[1]});
  expect_shape(rstd, {shape[0]});
  auto const width = static_cast<int>(shape[1]);
  detail::for_each_row(
      exec,
      "motley::kernels::RmsNorm::forward",
      shape[0],
      width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t r) {
        T const* const in = &x(r, 0);
        T* const out = &y(r, 0);
        T const* const w = weight.data();
        A const mean_square = lanes.template sum<A>(width, [&](int j) {
          auto const value = static_cast<A>(in[j]);
          return value * value;
        }) / static_cast<A>(width);
        A const scale = A{1} / Kokkos::sqrt(mean_square + eps);
        lanes.for_each(width, [&](int j) {
          out[j] = static_cast<T>(static_cast<A>(in[j]) * scale * static_cast<A>(w[j]));
        });
        lanes.once([&] { rstd(r) = scale; });
      });
}

template <class T>
void rms_norm_backward(Exec const& exec,
                       RmsNormBackward<T> const& in,
                       View2<T> dx,
                       View1<Accumulator<T>> dweight,
                       View1<Accumulator<T>> workspace) {
  using A = Accumulator<T>;
  check_backward(in, dx, dweight, workspace);
  Shape const shape = shape_of(in.x);
  std::int64_t const each = rows_per_tile(shape[0]);
  std::int64_t const tiles = tile_count(shape[0]);
  detail::for_each_row(exec,
                       "motley::kernels::RmsNorm::backward",
                       tiles,
                       each * shape[1],
                       NormBackward<T, false>{in.dy,
                                              in.x,
                                              in.weight,
                                              {},
                                              in.rstd,
                                              in.d_residual,
                                              dx,
                                              workspace.data(),
                                              each,
                                              is_given(in.d_residual)});
  detail::MatrixRef<A> const partial{workspace.data(), tiles, shape[1], shape[1]};
  detail::add_column_sums(exec, "motley::kernels::RmsNorm::sum_dweight", partial, dweight.data());
}

#define MOTLEY_INSTANTIATE(T)                                       \
  template void layer_norm_forward<T>(Exec const&,                  \
                                      View2<T const>,               \
                                      View1<T const>,               \
                                      View1<T const>,               \
                                      Accumulator<T>,               \
                                      View2<T>,                     \
                                      LayerNormStatistics<T>);      \
  template void layer_norm_backward<T>(Exec const&,                 \
                                       LayerNormBackward<T> const&, \
                                       View2<T>,                    \
                                       View1<Accumulator<T>>,       \
                                       View1<Accumulator<T>>,       \
                                       View1<Accumulator<T>>);      \
  template void rms_norm_forward<T>(Exec const&,                    \
                                    View2<T const>,                 \
                                    View1<T const>,                 \
                                    Accumulator<T>,                 \
                                    View2<T>,                       \
                                    View1<Accumulator<T>>);         \
  template void rms_norm_backward<T>(Exec const&,                   \
                                     RmsNormBackward<T> const&,     \
                                     View2<T>,                      \
                                     View1<Accumulator<T>>,         \
                                     View1<Accumulator<T>>)

MOTLEY_INSTANTIATE(float);
MOTLEY_INSTANTIATE(BFloat16);
MOTLEY_INSTANTIATE(double);

#undef MOTLEY_INSTANTIATE

}  // namespace motley::kernels
