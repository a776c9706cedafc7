#pragma once

#include <memory>
#include <string>

#include "kernels/base/arena.hpp"
#include "kernels/linear.hpp"

namespace motley::kernels::detail {

/// The products of one operator on one kind of device. Shapes were checked by LinearOperator.
template <class T>
class LinearBackend {
 public:
  using A = Accumulator<T>;

  LinearBackend() = default;
  LinearBackend(LinearBackend const&) = delete;
  LinearBackend& operator=(LinearBackend const&) = delete;
  LinearBackend(LinearBackend&&) = delete;
  LinearBackend& operator=(LinearBackend&&) = delete;
  virtual ~LinearBackend() = default;

  virtual void pack(Exec const& exec, View2<T const> weight) = 0;
  virtual void forward(Exec const& exec,
                       View2<T const> x,
                       Epilogue<T> const& epilogue,
                       View2<T> y) = 0;
  virtual void forward_wide(Exec const& exec, View2<T const> x, View2<A> y) = 0;
  virtual void backward_input(Exec const& exec,
                              View2<T const> dy,
                              View2<T> dx,
                              Accumulate accumulate) = 0;
  virtual void backward_weight(Exec const& exec,
                               View2<T const> x,
                               View2<T const> dy,
                               View2<A> dweight,
                               Accumulate accumulate) = 0;
};

/// The products of one device: makes operators and owns what they share.
class MatmulBackend {
 public:
  MatmulBackend() = default;
  MatmulBackend(MatmulBackend const&) = delete;
  MatmulBackend& operator=(MatmulBackend const&) = delete;
  MatmulBackend(MatmulBackend&&) = delete;
  MatmulBackend& operator=(MatmulBackend&&) = delete;
  virtual ~MatmulBackend() = default;

  virtual void allocate_workspace(Arena& arena) = 0;
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual std::unique_ptr<LinearBackend<float>> make_fp32(Arena& arena,
                                                                        LinearSpec const& spec) = 0;
  [[nodiscard]] virtual std::unique_ptr<LinearBackend<BFloat16>> make_bf16(
      Arena& arena, LinearSpec const& spec) = 0;
  [[nodiscard]] virtual std::unique_ptr<LinearBackend<double>> make_fp64(
      Arena& arena, LinearSpec const& spec) = 0;
};

/// The backend of the device this build is for. Throws Error{device} where there is none.
[[nodiscard]] std::unique_ptr<MatmulBackend> make_matmul_backend(MatmulConfig config);

}  // namespace motley::kernels::detail
