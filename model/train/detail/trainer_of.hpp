#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "kernels/base/arena.hpp"
#include "kernels/linear.hpp"
#include "model/train/executor.hpp"
#include "model/train/network.hpp"
#include "model/train/optimizer.hpp"
#include "model/train/trainer.hpp"

namespace motley::model::detail {

/// Everything of a trainer that lives in the arena. Made once on a counting arena for its size, and
/// once on the real one.
template <class T>
struct TrainerParts {
  TrainerParts(TrainerConfig const& config,
               comm::Group const& group,
               kernels::MatmulEngine& engine,
               Arena& arena,
               MemoryMeter& meter);
  TrainerParts(TrainerParts const&) = delete;
  TrainerParts& operator=(TrainerParts const&) = delete;
  TrainerParts(TrainerParts&&) = delete;
  TrainerParts& operator=(TrainerParts&&) = delete;
  ~TrainerParts() = default;

  ModelState<T> state;
  Network<T> network;
  std::optional<Optimizer<T>> optimizer;  ///< Purpose::train
  Executor<T> executor;
};

/// Memory that `TrainerParts` and the largest micro-batch take, by class.
template <class T>
[[nodiscard]] MemoryTable count_memory(TrainerConfig const& config,
                                       comm::Group const& group,
                                       kernels::MatmulEngine& engine);

/// The trainer of one dtype.
template <class T>
class TrainerOf final : public Trainer {
 public:
  /// Throws   Error{plan} with the table if it does not fit the memory available
  TrainerOf(TrainerConfig const& config, comm::Group const& group);

  StepResult train_step(std::span<Batch const> micro_batches, std::int64_t valid_tokens) override;
  double forward_backward(std::span<Batch const> micro_batches, std::int64_t valid_tokens) override;
  double loss_sum(Batch const& batch) override;
  std::vector<double> logits(Batch const& batch, LogitRows rows) override;

  [[nodiscard]] std::vector<NamedTensor> tensors(StateKind kind) override;
  void adopt_parameters() override;
  void adopt_state(TrainProgress const& progress) override;

  [[nodiscard]] TrainProgress progress() const override { return progress_; }
  [[nodiscard]] TrainerConfig const& config() const override { return config_; }
  [[nodiscard]] MemoryTable memory() const override { return memory_; }
  [[nodiscard]] std::size_t peak_bytes() const override { return arena_.peak_bytes(); }
  [[nodiscard]] std::string products() const override { return engine_.description(); }
  [[nodiscard]] double measured_peak_flop_per_s() override;

 private:
  struct Accumulated {
    double loss = 0.0;  ///< mean over the valid tokens
    std::string non_finite;
  };
  Accumulated accumulate(std::span<Batch const> micro_batches,
                         StepInfo const& step,
                         PhaseTimes& times);
  std::string locate_gradient(std::span<Batch const> micro_batches, StepInfo const& step);
  void skip(StepResult const& result);
  void expect_training() const;

  TrainerConfig config_;
  comm::Group group_;
  Exec exec_;
  kernels::MatmulEngine engine_;
  MemoryTable memory_;
  Arena arena_;
  std::optional<TrainerParts<T>> parts_;
  TrainProgress progress_;
};

}  // namespace motley::model::detail
