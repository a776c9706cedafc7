#pragma once

#include <cstdint>

#include "kernels/base/view.hpp"
#include "kernels/dropout.hpp"
#include "kernels/linear.hpp"

namespace motley::model {

/// What every layer is told about the micro-batch that runs through it.
struct Pass {
  Exec exec;
  std::int64_t batch = 0;              ///< windows B
  std::int64_t tokens = 0;             ///< of each window, T
  View1<std::uint64_t const> samples;  ///< [B] global sample indices, for dropout
  double dropout = 0.0;                ///< rate; 0 outside training
  std::uint64_t seed = 0;              ///< of dropout
  std::uint64_t step = 0;              ///< of training, for dropout
  /// The first micro-batch of a step overwrites the gradients of weight matrices.
  kernels::Accumulate weight_gradients = kernels::Accumulate::yes;

  [[nodiscard]] std::int64_t rows() const noexcept { return batch * tokens; }
};

/// Drops elements of x [R, D] at a place of the model: in the forward its values, in the backward
/// its gradient, with the same mask. Nothing at rate 0.
template <class T>
void apply_dropout(Pass const& pass, std::uint64_t site, View2<T> const& x) {
  if (pass.dropout == 0.0) return;
  kernels::dropout<T>(
      pass.exec, {pass.seed, site, pass.step}, pass.samples, pass.dropout, pass.tokens, x);
}

/// Places of dropout: the embedding is 0, layer i has 2 i + 1 (attention) and 2 i + 2 (MLP).
[[nodiscard]] constexpr std::uint64_t attention_site(std::int64_t layer) noexcept {
  return 2 * static_cast<std::uint64_t>(layer) + 1;
}
[[nodiscard]] constexpr std::uint64_t mlp_site(std::int64_t layer) noexcept {
  return 2 * static_cast<std::uint64_t>(layer) + 2;
}

}  // namespace motley::model
