#pragma once

#include "app/command.hpp"
#include "app/config/run_config.hpp"

namespace motley::app {

/// Trains until the target step, a stop request or an error.
///
/// Comm     collective over all ranks of the job
/// Throws   Error of every kind; the run folder then holds the reason in last_exit.json
/// Returns  0 target reached, 75 stopped with a durable checkpoint
[[nodiscard]] int train(RunConfig const& config, Ranks const& ranks);

/// Prints what `train` would do: configuration, parameters and predicted memory. Allocates nothing.
[[nodiscard]] int describe_training(RunConfig const& config, Ranks const& ranks);

}  // namespace motley::app
