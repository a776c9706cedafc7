#pragma once

#include <cstdint>

#include "kernels/base/view.hpp"

/// Shapes: B samples, D columns.
namespace motley::kernels {

/// Names a use of dropout: every (seed, place in the model, optimizer step) has its own masks.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t layer_site = 0;
  std::uint64_t step = 0;
};

/// Sets each element of x to 0 with probability `rate` and divides the others by 1 - rate.
///
/// The mask is a function of (key, sample, token, column) alone, so it is the same under any plan,
/// and the backward pass is the same call on the gradient: nothing is saved.
///
/// Shapes   samples [B] (global sample indices), x [B · tokens, D], in place; where a rank has a
///          part of each window, its rows are those from `first_token` on
/// Types    the first 24 bits of a 32-bit word decide: rates are rounded to 2⁻²⁴
/// Runs on  `exec`, asynchronous
/// Cost     one read and one write of x and a quarter of a Philox call per element; none for rate 0
/// Throws   Error{bug} if extents disagree or rate is not in [0, 1)
/// Source   Srivastava et al.: "Dropout", JMLR 2014, section 4, scaled in training instead of
///          testing; masks from kernels/base/philox.hpp, key mix(mix(seed, site), step), counter
///          (sample, (token · D + column) / 4)
template <class T>
void dropout(Exec const& exec,
             DropoutKey const& key,
             View1<std::uint64_t const> samples,
             double rate,
             std::int64_t tokens,
             View2<T> x,
             std::int64_t first_token = 0);

}  // namespace motley::kernels
