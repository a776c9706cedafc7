#pragma once

#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

/// Shapes: R rows (batch times tokens, or a chunk of them), W padded vocabulary.
namespace motley::kernels {

/// Loss of each row, and its gradient with respect to the logits:
/// loss = log Σⱼ exp(xⱼ) - x_target over the `vocab` first columns,
/// gradient = gradient_scale (softmax(x) - onehot(target)).
///
/// A row whose target is -1 has loss 0 and gradient 0. The padded columns, from `vocab` on, are not
/// read and get gradient 0. With a gradient_scale of 0 no gradient is wanted: the logits stay as
/// they are and `dlogits` may be empty.
///
/// Shapes   logits [R, W], targets [R]  ->  losses [R], dlogits [R, W]
/// Types    logits, losses and sums in Accumulator<T>; dlogits of T
/// Layout   dlogits may be the same view as logits where T is Accumulator<T>; else the logits are
///          overwritten with intermediate values
/// Runs on  `exec`, asynchronous
/// Cost     one exponential per logit; three sweeps over a row, which sits in cache after the
///          first; no allocation
/// Throws   Error{bug} if extents disagree; with contracts on, also if a target is not in [-1,
///          vocab)
/// Source   Bishop: "Pattern recognition and machine learning", 2006, eq. 4.108 and 4.109
template <class T>
void softmax_cross_entropy(Exec const& exec,
                           View2<Accumulator<T>> logits,
                           std::int64_t vocab,
                           View1<std::int32_t const> targets,
                           Accumulator<T> gradient_scale,
                           View1<Accumulator<T>> losses,
                           View2<T> dlogits);

}  // namespace motley::kernels
