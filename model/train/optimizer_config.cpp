#include "model/train/optimizer_config.hpp"

#include <array>
#include <cmath>

#include "model/detail/check.hpp"

namespace motley::model {
namespace {

struct NamedStyle {
  LrDecayStyle style;
  std::string_view name;
};

constexpr std::array named_styles{NamedStyle{LrDecayStyle::cosine, "cosine"},
                                  NamedStyle{LrDecayStyle::linear, "linear"},
                                  NamedStyle{LrDecayStyle::constant, "constant"},
                                  NamedStyle{LrDecayStyle::wsd, "wsd"}};

bool is_share(double value) { return value >= 0.0 && value < 1.0; }

void check_adam(OptimizerConfig const& config, detail::Check& check) {
  check.require(is_share(config.beta1) && is_share(config.beta2),
                "optimizer.betas",
                "[",
                config.beta1,
                ", ",
                config.beta2,
                "] is outside [0, 1) (they are decay rates of running means); give e.g. [0.9, "
                "0.95]");
  check.require(config.eps > 0.0 && std::isfinite(config.eps),
                "optimizer.eps",
                config.eps,
                " is not positive (it keeps the update of an unused weight finite); give e.g. "
                "1e-8");
  check.require(config.weight_decay >= 0.0 && std::isfinite(config.weight_decay),
                "optimizer.weight_decay",
                config.weight_decay,
                " is negative (weights would grow by themselves); give 0 or more");
  check.require(config.clip_grad >= 0.0 && std::isfinite(config.clip_grad),
                "optimizer.clip_grad",
                config.clip_grad,
                " is negative (it is the largest gradient norm); give 0 to switch clipping off");
}

void check_schedule(OptimizerConfig const& config, std::int64_t train_iters, detail::Check& check) {
  check.require(config.lr > 0.0 && std::isfinite(config.lr),
                "optimizer.lr",
                config.lr,
                " is not positive (nothing would be learned); give e.g. 6e-4");
  check.require(config.last_lr() >= 0.0 && config.last_lr() <= config.lr,
                "optimizer.min_lr",
                config.last_lr(),
                " is outside 0 … optimizer.lr = ",
                config.lr,
                " (the rate falls from lr to it); give a smaller one");
  check.require(config.lr_warmup_iters >= 0 && config.lr_warmup_iters <= train_iters,
                "optimizer.lr_warmup_iters",
                config.lr_warmup_iters,
                " is outside 0 … train.train_iters = ",
                train_iters,
                " (the rate would never reach lr); give a shorter warm-up");
  check.require(config.lr_decay_share > 0.0 && config.lr_decay_share <= 1.0,
                "optimizer.lr_decay_share",
                config.lr_decay_share,
                " is outside (0, 1] (it is the share of the run in which wsd lowers the rate); "
                "give e.g. 0.2");
}

}  // namespace

std::string_view to_string(LrDecayStyle style) noexcept {
  for (NamedStyle const& named : named_styles) {
    if (named.style == style) return named.name;
  }
  return "?";
}

std::optional<LrDecayStyle> parse_lr_decay_style(std::string_view name) noexcept {
  for (NamedStyle const& named : named_styles) {
    if (named.name == name) return named.style;
  }
  return std::nullopt;
}

Problems problems(OptimizerConfig const& config, std::int64_t train_iters) {
  detail::Check check;
  check_adam(config, check);
  check_schedule(config, train_iters, check);
  return check.take();
}

}  // namespace motley::model
