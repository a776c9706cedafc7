#pragma once

#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

/// Shapes: R rows (batch times tokens), D model width.
namespace motley::kernels {

/// What layer_norm_forward leaves for the backward pass, one number per row.
template <class T>
struct LayerNormStatistics {
  View1<Accumulator<T>> mean;
  View1<Accumulator<T>> rstd;  ///< 1 / sqrt(variance + eps)
};

/// Normalizes rows: y = (x - mean) rstd weight + bias, with the biased variance of the row.
///
/// Shapes   x [R, D], weight [D], bias [D]  ->  y [R, D], mean [R], rstd [R]
/// Types    x, weight, bias, y of T; sums and statistics in Accumulator<T>
/// Layout   y may be x
/// Runs on  `exec`, asynchronous
/// Cost     one read and one write of [R, D]; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   Ba, Kiros, Hinton: "Layer normalization", 2016, eq. 4
template <class T>
void layer_norm_forward(Exec const& exec,
                        View2<T const> x,
                        View1<T const> weight,
                        View1<T const> bias,
                        Accumulator<T> eps,
                        View2<T> y,
                        LayerNormStatistics<T> statistics);

/// Inputs of layer_norm_backward.
template <class T>
struct LayerNormBackward {
  View2<T const> dy;      ///< [R, D]
  View2<T const> x;       ///< [R, D], as given to the forward pass
  View1<T const> weight;  ///< [D]
  View1<Accumulator<T> const> mean;
  View1<Accumulator<T> const> rstd;
  View2<T const> d_residual;  ///< [R, D] or empty: gradient that goes around the norm
};

/// Gradients of layer_norm_forward: dx = norm gradient + d_residual; dweight += ; dbias +=.
///
/// Shapes   see LayerNormBackward  ->  dx [R, D], dweight [D], dbias [D]
/// Types    dx of T; dweight, dbias, workspace and sums in Accumulator<T>
/// Layout   dx may be d_residual or dy; workspace has norm_workspace_size(R, D) elements
/// Runs on  `exec`, asynchronous; partial sums per fixed tile of rows, combined in order
/// Cost     three reads and one write of [R, D]; no allocation
/// Throws   Error{bug} if extents disagree or the workspace is too small
/// Source   the derivative of Ba et al. 2016, eq. 4
template <class T>
void layer_norm_backward(Exec const& exec,
                         LayerNormBackward<T> const& in,
                         View2<T> dx,
                         View1<Accumulator<T>> dweight,
                         View1<Accumulator<T>> dbias,
                         View1<Accumulator<T>> workspace);

/// Scales rows by their root mean square: y = x rstd weight, rstd = 1 / sqrt(mean(x²) + eps).
///
/// Shapes   x [R, D], weight [D]  ->  y [R, D], rstd [R]
/// Types    x, weight, y of T; sums and rstd in Accumulator<T>
/// Layout   y may be x
/// Runs on  `exec`, asynchronous
/// Cost     one read and one write of [R, D]; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   Zhang, Sennrich: "Root mean square layer normalization", NeurIPS 2019, eq. 4
template <class T>
void rms_norm_forward(Exec const& exec,
                      View2<T const> x,
                      View1<T const> weight,
                      Accumulator<T> eps,
                      View2<T> y,
                      View1<Accumulator<T>> rstd);

/// Inputs of rms_norm_backward.
template <class T>
struct RmsNormBackward {
  View2<T const> dy;      ///< [R, D]
  View2<T const> x;       ///< [R, D], as given to the forward pass
  View1<T const> weight;  ///< [D]
  View1<Accumulator<T> const> rstd;
  View2<T const> d_residual;  ///< [R, D] or empty: gradient that goes around the norm
};

/// Gradients of rms_norm_forward: dx = norm gradient + d_residual; dweight +=.
///
/// Shapes   see RmsNormBackward  ->  dx [R, D], dweight [D]
/// Types    dx of T; dweight, workspace and sums in Accumulator<T>
/// Layout   dx may be d_residual or dy; workspace has norm_workspace_size(R, D) elements
/// Runs on  `exec`, asynchronous; partial sums per fixed tile of rows, combined in order
/// Cost     three reads and one write of [R, D]; no allocation
/// Throws   Error{bug} if extents disagree or the workspace is too small
/// Source   the derivative of Zhang, Sennrich 2019, eq. 4
template <class T>
void rms_norm_backward(Exec const& exec,
                       RmsNormBackward<T> const& in,
                       View2<T> dx,
                       View1<Accumulator<T>> dweight,
                       View1<Accumulator<T>> workspace);

/// Elements of workspace that the backward passes need.
[[nodiscard]] std::int64_t norm_workspace_size(std::int64_t rows, std::int64_t width);

}  // namespace motley::kernels
