#include "model/train/train_config.hpp"

#include "model/detail/check.hpp"

namespace motley::model {
namespace {

std::int64_t next_multiple(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::string_view to_string(Recompute recompute) noexcept {
  return recompute == Recompute::none ? "none" : "full";
}

std::optional<Recompute> parse_recompute(std::string_view name) noexcept {
  if (name == "none") return Recompute::none;
  if (name == "full") return Recompute::full;
  return std::nullopt;
}

Problems problems(TrainConfig const& config) {
  detail::Check check;
  std::int64_t const micro = config.micro_batch_size;
  std::int64_t const global = config.global_batch_size;
  check.require(micro >= 1,
                "train.micro_batch_size",
                micro,
                " is below 1 (a micro-batch needs a window); give the number of windows");
  check.require(global >= 1,
                "train.global_batch_size",
                global,
                " is below 1 (a step needs a window); give the number of windows");
  if (micro >= 1 && global >= 1) {
    check.require(global % micro == 0,
                  "train.global_batch_size",
                  global,
                  " is no multiple of train.micro_batch_size = ",
                  micro,
                  " (a step is a whole number of micro-batches); the nearest above is ",
                  next_multiple(global, micro));
  }
  check.require(config.train_iters >= 1,
                "train.train_iters",
                config.train_iters,
                " is below 1 (the run would do nothing); give the number of steps");
  return check.take();
}

Problems problems(MemoryConfig const& config) {
  detail::Check check;
  check.require(config.target > 0.0 && config.target <= 1.0,
                "memory.target",
                config.target,
                " is outside (0, 1] (it is the share of the free memory a run may take); give "
                "e.g. 0.92");
  return check.take();
}

Problems problems(FaultConfig const& config) {
  detail::Check check;
  check.require(config.max_skips >= 0,
                "fault.max_skips",
                config.max_skips,
                " is negative (it counts bad steps in a row); give 0 to stop at the first");
  return check.take();
}

Problems problems(TrainerConfig const& config) {
  detail::Check check;
  check.append(problems(config.model));
  check.append(problems(config.optimizer, config.train.train_iters));
  check.append(problems(config.train));
  check.append(problems(config.memory));
  check.append(problems(config.fault));
  return check.take();
}

}  // namespace motley::model
