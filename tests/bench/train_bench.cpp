// Time of a training step beside its floor, both measured in turn in this process.
//
//   bench_train [preset=gpt2-124m] [batch=4] [tokens=256] [dtype=fp32] [rounds=5] [accumulate=1]
//               [recompute=none] [floor=on] [profile=off]
//
// Prints one JSON line; `profile=on` lists on standard error where one step goes. Threads are those
// of OMP_NUM_THREADS.

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <sys/resource.h>

#include "kernels/base/error.hpp"
#include "kernels/base/philox.hpp"
#include "model/plan/cost.hpp"
#include "model/spec/presets.hpp"
#include "model/train/host_memory.hpp"
#include "model/train/trainer.hpp"
#include "tests/bench/bench.hpp"
#include "tests/bench/kernel_profile.hpp"
#include "tests/bench/step_floor.hpp"

namespace motley::bench {
namespace {

using Options = std::map<std::string, std::string>;

Options parse(int argc, char** argv) {
  Options options{{"preset", "gpt2-124m"},
                  {"batch", "4"},
                  {"tokens", "256"},
                  {"dtype", "fp32"},
                  {"rounds", "5"},
                  {"accumulate", "1"},
                  {"recompute", "none"},
                  {"floor", "on"},
                  {"profile", "off"}};
  for (int i = 1; i < argc; ++i) {
    std::string const argument{argv[i]};
    std::string const key = argument.substr(0, argument.find('='));
    MOTLEY_VALIDATE(usage,
                    options.contains(key) && key.size() < argument.size(),
                    "\"" << argument << "\" is no option (an option is key=value); see the top of "
                         << "tests/bench/train_bench.cpp");
    options[key] = argument.substr(key.size() + 1);
  }
  return options;
}

model::TrainerConfig config_of(Options const& options) {
  model::TrainerConfig config;
  auto const spec = model::find_preset(options.at("preset"));
  auto const dtype = parse_dtype(options.at("dtype"));
  auto const recompute = model::parse_recompute(options.at("recompute"));
  MOTLEY_VALIDATE(usage,
                  spec.has_value() && dtype.has_value() && recompute.has_value(),
                  "unknown preset, dtype or recompute (they are names of model/spec/presets.cpp, "
                  "fp32|bf16|fp64 and none|full); correct it");
  config.model = *spec;
  config.model.dtype = *dtype;
  config.model.seq_length = std::stoll(options.at("tokens"));
  config.memory.recompute = *recompute;
  config.train.micro_batch_size = std::stoll(options.at("batch"));
  config.train.global_batch_size =
      config.train.micro_batch_size * std::stoll(options.at("accumulate"));
  return config;
}

/// Random tokens, the same in every micro-batch.
struct Tokens {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::vector<std::uint64_t> samples;
  std::vector<Batch> batches;

  Tokens(model::TrainerConfig const& config, std::int64_t count) {
    Philox const random{1};
    std::int64_t const batch = config.train.micro_batch_size;
    std::int64_t const tokens = config.model.seq_length;
    auto const vocab = static_cast<std::uint32_t>(config.model.vocab);
    for (std::int64_t i = 0; i < batch * tokens; ++i) {
      auto const words = random(0, static_cast<std::uint64_t>(i));
      inputs.push_back(static_cast<std::int32_t>(words.w[0] % vocab));
      targets.push_back(static_cast<std::int32_t>(words.w[1] % vocab));
    }
    samples.resize(static_cast<std::size_t>(batch));
    batches.assign(static_cast<std::size_t>(count), {batch, tokens, inputs, targets, samples});
  }
};

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

struct StepTimes {
  Timing step, forward, head, backward, update;
  long faults = 0;  ///< minor page faults of the last step
  double loss = 0.0;
};

void run_step(model::Trainer& trainer, Tokens const& data, StepTimes& times) {
  auto const valid = static_cast<std::int64_t>(data.targets.size() * data.batches.size());
  long const faults = minor_faults();
  model::StepResult result;
  times.step.add(seconds_of([&] { result = trainer.train_step(data.batches, valid); }));
  times.faults = minor_faults() - faults;
  times.loss = result.loss;
  times.forward.add(result.phases.forward_s);
  times.head.add(result.phases.head_s);
  times.backward.add(result.phases.backward_s);
  times.update.add(result.phases.update_s);
}

struct FloorTimes {
  Timing total, products, attention, update, flop_per_s, triad;

  void add(Floor const& floor, double micro_batches) {
    products.add(micro_batches * floor.products_s);
    attention.add(micro_batches * floor.attention_s);
    update.add(floor.update_s);
    total.add(micro_batches * (floor.products_s + floor.attention_s) + floor.update_s);
    flop_per_s.add(floor.flop_per_s);
    triad.add(floor.triad_gb_per_s);
  }
};

void print_profile(model::Trainer& trainer, Tokens const& data) {
  StepTimes ignored;
  start_profile();
  run_step(trainer, data, ignored);
  auto const kernels = stop_profile();
  double sum = 0.0;
  for (KernelTime const& kernel : kernels) sum += kernel.seconds;
  for (KernelTime const& kernel : kernels) {
    std::fprintf(stderr,
                 "%9.2f ms %6ld calls  %s\n",
                 1e3 * kernel.seconds,
                 kernel.calls,
                 kernel.label.c_str());
  }
  std::fprintf(
      stderr, "%9.2f ms in kernels of %.2f ms\n", 1e3 * sum, 1e3 * ignored.step.median_s());
}

nlohmann::ordered_json record_of(Options const& options,
                                 model::Trainer& trainer,
                                 StepTimes const& times) {
  auto result = record("train " + options.at("preset") + " " + options.at("batch") + "x" +
                           options.at("tokens") + " " + options.at("dtype"),
                       times.step);
  model::TrainerConfig const& config = trainer.config();
  double const flop =
      step_flop(config.model, config.train.global_batch_size, config.model.seq_length);
  result["accumulate"] = options.at("accumulate");
  result["recompute"] = options.at("recompute");
  result["forward_s"] = times.forward.median_s();
  result["head_s"] = times.head.median_s();
  result["backward_s"] = times.backward.median_s();
  result["update_s"] = times.update.median_s();
  result["model_flop_per_s"] = flop / times.step.median_s();
  result["loss"] = times.loss;
  result["faults_per_step"] = times.faults;
  result["products"] = trainer.products();
  return result;
}

int run(int argc, char** argv) {
  Options const options = parse(argc, argv);
  model::TrainerConfig const config = config_of(options);
  std::int64_t const micro_batches = std::stoll(options.at("accumulate"));
  Tokens const data{config, micro_batches};
  auto const trainer = model::make_trainer(config, comm::Group{});
  {
    StepTimes warm_up;
    for (int i = 0; i < 2; ++i) run_step(*trainer, data, warm_up);
  }
  std::size_t const peak = model::peak_resident_memory_bytes();
  std::optional<FloorMeter> meter;
  if (options.at("floor") == "on") {
    meter.emplace(config.model,
                  config.train.micro_batch_size * config.model.seq_length,
                  config.model.seq_length);
  }
  StepTimes times;
  FloorTimes floor;
  Timing ratio;
  for (int round = 0; round < std::stoi(options.at("rounds")); ++round) {
    StepTimes one;
    run_step(*trainer, data, times);
    if (meter) floor.add(meter->measure(), static_cast<double>(micro_batches));
  }
  auto result = record_of(options, *trainer, times);
  result["predicted_memory_bytes"] = trainer->memory().total_bytes();
  result["peak_memory_bytes"] = peak;
  if (meter) {
    result["floor_s"] = floor.total.median_s();
    result["floor_products_s"] = floor.products.median_s();
    result["floor_attention_s"] = floor.attention.median_s();
    result["floor_update_s"] = floor.update.median_s();
    result["floor_flop_per_s"] = floor.flop_per_s.median_s();
    result["triad_gb_per_s"] = floor.triad.median_s();
    result["step_over_floor"] = times.step.median_s() / floor.total.median_s();
    result["fastest_over_fastest"] = times.step.fastest_s() / floor.total.fastest_s();
  }
  std::cout << result.dump() << "\n";
  if (options.at("profile") == "on") print_profile(*trainer, data);
  return 0;
}

}  // namespace
}  // namespace motley::bench

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos{argc, argv};
  try {
    return motley::bench::run(argc, argv);
  } catch (std::exception const& error) {
    std::cerr << error.what() << "\n";
    return motley::exit_code(error);
  }
}
