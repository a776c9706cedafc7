#include "app/config/run_config.hpp"

#include <algorithm>
#include <iterator>

#include "model/spec/presets.hpp"

namespace motley::app {
namespace {

/// The largest divisor of the global batch up to 8 windows: small enough for most memories, large
/// enough for full-speed products.
std::int64_t default_micro_batch(std::int64_t global_batch) {
  for (std::int64_t size = 8; size > 1; --size) {
    if (global_batch % size == 0) return size;
  }
  return 1;
}

void append(model::Problems& all, model::Problems part) {
  all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
}

/// The batch rule: the global batch is the sum over pipelines of micro-batch × count.
model::Problems batch_problems(TrainSection const& train) {
  std::int64_t const micro = train.micro_batch_size.value_or(1);
  std::int64_t const global = train.global_batch_size;
  if (micro < 1 || global % micro == 0) return {};
  std::int64_t const below = global / micro * micro;
  std::int64_t const above = below + micro;
  std::int64_t const nearest = below > 0 && global - below <= above - global ? below : above;
  return {{"train.global_batch_size",
           "is " + std::to_string(global) +
               ", which one pipeline cannot make of micro-batches of " + std::to_string(micro) +
               " (" + std::to_string(micro) + " × " + std::to_string(global / micro) + " = " +
               std::to_string(below) + "); the nearest it can is " + std::to_string(nearest)}};
}

model::Problems step_problems(RunConfig const& config) {
  model::Problems problems;
  if (config.train.exit_at_step > config.train.train_iters) {
    problems.push_back(
        {"train.exit_at_step",
         "is " + std::to_string(config.train.exit_at_step) + ", beyond train.train_iters = " +
             std::to_string(config.train.train_iters) + "; use a smaller step or 0"});
  }
  return problems;
}

}  // namespace

model::TrainerConfig RunConfig::trainer() const {
  model::TrainerConfig trainer;
  trainer.model = model;
  trainer.optimizer = optimizer;
  trainer.train.micro_batch_size = train.micro_batch_size.value_or(1);
  trainer.train.global_batch_size = train.global_batch_size;
  trainer.train.train_iters = train.train_iters;
  trainer.memory = memory;
  trainer.fault = fault;
  trainer.seed = static_cast<std::uint64_t>(run.seed);
  return trainer;
}

bool set_preset(RunConfig& config, std::string const& name) {
  auto const spec = model::find_preset(name);
  if (!spec) return false;
  config.model = *spec;
  return true;
}

std::string preset_names() {
  std::string text;
  for (model::Preset const& preset : model::presets()) {
    text += (text.empty() ? "" : ", ") + std::string{preset.name};
  }
  return text;
}

void complete(RunConfig& config) {
  config.model = model::with_defaults(config.model);
  if (!config.train.micro_batch_size) {
    config.train.micro_batch_size = default_micro_batch(config.train.global_batch_size);
  }
}

model::Problems find_problems(RunConfig const& config) {
  model::Problems all = batch_problems(config.train);
  append(all, step_problems(config));
  append(all, model::problems(config.model));
  append(all, model::problems(config.optimizer, config.train.train_iters));
  append(all, model::problems(config.memory));
  append(all, model::problems(config.fault));
  return all;
}

}  // namespace motley::app
