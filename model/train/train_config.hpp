#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/spec/model_spec.hpp"
#include "model/train/optimizer_config.hpp"

namespace motley::model {

/// What a layer keeps of its forward for the backward.
enum class Recompute {
  none,  ///< everything the backward reads
  full,  ///< its input only; the forward runs again in the backward
};

[[nodiscard]] std::string_view to_string(Recompute recompute) noexcept;
[[nodiscard]] std::optional<Recompute> parse_recompute(std::string_view name) noexcept;

/// Section `[train]`, as far as the trainer needs it.
struct TrainConfig {
  std::int64_t micro_batch_size = 4;   ///< windows per forward and backward, >= 1
  std::int64_t global_batch_size = 4;  ///< windows per step, a multiple of micro_batch_size
  std::int64_t train_iters = 1000;     ///< steps the learning rate spans, >= 1
  bool operator==(TrainConfig const&) const = default;
};

/// Section `[memory]`.
struct MemoryConfig {
  Recompute recompute = Recompute::none;  ///< none | full, for every layer
  double target = 0.92;                   ///< share of free memory a run may take, in (0, 1]
  bool operator==(MemoryConfig const&) const = default;
};

/// Section `[fault]`, as far as the trainer needs it.
struct FaultConfig {
  std::int64_t max_skips = 10;  ///< bad steps in a row that are skipped; the next one stops, >= 0
  bool operator==(FaultConfig const&) const = default;
};

/// What a trainer is made for: evaluation needs neither gradients nor optimizer state.
enum class Purpose { train, evaluate };

/// Everything a trainer is made from.
struct TrainerConfig {
  ModelSpec model;
  OptimizerConfig optimizer;
  TrainConfig train;
  MemoryConfig memory;
  FaultConfig fault;
  std::uint64_t seed = 1234;  ///< of initial weights and dropout (key: run.seed)
  Purpose purpose = Purpose::train;
  std::size_t data_bytes = 0;  ///< what the caller's data reader holds, for the memory table
};

[[nodiscard]] Problems problems(TrainConfig const& config);
[[nodiscard]] Problems problems(MemoryConfig const& config);
[[nodiscard]] Problems problems(FaultConfig const& config);
/// Every problem of every section.
[[nodiscard]] Problems problems(TrainerConfig const& config);

}  // namespace motley::model
