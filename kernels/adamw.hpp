#pragma once

#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

namespace motley::kernels {

/// Numbers of one optimizer step; beta, eps and the order of operations as in PyTorch's AdamW.
struct AdamWStep {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;    ///< decoupled; 0 for tensors that do not decay
  std::int64_t step = 1;      ///< of this update, from 1: corrects the bias of the moments
  double gradient_scale = 1;  ///< multiplies the gradient first (clipping)
};

/// One update of every element, in one pass:
/// g = gradient_scale gradient; m = β₁ m + (1-β₁) g; v = β₂ v + (1-β₂) g²;
/// p = (1 - lr λ) p - lr m̂ / (√v̂ + eps), with m̂ = m / (1-β₁ᵗ) and v̂ = v / (1-β₂ᵗ).
///
/// Shapes   gradient, master, m, v, param [n]
/// Types    gradient, master, m, v in Accumulator<T>; param of T, the rounded master. Where T is
///          Accumulator<T>, param is the master view itself
/// Runs on  `exec`, asynchronous
/// Cost     28 bytes per element in fp32, 30 with bf16 parameters; no allocation
/// Throws   Error{bug} if extents disagree or step < 1
/// Source   Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019, algorithm 2
///          (schedule multiplier folded into lr; decay lr λ as in PyTorch)
template <class T>
void adamw_step(Exec const& exec,
                AdamWStep const& step,
                View1<Accumulator<T> const> gradient,
                View1<Accumulator<T>> master,
                View1<Accumulator<T>> m,
                View1<Accumulator<T>> v,
                View1<T> param);

}  // namespace motley::kernels
