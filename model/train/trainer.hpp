#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "kernels/base/batch.hpp"
#include "kernels/base/named_tensor.hpp"
#include "model/plan/memory_table.hpp"
#include "model/train/train_config.hpp"

// Shapes: B windows of a batch, T tokens of a window, V vocabulary.

namespace motley::model {

/// Where training stands; part of a checkpoint, together with the tensors.
struct TrainProgress {
  std::int64_t step = 0;            ///< steps done, skipped ones included
  std::int64_t updates = 0;         ///< steps whose update was applied: Adam's bias correction
  std::int64_t tokens = 0;          ///< valid tokens of all steps done
  std::int64_t skipped = 0;         ///< steps whose update was skipped
  std::int64_t skipped_in_row = 0;  ///< of these, since the last applied update
  bool operator==(TrainProgress const&) const = default;
};

/// Wall time of the parts of a step.
struct PhaseTimes {
  double forward_s = 0.0;   ///< embedding and layers
  double head_s = 0.0;      ///< final norm, head and loss, forward and backward
  double backward_s = 0.0;  ///< layers and embedding
  double update_s = 0.0;    ///< norm, clipping, AdamW, packing of weights
};

struct StepResult {
  std::int64_t step = 0;       ///< number of this step, from 1
  double loss = 0.0;           ///< mean over the valid tokens, in nats
  double grad_norm = 0.0;      ///< global norm before clipping
  double learning_rate = 0.0;  ///< used by this step
  bool is_skipped = false;     ///< no update: loss or gradient was not finite
  std::string non_finite;      ///< of a skipped step: what was not finite first, and where
  PhaseTimes phases;
};

/// The kinds of tensors a trainer holds.
enum class StateKind {
  parameter,  ///< of the model's dtype
  gradient,   ///< fp32 (fp64 in an fp64 run), of the last step
  master,     ///< parameters in fp32; none where the dtype is fp32 or fp64
  adam_m,
  adam_v,
};

/// Which rows of the logits to return.
enum class LogitRows { all, last_of_window };

/// A model with its optimizer on one rank: everything a step does between data and log.
///
/// All memory is allocated by `make_trainer`; a step allocates nothing. Main thread only.
class Trainer {
 public:
  Trainer() = default;
  Trainer(Trainer const&) = delete;
  Trainer& operator=(Trainer const&) = delete;
  Trainer(Trainer&&) = delete;
  Trainer& operator=(Trainer&&) = delete;
  virtual ~Trainer() = default;

  /// One optimizer step over micro-batches, accumulated in order. A step whose loss or gradient is
  /// not finite leaves parameters and moments as they were.
  ///
  /// Shapes   each batch at most [micro_batch_size, seq_length]; spans live until the return
  /// Throws   Error{numeric} at the bad step after `max_skips` skipped in a row;
  ///          Error{data} for a token id outside the vocabulary
  /// @param valid_tokens targets of the whole step that count, over all ranks, >= 1
  virtual StepResult train_step(std::span<Batch const> micro_batches,
                                std::int64_t valid_tokens) = 0;

  /// Gradients alone, in StateKind::gradient; returns the mean loss. `train_step` is this and the
  /// update; tests compare its result with other programs.
  virtual double forward_backward(std::span<Batch const> micro_batches,
                                  std::int64_t valid_tokens) = 0;

  /// Sum of the losses of all valid targets in nats, without dropout and without gradients.
  virtual double loss_sum(Batch const& batch) = 0;

  /// Logits [rows, V], without dropout; targets are not read. Rows are B·T or B.
  virtual std::vector<double> logits(Batch const& batch, LogitRows rows) = 0;

  /// The tensors of a kind in model order, over the trainer's own memory; empty if it has none.
  [[nodiscard]] virtual std::vector<NamedTensor> tensors(StateKind kind) = 0;

  /// Call after writing to StateKind::parameter alone: masters follow, moments and progress
  /// restart.
  virtual void adopt_parameters() = 0;

  /// Call after writing to every kind but gradients (a checkpoint).
  virtual void adopt_state(TrainProgress const& progress) = 0;

  [[nodiscard]] virtual TrainProgress progress() const = 0;
  [[nodiscard]] virtual TrainerConfig const& config() const = 0;
  /// What `predict_memory` said before it was made.
  [[nodiscard]] virtual MemoryTable memory() const = 0;
  /// The most that was in use of the memory it allocated: the table without process and data.
  [[nodiscard]] virtual std::size_t peak_bytes() const = 0;
  /// How products are computed, e.g. "oneDNN 2.6.3, bf16 native".
  [[nodiscard]] virtual std::string products() const = 0;
  /// Rate of large matrix products on this device with all threads, in flop/s; takes ~0.3 s.
  [[nodiscard]] virtual double measured_peak_flop_per_s() = 0;
};

/// Memory of a trainer by class, without allocating it. The baseline is what the process holds now.
///
/// Throws   Error{usage} naming every problem of the configuration
[[nodiscard]] MemoryTable predict_memory(TrainerConfig const& config);

/// Makes a trainer with initial weights.
///
/// Throws   Error{usage} naming every problem of the configuration; Error{plan} with the memory
///          table if it does not fit the memory available to this process
[[nodiscard]] std::unique_ptr<Trainer> make_trainer(TrainerConfig const& config,
                                                    comm::Group const& group);

}  // namespace motley::model
