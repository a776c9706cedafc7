#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/spec/problem.hpp"
#include "model/train/train_config.hpp"

namespace motley::app {

/// Section `[run]`.
struct RunSection {
  std::string dir;             ///< folder of the run
  std::int64_t seed = 1234;    ///< of weights, data order and dropout
  std::string name;            ///< printed at start
  std::optional<int> threads;  ///< per rank; empty: all cores this process may use
};

/// Section `[data]`.
struct DataSection {
  std::string train;      ///< HDF5 data set, from `motley data build`
  std::string valid;      ///< the same for validation; empty: none
  std::string tokenizer;  ///< tokenizer.json, for `motley sample`; empty: --tokenizer needed there
};

/// Section `[train]`, beside what the trainer itself needs.
struct TrainSection {
  std::optional<std::int64_t> micro_batch_size;  ///< windows; empty: chosen by `complete`
  std::int64_t global_batch_size = 0;            ///< windows
  std::int64_t train_iters = 0;                  ///< steps
  std::int64_t exit_at_step = 0;                 ///< save and exit 75 at this step; 0: off
};

/// Section `[checkpoint]`.
struct CheckpointSection {
  std::int64_t interval = 1000;  ///< steps; 0: only at the end and on signals
  std::int64_t keep_last = 3;    ///< newest checkpoints that are kept
  std::int64_t keep_every = 0;   ///< steps; multiples are kept for ever; 0: none
  std::string resume = "auto";   ///< never | auto | a path
  bool verify = true;            ///< read back before the last verified one is deleted
};

/// Section `[eval]`.
struct EvalSection {
  std::int64_t interval = 1000;  ///< steps; 0: only at the end
  std::int64_t iters = 20;       ///< micro-batches of fixed positions
};

/// Section `[log]`.
struct LogSection {
  std::int64_t interval = 10;  ///< steps
};

/// What happens at resume where the checkpoint has other optimizer keys.
enum class OverrideOnResume { error, allow };

/// Everything a user can say about a run. Read-only once loaded.
struct RunConfig {
  RunSection run;
  std::string preset;  ///< model.preset; empty: none
  model::ModelSpec model;
  DataSection data;
  TrainSection train;
  model::OptimizerConfig optimizer;
  OverrideOnResume override_on_resume = OverrideOnResume::error;  ///< optimizer.override_on_resume
  model::MemoryConfig memory;
  CheckpointSection checkpoint;
  EvalSection eval;
  LogSection log;
  model::FaultConfig fault;

  /// What the trainer is made from.
  [[nodiscard]] model::TrainerConfig trainer() const;
};

/// Sets the model section to a preset; false if there is none of that name.
[[nodiscard]] bool set_preset(RunConfig& config, std::string const& name);

/// "gpt2-124m, gpt2-355m, …"
[[nodiscard]] std::string preset_names();

/// Fills in every value that follows from others, so that the written configuration says it.
void complete(RunConfig& config);

/// Every problem of a complete configuration that its single values do not show.
[[nodiscard]] model::Problems find_problems(RunConfig const& config);

}  // namespace motley::app
