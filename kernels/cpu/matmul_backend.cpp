#include "kernels/detail/matmul_backend.hpp"

#include <cmath>
#include <utility>

namespace motley::kernels::detail {
namespace {

/// Strided matrix operand.
template <class T>
struct Operand {
  T* data;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

template <class View>
auto plain(View const& view) {
  using T = typename View::value_type;
  return Operand<T>{view.data(), static_cast<std::int64_t>(view.stride(0)), 1};
}
template <class View>
auto transposed(View const& view) {
  using T = typename View::value_type;
  return Operand<T>{view.data(), 1, static_cast<std::int64_t>(view.stride(0))};
}

struct ProductShape {
  std::int64_t m, n, k;
};

/// store(i, j, sum) for every element of a b.
template <class T, class Store>
void multiply(Exec const& exec,
              ProductShape shape,
              Operand<T const> a,
              Operand<T const> b,
              Store const& store) {
  Kokkos::parallel_for(
      "motley::kernels::LinearOperator::product",
      Kokkos::RangePolicy<Exec>(exec, 0, shape.m),
      [=](std::int64_t i) {
        for (std::int64_t j = 0; j < shape.n; ++j) {
          Accumulator<T> sum = 0;
          for (std::int64_t l = 0; l < shape.k; ++l) {
            sum += static_cast<Accumulator<T>>(a.data[i * a.row_stride + l * a.column_stride]) *
                   static_cast<Accumulator<T>>(b.data[l * b.row_stride + j * b.column_stride]);
          }
          store(i, j, sum);
        }
      });
}

template <class T>
class PortableLinear final : public LinearBackend<T> {
 public:
  using A = Accumulator<T>;

  explicit PortableLinear(LinearSpec spec) : spec_{std::move(spec)} {}

  void pack(Exec const& /*exec*/, View2<T const> weight) override { weight_ = weight; }

  void forward(Exec const& exec,
               View2<T const> x,
               Epilogue<T> const& epilogue,
               View2<T> y) override {
    multiply<T>(exec,
                {rows(x), spec_.out, spec_.in},
                plain(x),
                weight_k_by_n(),
                [=](std::int64_t i, std::int64_t j, A sum) {
                  if (epilogue.bias.data() != nullptr) sum += static_cast<A>(epilogue.bias(j));
                  if (epilogue.before_gelu.data() != nullptr) {
                    epilogue.before_gelu(i, j) = static_cast<T>(sum);
                  }
                  if (epilogue.gelu) {
                    A const inner = A(0.7978845608028654) * (sum + A(0.044715) * sum * sum * sum);
                    sum = A(0.5) * sum * (1 + std::tanh(inner));
                  }
                  if (epilogue.residual.data() != nullptr) {
                    sum += static_cast<A>(epilogue.residual(i, j));
                  }
                  y(i, j) = static_cast<T>(sum);
                });
  }

  void forward_wide(Exec const& exec, View2<T const> x, View2<A> y) override {
    multiply<T>(exec,
                {rows(x), spec_.out, spec_.in},
                plain(x),
                weight_k_by_n(),
                [=](std::int64_t i, std::int64_t j, A sum) { y(i, j) = sum; });
  }

  void backward_input(Exec const& exec,
                      View2<T const> dy,
                      View2<T> dx,
                      Accumulate accumulate) override {
    Operand<T const> const w = weight_k_by_n();
    multiply<T>(exec,
                {rows(dy), spec_.in, spec_.out},
                plain(dy),
                {w.data, w.column_stride, w.row_stride},
                [=](std::int64_t i, std::int64_t j, A sum) {
                  if (accumulate == Accumulate::yes) sum += static_cast<A>(dx(i, j));
                  dx(i, j) = static_cast<T>(sum);
                });
  }

  void backward_weight(Exec const& exec,
                       View2<T const> x,
                       View2<T const> dy,
                       View2<A> dweight,
                       Accumulate accumulate) override {
    bool const is_out_in = spec_.order == WeightOrder::out_in;
    View2<T const> const left = is_out_in ? dy : x;
    View2<T const> const right = is_out_in ? x : dy;
    multiply<T>(exec,
                {rows(dweight), static_cast<std::int64_t>(dweight.extent(1)), rows(x)},
                transposed(left),
                plain(right),
                [=](std::int64_t i, std::int64_t j, A sum) {
                  if (accumulate == Accumulate::yes) sum += dweight(i, j);
                  dweight(i, j) = sum;
                });
  }

 private:
  template <class View>
  static std::int64_t rows(View const& view) {
    return static_cast<std::int64_t>(view.extent(0));
  }
  Operand<T const> weight_k_by_n() const {
    return spec_.order == WeightOrder::out_in ? transposed(weight_) : plain(weight_);
  }

  LinearSpec spec_;
  View2<T const> weight_;
};

class CpuMatmulBackend final : public MatmulBackend {
 public:
  void allocate_workspace(Arena& /*arena*/) override {}
  [[nodiscard]] std::string description() const override { return "portable"; }
  std::unique_ptr<LinearBackend<float>> make_fp32(Arena& /*arena*/,
                                                  LinearSpec const& spec) override {
    return std::make_unique<PortableLinear<float>>(spec);
  }
  std::unique_ptr<LinearBackend<BFloat16>> make_bf16(Arena& /*arena*/,
                                                     LinearSpec const& spec) override {
    return std::make_unique<PortableLinear<BFloat16>>(spec);
  }
  std::unique_ptr<LinearBackend<double>> make_fp64(Arena& /*arena*/,
                                                   LinearSpec const& spec) override {
    return std::make_unique<PortableLinear<double>>(spec);
  }
};

}  // namespace

std::unique_ptr<MatmulBackend> make_matmul_backend(MatmulConfig /*config*/) {
  return std::make_unique<CpuMatmulBackend>();
}

}  // namespace motley::kernels::detail
