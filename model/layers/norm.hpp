#pragma once

#include <cstdint>

#include "kernels/base/arena.hpp"
#include "kernels/base/view.hpp"
#include "model/layers/parameter.hpp"
#include "model/spec/model_spec.hpp"

// Shapes: R rows (batch times tokens), D model width.

namespace motley::model {

/// What a norm keeps of each row for its backward.
template <class T>
struct NormSaved {
  View1<Accumulator<T>> mean;  ///< [R], LayerNorm only
  View1<Accumulator<T>> rstd;  ///< [R]
};

/// Gradients that flow into the backward of a norm.
template <class T>
struct NormGradients {
  View2<T const> dy;          ///< [R, D]
  View2<T const> d_residual;  ///< [R, D] or empty: gradient that goes around the norm
};

/// The family's norm: LayerNorm or RMSNorm. Its backward has only an input part, which also adds to
/// the gradients of its few parameters.
template <class T>
class Norm final {
 public:
  using A = Accumulator<T>;

  Norm(ModelSpec const& spec, VectorParameter<T> weight, VectorParameter<T> bias);

  [[nodiscard]] NormSaved<T> make_saved(Arena& arena, std::int64_t rows) const;

  /// x [R, D] -> y [R, D] and `saved`.
  void forward(Exec const& exec, View2<T const> x, View2<T> y, NormSaved<T> const& saved) const;

  /// dx [R, D] = gradient through the norm + d_residual; dx may be d_residual or dy.
  void backward(Exec const& exec,
                View2<T const> x,
                NormSaved<T> const& saved,
                NormGradients<T> const& gradients,
                View2<T> dx,
                View1<A> workspace) const;

 private:
  Family family_;
  A eps_;
  VectorParameter<T> weight_;
  VectorParameter<T> bias_;
};

}  // namespace motley::model
