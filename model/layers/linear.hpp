#pragma once

#include <string>

#include "model/layers/parameter.hpp"
#include "model/layers/pass.hpp"

// Shapes: R rows (batch times tokens), K width going in, C width going out, D model width.

namespace motley::model {

/// y = x W + b whose outputs are cut among the ranks of the stage: each has its columns of y, and
/// the gradient of x is summed over the group. W is stored [C, K].
template <class T>
class ColumnLinear final {
 public:
  ColumnLinear(LayerContext const& context,
               std::string const& label,
               MatrixParameter<T> weight,
               VectorParameter<T> bias);

  /// Call after each change of the weight.
  void pack(Exec const& exec);

  /// x [R, K] -> y [R, C].
  void forward(Exec const& exec, View2<T const> x, View2<T> y);
  /// y = gelu(before_gelu), before_gelu = x W + b.
  void forward_gelu(Exec const& exec, View2<T const> x, View2<T> before_gelu, View2<T> y);
  /// dy [R, C] -> dx [R, K].
  ///
  /// Comm     collective over the group
  void backward_input(Exec const& exec, View2<T const> dy, View2<T> dx);
  /// Adds to (or starts, as `pass` says) the gradients of W and b.
  void backward_weight(Pass const& pass, View2<T const> x, View2<T const> dy);

 private:
  comm::Group group_;
  MatrixParameter<T> weight_;
  VectorParameter<T> bias_;
  kernels::LinearOperator<T> product_;
};

/// The end of a residual branch: y = residual + dropout(x W + b), with the inputs cut among the
/// ranks of the stage and the products summed over the group. W is stored [K, D].
template <class T>
class ResidualOutput final {
 public:
  ResidualOutput(LayerContext const& context,
                 std::string const& label,
                 MatrixParameter<T> weight,
                 VectorParameter<T> bias,
                 std::uint64_t dropout_site);

  void pack(Exec const& exec);

  /// x [R, K], residual [R, D] -> y [R, D], which must not be the residual.
  ///
  /// Comm     collective over the group
  void forward(Pass const& pass, View2<T const> x, View2<T const> residual, View2<T> y);

  /// dy [R, D] -> dx [R, K]. With dropout, `d_branch` gets the gradient behind it, which
  /// `backward_weight` needs; without, it may be empty.
  void backward_input(Pass const& pass, View2<T const> dy, View2<T> d_branch, View2<T> dx);

  /// Adds to (or starts) the gradients of W and b; x, dy and d_branch as in the passes before.
  void backward_weight(Pass const& pass,
                       View2<T const> x,
                       View2<T const> dy,
                       View2<T const> d_branch);

 private:
  comm::Group group_;
  MatrixParameter<T> weight_;
  VectorParameter<T> bias_;
  std::uint64_t dropout_site_;
  kernels::LinearOperator<T> product_;
};

}  // namespace motley::model
