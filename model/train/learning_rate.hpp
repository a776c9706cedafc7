#pragma once

#include <cstdint>

#include "model/train/optimizer_config.hpp"

namespace motley::model {

/// Learning rate of a step (from 1) of a run of n = train_iters steps with w = lr_warmup_iters.
///
///   step <= w   lr step / w
///   later       with t = (step - w) / (n - w), held at 1 beyond n:
///     cosine    min_lr + (lr - min_lr) (1 + cos π t) / 2
///     linear    lr + (min_lr - lr) t
///     constant  lr
///     wsd       lr until the last d = round(lr_decay_share n) steps, then straight to min_lr
///
/// So step w has lr, and step n has min_lr (but for constant).
///
/// Source   Loshchilov, Hutter: "SGDR", ICLR 2017, eq. 5 (cosine); Hu et al. 2024, "MiniCPM",
///          arXiv 2404.06395, eq. 1 (wsd, with a straight fall)
[[nodiscard]] double learning_rate(OptimizerConfig const& config,
                                   std::int64_t train_iters,
                                   std::int64_t step) noexcept;

}  // namespace motley::model
