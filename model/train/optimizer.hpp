#pragma once

#include <cstdint>

#include "model/train/model_state.hpp"
#include "model/train/optimizer_config.hpp"

namespace motley::model {

/// AdamW over the whole state: matrices decay, vectors do not.
template <class T>
class Optimizer final {
 public:
  using A = Accumulator<T>;

  /// Takes workspace from the arena. The state must outlive this.
  Optimizer(OptimizerConfig const& config, ModelState<T> const& state, Arena& arena);

  /// Global norm of the gradients.
  [[nodiscard]] double gradient_norm(Exec const& exec) const;

  /// Factor that brings gradients of this norm down to clip_grad; 1 if they are below.
  ///
  /// Source   Pascanu, Mikolov, Bengio: "On the difficulty of training recurrent neural networks",
  ///          ICML 2013, algorithm 1
  [[nodiscard]] double clip_factor(double norm) const noexcept;

  /// Update number `update` (from 1) with gradients times `gradient_scale`.
  void update(Exec const& exec, double lr, std::int64_t update, double gradient_scale) const;

 private:
  OptimizerConfig config_;
  ModelState<T> const& state_;
  View1<double> norm_workspace_;
  View1<double> square_sum_;
};

}  // namespace motley::model
