// The kernels that work on every element alike: activations, AdamW, casts and dropout, and sums of
// flat arrays. In one file because a CUDA compiler takes half a minute for each.
#include <cmath>

#include "kernels/activation.hpp"
#include "kernels/adamw.hpp"
#include "kernels/base/philox.hpp"
#include "kernels/cast.hpp"
#include "kernels/detail/column_sum.hpp"
#include "kernels/detail/gelu.hpp"
#include "kernels/detail/loops.hpp"
#include "kernels/detail/math.hpp"
#include "kernels/dropout.hpp"
#include "kernels/reduce.hpp"

namespace motley::kernels {
namespace {

using detail::Lanes;

/// Number of elements of a matrix without gaps, which can be taken as a flat array.
template <class View>
std::int64_t flat_count(View const& view) {
  MOTLEY_EXPECT(view.span_is_contiguous());
  return static_cast<std::int64_t>(view.size());
}

}  // namespace

template <class T>
void gelu_forward(Exec const& exec, View2<T const> x, View2<T> y) {
  using A = Accumulator<T>;
  Shape const shape = shape_of(x);
  expect_shape(y, shape);
  auto const width = static_cast<int>(shape[1]);
  detail::for_each_row(
      exec,
      "motley::kernels::Gelu::forward",
      shape[0],
      width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t r) {
        T const* const in = &x(r, 0);
        T* const out = &y(r, 0);
        lanes.for_each(
            width, [&](int j) { out[j] = static_cast<T>(detail::gelu(static_cast<A>(in[j]))); });
      });
}

template <class T>
void gelu_backward(Exec const& exec, View2<T const> x, View2<T const> dy, View2<T> dx) {
  using A = Accumulator<T>;
  Shape const shape = shape_of(x);
  expect_shape(dy, shape);
  expect_shape(dx, shape);
  auto const width = static_cast<int>(shape[1]);
  detail::for_each_row(
      exec,
      "motley::kernels::Gelu::backward",
      shape[0],
      width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t r) {
        T const* const in = &x(r, 0);
        T const* const gradient = &dy(r, 0);
        T* const out = &dx(r, 0);
        lanes.for_each(width, [&](int j) {
          out[j] = static_cast<T>(static_cast<A>(gradient[j]) *
                                  detail::gelu_derivative(static_cast<A>(in[j])));
        });
      });
}

template <class T>
void swiglu_forward(Exec const& exec, View2<T const> gate_up, View2<T> y) {
  using A = Accumulator<T>;
  Shape const shape = shape_of(y);
  expect_shape(gate_up, {shape[0], 2 * shape[1]});
  auto const width = static_cast<int>(shape[1]);
  detail::for_each_row(
      exec,
      "motley::kernels::Swiglu::forward",
      shape[0],
      width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t r) {
        T const* const gate = &gate_up(r, 0);
        T const* const up = gate + width;
        T* const out = &y(r, 0);
        lanes.for_each(width, [&](int j) {
          auto const g = static_cast<A>(gate[j]);
          out[j] = static_cast<T>(g * detail::sigmoid(g) * static_cast<A>(up[j]));
        });
      });
}

template <class T>
void swiglu_backward(Exec const& exec,
                     View2<T const> gate_up,
                     View2<T const> dy,
                     View2<T> d_gate_up) {
  using A = Accumulator<T>;
  Shape const shape = shape_of(dy);
  expect_shape(gate_up, {shape[0], 2 * shape[1]});
  expect_shape(d_gate_up, {shape[0], 2 * shape[1]});
  auto const width = static_cast<int>(shape[1]);
  detail::for_each_row(
      exec,
      "motley::kernels::Swiglu::backward",
      shape[0],
      width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t r) {
        T const* const gate = &gate_up(r, 0);
        T const* const gradient = &dy(r, 0);
        T* const d_gate = &d_gate_up(r, 0);
        lanes.for_each(width, [&](int j) {
          auto const g = static_cast<A>(gate[j]);
          auto const u = static_cast<A>(gate[j + width]);
          auto const d = static_cast<A>(gradient[j]);
          auto const [value, slope] = detail::sigmoid_with_slope(g);
          d_gate[j] = static_cast<T>(d * u * (value + g * slope));
          d_gate[j + width] = static_cast<T>(d * g * value);
        });
      });
}

template <class T>
void adamw_step(Exec const& exec,
                AdamWStep const& step,
                View1<Accumulator<T> const> gradient,
                View1<Accumulator<T>> master,
                View1<Accumulator<T>> m,
                View1<Accumulator<T>> v,
                View1<T> param) {
  using A = Accumulator<T>;
  Shape const shape = shape_of(gradient);
  expect_shape(master, shape);
  expect_shape(m, shape);
  expect_shape(v, shape);
  expect_shape(param, shape);
  MOTLEY_VALIDATE(bug,
                  step.step >= 1,
                  "AdamW was asked for step " << step.step
                                              << " (its bias correction needs steps from 1 on); "
                                                 "this is a bug of motley, please report it");
  constexpr bool has_master = !std::is_same_v<T, A>;
  if constexpr (!has_master) MOTLEY_EXPECT(param.data() == master.data());
  // Computed in double, as PyTorch's scalars are.
  auto const t = static_cast<double>(step.step);
  auto const keep = static_cast<A>(1 - step.lr * step.weight_decay);
  auto const rate = static_cast<A>(step.lr / (1 - std::pow(step.beta1, t)));
  auto const to_v_hat = static_cast<A>(1 / std::sqrt(1 - std::pow(step.beta2, t)));
  auto const beta1 = static_cast<A>(step.beta1);
  auto const beta2 = static_cast<A>(step.beta2);
  auto const rest1 = static_cast<A>(1 - step.beta1);
  auto const rest2 = static_cast<A>(1 - step.beta2);
  auto const eps = static_cast<A>(step.eps);
  auto const factor = static_cast<A>(step.gradient_scale);
  A const* const gradients = gradient.data();
  A* const masters = master.data();
  A* const ms = m.data();
  A* const vs = v.data();
  T* const params = param.data();
  detail::for_each_element(
      exec, "motley::kernels::AdamW::step", shape[0], KOKKOS_LAMBDA(std::int64_t i) {
        A const g = factor * gradients[i];
        A const new_m = beta1 * ms[i] + rest1 * g;
        A const new_v = beta2 * vs[i] + rest2 * g * g;
        ms[i] = new_m;
        vs[i] = new_v;
        A const p = keep * masters[i] - rate * new_m / (Kokkos::sqrt(new_v) * to_v_hat + eps);
        masters[i] = p;
        if (has_master) params[i] = static_cast<T>(p);
      });
}

template <class To, class From>
void cast(Exec const& exec, View1<From const> x, View1<To> y) {
  expect_shape(y, shape_of(x));
  From const* const in = x.data();
  To* const out = y.data();
  detail::for_each_element(
      exec, "motley::kernels::Cast::cast", flat_count(x), KOKKOS_LAMBDA(std::int64_t i) {
        out[i] = static_cast<To>(in[i]);
      });
}

template <class T>
void fill(Exec const& exec, T value, View1<T> x) {
  T* const out = x.data();
  detail::for_each_element(
      exec, "motley::kernels::Cast::fill", flat_count(x), KOKKOS_LAMBDA(std::int64_t i) {
        out[i] = value;
      });
}

template <class T>
void scale(Exec const& exec, Accumulator<T> factor, View1<T> x) {
  using A = Accumulator<T>;
  T* const out = x.data();
  detail::for_each_element(
      exec, "motley::kernels::Cast::scale", flat_count(x), KOKKOS_LAMBDA(std::int64_t i) {
        out[i] = static_cast<T>(factor * static_cast<A>(out[i]));
      });
}

template <class T>
void axpy(Exec const& exec, Accumulator<T> factor, View1<T const> x, View1<T> y) {
  using A = Accumulator<T>;
  expect_shape(y, shape_of(x));
  T const* const in = x.data();
  T* const out = y.data();
  detail::for_each_element(
      exec, "motley::kernels::Cast::axpy", flat_count(x), KOKKOS_LAMBDA(std::int64_t i) {
        out[i] = static_cast<T>(factor * static_cast<A>(in[i]) + static_cast<A>(out[i]));
      });
}

namespace {

/// Element e of the sample's [tokens, D] matrix is kept if word e mod 4 of Philox call e / 4 says
/// so. Rows start at a multiple of 4 where D is one; then a whole call serves four columns.
struct DropoutMask {
  Philox random;
  float rate;

  [[nodiscard]] MOTLEY_FUNCTION bool keeps(std::uint32_t word) const {
    return uniform_from(word) >= rate;
  }
  [[nodiscard]] MOTLEY_FUNCTION bool keeps(std::uint64_t sample, std::uint64_t element) const {
    return keeps(random(sample, element / 4).w[element % 4]);
  }
};

}  // namespace

template <class T>
void dropout(Exec const& exec,
             DropoutKey const& key,
             View1<std::uint64_t const> samples,
             double rate,
             std::int64_t tokens,
             View2<T> x,
             std::int64_t first_token) {
  using A = Accumulator<T>;
  auto const width = static_cast<std::int64_t>(x.extent(1));
  expect_shape(x, {static_cast<std::int64_t>(samples.extent(0)) * tokens, width});
  MOTLEY_VALIDATE(bug,
                  rate >= 0 && rate < 1,
                  "a dropout rate of " << rate
                                       << " was asked for (it must be at least 0 and below 1); "
                                          "this is a bug of motley, please report it");
  if (rate == 0) return;
  DropoutMask const mask{{mix_keys(mix_keys(key.seed, key.layer_site), key.step)},
                         static_cast<float>(rate)};
  auto const factor = static_cast<A>(1 / (1 - rate));
  detail::for_each_row(
      exec,
      "motley::kernels::Dropout::apply",
      shape_of(x)[0],
      4 * width,
      KOKKOS_LAMBDA(Lanes const& lanes, std::int64_t r) {
        T* const row = &x(r, 0);
        std::uint64_t const sample = samples(r / tokens);
        auto const first = static_cast<std::uint64_t>((first_token + r % tokens) * width);
        auto const keep = [&](int j, bool kept) {
          row[j] = static_cast<T>(kept ? static_cast<A>(row[j]) * factor : A{0});
        };
        if (width % 4 == 0) {
          lanes.for_each(static_cast<int>(width / 4), [&](int group) {
            Philox::Words const words =
                mask.random(sample, first / 4 + static_cast<std::uint64_t>(group));
            keep(4 * group, mask.keeps(words.w[0]));
            keep(4 * group + 1, mask.keeps(words.w[1]));
            keep(4 * group + 2, mask.keeps(words.w[2]));
            keep(4 * group + 3, mask.keeps(words.w[3]));
          });
        } else {
          lanes.for_each(static_cast<int>(width), [&](int j) {
            keep(j, mask.keeps(sample, first + static_cast<std::uint64_t>(j)));
          });
        }
      });
}

namespace {

// Elements whose sum is kept apart; at most this many in double stay exact to a few ulp anyway.
constexpr std::int64_t sum_tile = 32768;

std::int64_t sum_tiles(std::int64_t count) { return (count + sum_tile - 1) / sum_tile; }

/// partial[tile] = Σ term(x) over the tile, in double.
template <class A, bool Squared>
struct PartialSum {
  A const* x;
  std::int64_t count;
  double* partial;

  MOTLEY_FUNCTION void operator()(Lanes const& lanes, std::int64_t tile) const {
    std::int64_t const begin = tile * sum_tile;
    std::int64_t const left = count - begin;
    A const* const first = x + begin;
    double const total =
        lanes.template sum<double>(static_cast<int>(left < sum_tile ? left : sum_tile), [&](int j) {
          auto const value = static_cast<double>(first[j]);
          return Squared ? value * value : value;
        });
    lanes.once([&] { partial[tile] = total; });
  }
};

template <class A, bool Squared>
void sum_in_tiles(Exec const& exec,
                  std::string const& label,
                  View1<A const> const& x,
                  View1<double> const& out,
                  View1<double> const& workspace) {
  std::int64_t const count = flat_count(x);
  std::int64_t const tiles = sum_tiles(count);
  expect_shape(out, {1});
  MOTLEY_VALIDATE(bug,
                  static_cast<std::int64_t>(workspace.extent(0)) >= tiles,
                  "the workspace of a sum has " << workspace.extent(0) << " elements where "
                                                << tiles
                                                << " are needed (see reduce_workspace_size); this "
                                                   "is a bug of motley, please report it");
  double* const partial = workspace.data();
  detail::for_each_row(
      exec, label, tiles, sum_tile, PartialSum<A, Squared>{x.data(), count, partial});
  detail::for_each_tile(
      exec, label + "_combine", 1, KOKKOS_LAMBDA(std::int64_t) {
        double total = 0;
        for (std::int64_t tile = 0; tile < tiles; ++tile) total += partial[tile];
        out(0) = total;
      });
}

}  // namespace

std::int64_t reduce_workspace_size(std::int64_t count) { return sum_tiles(count); }

template <class A>
void sum(Exec const& exec, View1<A const> x, View1<double> out, View1<double> workspace) {
  sum_in_tiles<A, false>(exec, "motley::kernels::Reduce::sum", x, out, workspace);
}

template <class A>
void square_sum(Exec const& exec, View1<A const> x, View1<double> out, View1<double> workspace) {
  sum_in_tiles<A, true>(exec, "motley::kernels::Reduce::square_sum", x, out, workspace);
}

namespace {

// Infinity and NaN are the numbers whose exponent bits are all set.
MOTLEY_FUNCTION unsigned non_finite_bit(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7F800000U) == 0x7F800000U ? 1U : 0U;
}
MOTLEY_FUNCTION unsigned non_finite_bit(double x) {
  return (std::bit_cast<std::uint64_t>(x) & 0x7FF0000000000000U) == 0x7FF0000000000000U ? 1U : 0U;
}
MOTLEY_FUNCTION unsigned non_finite_bit(BFloat16 x) {
  return (x.bits() & 0x7F80U) == 0x7F80U ? 1U : 0U;
}

/// Smallest index of a number that is not finite, over tiles that a vector loop scans whole.
template <class T>
struct FirstNonFinite {
  static constexpr std::int64_t scan_tile = detail::is_host ? 4096 : 1;

  T const* x;
  std::int64_t count;

  [[gnu::flatten]] MOTLEY_FUNCTION void operator()(std::int64_t tile, std::int64_t& first) const {
    std::int64_t const begin = tile * scan_tile;
    if (begin > first) return;
    auto const size = static_cast<int>(count - begin < scan_tile ? count - begin : scan_tile);
    T const* const values = x + begin;
    unsigned found = 0;
#pragma omp simd reduction(| : found)
    for (int j = 0; j < size; ++j) found |= non_finite_bit(values[j]);
    if (found == 0) return;
    int j = 0;
    while (non_finite_bit(values[j]) == 0) ++j;
    if (begin + j < first) first = begin + j;
  }
};

}  // namespace

template <class T>
std::int64_t first_non_finite(Exec const& exec, View1<T const> x) {
  std::int64_t const count = flat_count(x);
  std::int64_t first = count;
  std::int64_t const tiles =
      (count + FirstNonFinite<T>::scan_tile - 1) / FirstNonFinite<T>::scan_tile;
  Kokkos::parallel_reduce(
      "motley::kernels::Reduce::first_non_finite",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, tiles),
      FirstNonFinite<T>{x.data(), count},
      Kokkos::Min<std::int64_t>(first));
  return first < count ? first : -1;
}

template <class T>
void column_sum(Exec const& exec, View2<T const> dy, View1<Accumulator<T>> dbias) {
  Shape const shape = shape_of(dy);
  expect_shape(dbias, {shape[1]});
  detail::MatrixRef<T> const matrix{
      dy.data(), shape[0], shape[1], static_cast<std::int64_t>(dy.stride(0))};
  detail::add_column_sums(exec, "motley::kernels::Reduce::column_sum", matrix, dbias.data());
}

#define MOTLEY_INSTANTIATE(T)                                                              \
  template void gelu_forward<T>(Exec const&, View2<T const>, View2<T>);                    \
  template void gelu_backward<T>(Exec const&, View2<T const>, View2<T const>, View2<T>);   \
  template void swiglu_forward<T>(Exec const&, View2<T const>, View2<T>);                  \
  template void swiglu_backward<T>(Exec const&, View2<T const>, View2<T const>, View2<T>); \
  template void adamw_step<T>(Exec const&,                                                 \
                              AdamWStep const&,                                            \
                              View1<Accumulator<T> const>,                                 \
                              View1<Accumulator<T>>,                                       \
                              View1<Accumulator<T>>,                                       \
                              View1<Accumulator<T>>,                                       \
                              View1<T>);                                                   \
  template void cast<T, float>(Exec const&, View1<float const>, View1<T>);                 \
  template void cast<T, BFloat16>(Exec const&, View1<BFloat16 const>, View1<T>);           \
  template void cast<T, double>(Exec const&, View1<double const>, View1<T>);               \
  template void fill<T>(Exec const&, T, View1<T>);                                         \
  template void scale<T>(Exec const&, Accumulator<T>, View1<T>);                           \
  template void axpy<T>(Exec const&, Accumulator<T>, View1<T const>, View1<T>);            \
  template void dropout<T>(Exec const&,                                                    \
                           DropoutKey const&,                                              \
                           View1<std::uint64_t const>,                                     \
                           double,                                                         \
                           std::int64_t,                                                   \
                           View2<T>,                                                       \
                           std::int64_t);                                                  \
  template std::int64_t first_non_finite<T>(Exec const&, View1<T const>);                  \
  template void column_sum<T>(Exec const&, View2<T const>, View1<Accumulator<T>>)

MOTLEY_INSTANTIATE(float);
MOTLEY_INSTANTIATE(BFloat16);
MOTLEY_INSTANTIATE(double);

#undef MOTLEY_INSTANTIATE

template void sum<float>(Exec const&, View1<float const>, View1<double>, View1<double>);
template void sum<double>(Exec const&, View1<double const>, View1<double>, View1<double>);
template void square_sum<float>(Exec const&, View1<float const>, View1<double>, View1<double>);
template void square_sum<double>(Exec const&, View1<double const>, View1<double>, View1<double>);

}  // namespace motley::kernels
