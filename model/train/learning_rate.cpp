#include "model/train/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace motley::model {
namespace {

/// Share of the way from `begin` to `end` that is done at `step`.
double share_done(std::int64_t begin, std::int64_t end, std::int64_t step) noexcept {
  if (step <= begin) return 0.0;
  if (step >= end) return 1.0;
  return static_cast<double>(step - begin) / static_cast<double>(end - begin);
}

}  // namespace

double learning_rate(OptimizerConfig const& config,
                     std::int64_t train_iters,
                     std::int64_t step) noexcept {
  std::int64_t const warmup = config.lr_warmup_iters;
  double const fall = config.lr - config.last_lr();
  if (step <= warmup) return config.lr * share_done(0, warmup, step);
  switch (config.lr_decay_style) {
    case LrDecayStyle::cosine: {
      double const t = share_done(warmup, train_iters, step);
      return config.last_lr() + fall * 0.5 * (1.0 + std::cos(std::numbers::pi * t));
    }
    case LrDecayStyle::linear:
      return config.lr - fall * share_done(warmup, train_iters, step);
    case LrDecayStyle::wsd: {
      std::int64_t const falling =
          std::llround(config.lr_decay_share * static_cast<double>(train_iters));
      std::int64_t const begin = std::max(warmup, train_iters - std::max<std::int64_t>(1, falling));
      return config.lr - fall * share_done(begin, train_iters, step);
    }
    case LrDecayStyle::constant:
      break;
  }
  return config.lr;
}

}  // namespace motley::model
