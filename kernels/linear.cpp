#include "kernels/linear.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/detail/matmul_backend.hpp"

namespace motley::kernels {
namespace {

template <class T>
std::unique_ptr<detail::LinearBackend<T>> make_linear_backend(detail::MatmulBackend& backend,
                                                              Arena& arena,
                                                              LinearSpec const& spec) {
  if constexpr (dtype_of<T> == DType::fp32) {
    return backend.make_fp32(arena, spec);
  } else if constexpr (dtype_of<T> == DType::bf16) {
    return backend.make_bf16(arena, spec);
  } else {
    return backend.make_fp64(arena, spec);
  }
}

/// Checks the shape of a view that may be left out.
template <class View>
void expect_shape_or_empty(View const& view, Shape const& expected) {
  if (view.data() != nullptr) expect_shape(view, expected);
}

template <class View>
std::int64_t row_count(View const& view) {
  return static_cast<std::int64_t>(view.extent(0));
}

}  // namespace

MatmulEngine::MatmulEngine(MatmulConfig config)
    : config_{std::move(config)}, backend_{detail::make_matmul_backend(config_)} {}
MatmulEngine::MatmulEngine(MatmulEngine&&) noexcept = default;
MatmulEngine& MatmulEngine::operator=(MatmulEngine&&) noexcept = default;
MatmulEngine::~MatmulEngine() = default;

void MatmulEngine::allocate_workspace(Arena& arena) { backend_->allocate_workspace(arena); }

std::string MatmulEngine::description() const { return backend_->description(); }

template <class T>
LinearOperator<T>::LinearOperator(MatmulEngine& engine, Arena& arena, LinearSpec spec)
    : spec_{std::move(spec)} {
  MOTLEY_VALIDATE(bug,
                  spec_.in > 0 && spec_.out > 0 && spec_.max_rows > 0,
                  "linear operator \"" << spec_.label << "\" has sizes [" << spec_.max_rows << ", "
                                       << spec_.in << "] x [" << spec_.in << ", " << spec_.out
                                       << "] (each must be at least 1); this is a bug of motley, "
                                       << "please report it");
  backend_ = make_linear_backend<T>(engine.backend(), arena, spec_);
}
template <class T>
LinearOperator<T>::LinearOperator(LinearOperator&&) noexcept = default;
template <class T>
LinearOperator<T>& LinearOperator<T>::operator=(LinearOperator&&) noexcept = default;
template <class T>
LinearOperator<T>::~LinearOperator() = default;

template <class T>
Shape LinearOperator<T>::weight_shape() const {
  return spec_.order == WeightOrder::out_in ? Shape{spec_.out, spec_.in}
                                            : Shape{spec_.in, spec_.out};
}

template <class T>
void LinearOperator<T>::expect_rows(std::int64_t rows) const {
  MOTLEY_VALIDATE(bug,
                  rows >= 1 && rows <= spec_.max_rows,
                  "linear operator \"" << spec_.label << "\" was given " << rows
                                       << " rows (it was made for 1 to " << spec_.max_rows
                                       << "); this is a bug of motley, please report it");
}

template <class T>
void LinearOperator<T>::expect_packed() const {
  MOTLEY_VALIDATE(bug,
                  is_packed_,
                  "linear operator \"" << spec_.label << "\" has no weight yet (pack comes first); "
                                       << "this is a bug of motley, please report it");
}

template <class T>
void LinearOperator<T>::expect_backward() const {
  MOTLEY_VALIDATE(bug,
                  spec_.needs_backward,
                  "linear operator \"" << spec_.label << "\" was made for forward products only "
                                       << "(its spec says so); this is a bug of motley, please "
                                       << "report it");
}

template <class T>
void LinearOperator<T>::pack(Exec const& exec, View2<T const> weight) {
  expect_shape(weight, weight_shape());
  backend_->pack(exec, weight);
  is_packed_ = true;
}

template <class T>
void LinearOperator<T>::forward(Exec const& exec,
                                View2<T const> x,
                                Epilogue<T> const& epilogue,
                                View2<T> y) {
  std::int64_t const rows = row_count(x);
  expect_rows(rows);
  expect_packed();
  expect_shape(x, {rows, spec_.in});
  expect_shape(y, {rows, spec_.out});
  expect_shape_or_empty(epilogue.bias, {spec_.out});
  expect_shape_or_empty(epilogue.residual, {rows, spec_.out});
  expect_shape_or_empty(epilogue.before_gelu, {rows, spec_.out});
  backend_->forward(exec, x, epilogue, y);
}

template <class T>
void LinearOperator<T>::forward_wide(Exec const& exec, View2<T const> x, View2<A> y) {
  std::int64_t const rows = row_count(x);
  expect_rows(rows);
  expect_packed();
  expect_shape(x, {rows, spec_.in});
  expect_shape(y, {rows, spec_.out});
  backend_->forward_wide(exec, x, y);
}

template <class T>
void LinearOperator<T>::backward_input(Exec const& exec,
                                       View2<T const> dy,
                                       View2<T> dx,
                                       Accumulate accumulate) {
  std::int64_t const rows = row_count(dy);
  expect_backward();
  expect_rows(rows);
  expect_packed();
  expect_shape(dy, {rows, spec_.out});
  expect_shape(dx, {rows, spec_.in});
  backend_->backward_input(exec, dy, dx, accumulate);
}

template <class T>
void LinearOperator<T>::backward_weight(Exec const& exec,
                                        View2<T const> x,
                                        View2<T const> dy,
                                        View2<A> dweight,
                                        Accumulate accumulate) {
  std::int64_t const rows = row_count(x);
  expect_backward();
  expect_rows(rows);
  expect_shape(x, {rows, spec_.in});
  expect_shape(dy, {rows, spec_.out});
  expect_shape(dweight, weight_shape());
  backend_->backward_weight(exec, x, dy, dweight, accumulate);
}

template class LinearOperator<float>;
template class LinearOperator<BFloat16>;
template class LinearOperator<double>;

namespace {

/// Fills a view with values around 0 that are no round numbers: zeros would run at another clock.
template <class T>
void fill_for_timing(Exec const& exec, View2<T> const& view) {
  Kokkos::parallel_for(
      "motley::kernels::MatmulEngine::fill",
      Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {view.extent(0), view.extent(1)}),
      KOKKOS_LAMBDA(std::size_t row, std::size_t column) {
        view(row, column) =
            static_cast<T>(0.001F * static_cast<float>((row * 31 + column * 7) % 1999) - 1.0F);
      });
}

/// Best rate of y = x W within `peak_time_s`, at a shape that favours every backend.
template <class T>
double measure_peak(Exec const& exec, MatmulConfig const& config) {
  constexpr double peak_time_s = 0.3;
  constexpr std::int64_t rows = 1024;
  constexpr std::int64_t in = 1024;
  constexpr std::int64_t out = 3072;
  using Clock = std::chrono::steady_clock;

  MatmulEngine engine{config};
  auto const build = [&](Arena& arena) {
    LinearOperator<T> product{engine, arena, {"peak", WeightOrder::out_in, in, out, rows, false}};
    engine.allocate_workspace(arena);
    return product;
  };
  Arena sizes = Arena::counting();
  static_cast<void>(build(sizes));
  auto const tensors = static_cast<std::size_t>(rows * in + in * out + rows * out) * sizeof(T);
  Arena arena{sizes.used_bytes() + tensors + 3 * Arena::alignment_bytes};
  LinearOperator<T> product = build(arena);
  View2<T> const x = arena.make<T>("peak.x", rows, in);
  View2<T> const weight = arena.make<T>("peak.weight", out, in);
  View2<T> const y = arena.make<T>("peak.y", rows, out);
  fill_for_timing(exec, x);
  fill_for_timing(exec, weight);
  product.pack(exec, weight);

  double best_s = 1e30;
  for (auto const begin = Clock::now();
       std::chrono::duration<double>(Clock::now() - begin).count() < peak_time_s;) {
    auto const start = Clock::now();
    product.forward(exec, x, {}, y);
    exec.fence("motley::kernels::MatmulEngine::measured_peak");
    best_s = std::min(best_s, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return 2.0 * static_cast<double>(rows * in * out) / best_s;
}

}  // namespace

double MatmulEngine::measured_peak_flop_per_s(Exec const& exec, DType dtype) const {
  MOTLEY_VALIDATE(bug,
                  dtype != DType::fp16,
                  "there are no fp16 products (fp16 is not built yet); use fp32, bf16 or fp64");
  switch (dtype) {
    case DType::bf16:
      return measure_peak<BFloat16>(exec, config_);
    case DType::fp64:
      return measure_peak<double>(exec, config_);
    default:
      return measure_peak<float>(exec, config_);
  }
}

}  // namespace motley::kernels
