#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/batch.hpp"
#include "model/layers/pass.hpp"
#include "model/train/activations.hpp"
#include "model/train/network.hpp"
#include "model/train/phase_clock.hpp"
#include "model/train/train_config.hpp"
#include "model/train/trainer.hpp"

// Shapes: B windows, T tokens, R = B T rows, V vocabulary.

namespace motley::model {

/// What the micro-batches of a step have in common.
struct StepInfo {
  std::int64_t step = 1;          ///< number of the step: keys dropout
  std::int64_t valid_tokens = 1;  ///< of the whole step
};

/// Runs micro-batches through the network, forward and backward, in scratch memory of the arena.
template <class T>
class Executor final {
 public:
  using A = Accumulator<T>;

  /// Network, state and arena must outlive this.
  Executor(TrainerConfig const& config,
           Network<T>& network,
           ModelState<T> const& state,
           Arena& arena);

  /// Takes from a counting arena, and marks, what the largest micro-batch takes while it runs.
  void count_memory(Arena& arena, MemoryMeter& meter);

  /// Sets to zero every gradient that the first micro-batch of a step does not overwrite.
  void start_gradients(Exec const& exec);
  /// Sets all gradients to zero: a step without micro-batches.
  void clear_gradients(Exec const& exec);

  struct Result {
    double loss_sum = 0.0;   ///< over the valid targets, in nats
    std::string non_finite;  ///< what was not finite first, if the loss is not
  };
  /// Adds a micro-batch to the gradients; the first of a step starts those of weight matrices.
  Result forward_backward(Batch const& batch,
                          StepInfo const& step,
                          kernels::Accumulate accumulate,
                          PhaseTimes& times);

  /// Sum of the losses, without dropout.
  double loss_sum(Batch const& batch);

  /// Logits [rows, V], without dropout.
  std::vector<double> logits(Batch const& batch, LogitRows rows);

 private:
  Pass start(Batch const& batch, Keep keep, bool has_targets);
  void check(Batch const& batch, bool has_targets) const;
  void forward(Pass const& pass);
  void backward(Pass const& pass);
  std::vector<double> last_logits(Batch const& batch);
  /// One window with tokens appended up to a round number of rows. Attention is causal, so they
  /// change nothing, and a text that grows token by token needs few shapes of products.
  Batch lengthened(Batch const& window);
  void append_logits(Pass const& pass,
                     std::int64_t first,
                     std::int64_t count,
                     std::vector<double>& out);
  double read_loss(Exec const& exec);

  TrainerConfig config_;
  Network<T>& network_;
  ModelState<T> const& state_;
  Arena& arena_;
  Exec exec_;
  Activations<T> activations_;
  std::vector<std::int32_t> lengthened_ids_;
};

}  // namespace motley::model
