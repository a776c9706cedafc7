#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/spec/problem.hpp"

namespace motley::model {

/// Course of the learning rate after the warm-up.
enum class LrDecayStyle {
  cosine,    ///< half a cosine from lr to min_lr
  linear,    ///< straight from lr to min_lr
  constant,  ///< lr
  wsd,       ///< lr, then straight to min_lr in the last lr_decay_share of the run
};

[[nodiscard]] std::string_view to_string(LrDecayStyle style) noexcept;
[[nodiscard]] std::optional<LrDecayStyle> parse_lr_decay_style(std::string_view name) noexcept;

/// Section `[optimizer]`: AdamW, its learning rate and clipping.
///
/// Source   Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019, algorithm 2
struct OptimizerConfig {
  double beta1 = 0.9;                ///< decay of the mean, in [0, 1) (key: betas, first)
  double beta2 = 0.95;               ///< decay of the mean square, in [0, 1) (key: betas, second)
  double eps = 1e-8;                 ///< added to the root, > 0
  double lr = 6e-4;                  ///< largest learning rate, > 0
  std::optional<double> min_lr;      ///< last learning rate, 0 … lr (default: 0.1 lr)
  std::int64_t lr_warmup_iters = 0;  ///< steps of linear rise from 0, >= 0
  LrDecayStyle lr_decay_style = LrDecayStyle::cosine;  ///< cosine | linear | constant | wsd
  double lr_decay_share = 0.2;  ///< share of train_iters in which wsd falls, in (0, 1]
  double weight_decay = 0.1;    ///< on matrices, >= 0
  double clip_grad = 1.0;       ///< largest global gradient norm, >= 0 (0: off)

  [[nodiscard]] double last_lr() const noexcept { return min_lr.value_or(0.1 * lr); }
  bool operator==(OptimizerConfig const&) const = default;
};

/// Every problem of the section; `train_iters` bounds the warm-up.
[[nodiscard]] Problems problems(OptimizerConfig const& config, std::int64_t train_iters);

}  // namespace motley::model
