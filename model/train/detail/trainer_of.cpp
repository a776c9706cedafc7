#include "model/train/detail/trainer_of.hpp"

#include <cmath>

#include "model/train/host_memory.hpp"
#include "model/train/learning_rate.hpp"
#include "model/train/non_finite.hpp"

namespace motley::model::detail {
namespace {

using kernels::Accumulate;

/// Throws unless what the arena will take fits what this process may still have.
void check_memory(MemoryTable const& needed, double target) {
  auto const available = static_cast<double>(available_memory_bytes());
  auto const wanted = static_cast<double>(needed.total_bytes());
  double const gib = 1024.0 * 1024.0 * 1024.0;
  MOTLEY_VALIDATE(plan,
                  wanted <= target * available,
                  "the model does not fit (it needs "
                      << wanted / gib << " GiB; memory.target = " << target << " of the "
                      << available / gib
                      << " GiB that are free may be used); take a smaller micro-batch or model, "
                         "memory.recompute = full, or more ranks\n"
                      << needed.to_string());
}

/// "…, micro-batch 2"
std::string in_micro_batch(std::string const& what, std::size_t index) {
  return what + ", micro-batch " + std::to_string(index);
}

}  // namespace

template <class T>
TrainerParts<T>::TrainerParts(TrainerConfig const& config,
                              comm::Group const& group,
                              kernels::MatmulEngine& engine,
                              Arena& arena,
                              MemoryMeter& meter)
    : state{StateLayout{config.model, StageShard::whole(config.model)},
            config.purpose,
            arena,
            meter},
      network{{engine,
               arena,
               group,
               config.train.micro_batch_size * config.model.seq_length,
               config.purpose == Purpose::train},
              config.model,
              StageShard::whole(config.model),
              state},
      executor{config, network, state, arena} {
  meter.mark("packed weights");
  engine.allocate_workspace(arena);
  meter.mark("product workspace");
  if (config.purpose == Purpose::train) optimizer.emplace(config.optimizer, state, arena);
  meter.mark("optimizer workspace");
}

template <class T>
MemoryTable count_memory(TrainerConfig const& config,
                         comm::Group const& group,
                         kernels::MatmulEngine& engine) {
  Arena arena = Arena::counting();
  MemoryMeter meter{arena};
  TrainerParts<T> parts{config, group, engine, arena, meter};
  parts.executor.count_memory(arena, meter);
  return meter.table();
}

template <class T>
TrainerOf<T>::TrainerOf(TrainerConfig const& config, comm::Group const& group)
    : config_{config},
      group_{group},
      memory_{count_memory<T>(config, group, engine_)},
      arena_{Arena::counting()} {
  check_memory(memory_, config_.memory.target);
  std::size_t const capacity = memory_.total_bytes();
  memory_.add("process", resident_memory_bytes());
  memory_.add("data", config_.data_bytes);
  arena_ = Arena{capacity};
  MemoryMeter meter{arena_};
  parts_.emplace(config_, group_, engine_, arena_, meter);
  parts_->state.initialize(exec_, config_.seed);
  parts_->network.pack(exec_);
}

template <class T>
void TrainerOf<T>::expect_training() const {
  MOTLEY_VALIDATE(bug,
                  config_.purpose == Purpose::train,
                  "a trainer made to evaluate was asked to train (it has no gradients); this is a "
                  "bug of motley, please report it");
}

template <class T>
typename TrainerOf<T>::Accumulated TrainerOf<T>::accumulate(std::span<Batch const> micro_batches,
                                                            StepInfo const& step,
                                                            PhaseTimes& times) {
  expect_training();
  MOTLEY_EXPECT(step.valid_tokens >= 1);
  Executor<T>& executor = parts_->executor;
  PhaseClock clock{exec_};
  if (micro_batches.empty()) {
    executor.clear_gradients(exec_);
  } else {
    executor.start_gradients(exec_);
  }
  clock.end_phase(times.backward_s);
  Accumulated sum;
  Accumulate accumulate = Accumulate::no;
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    auto const result = executor.forward_backward(micro_batches[i], step, accumulate, times);
    accumulate = Accumulate::yes;
    sum.loss += result.loss_sum;
    if (sum.non_finite.empty() && !result.non_finite.empty()) {
      sum.non_finite = in_micro_batch(result.non_finite, i);
    }
  }
  sum.loss /= static_cast<double>(step.valid_tokens);
  return sum;
}

template <class T>
std::string TrainerOf<T>::locate_gradient(std::span<Batch const> micro_batches,
                                          StepInfo const& step) {
  std::string found = first_non_finite_gradient(exec_, parts_->state);
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    PhaseTimes ignored;
    static_cast<void>(accumulate(micro_batches.subspan(i, 1), step, ignored));
    std::string const alone = first_non_finite_gradient(exec_, parts_->state);
    if (!alone.empty()) return in_micro_batch(alone, i);
  }
  if (found.empty()) return "sum of the squared gradients is not finite";
  return found + ", in the sum over the micro-batches only";
}

template <class T>
void TrainerOf<T>::skip(StepResult const& result) {
  ++progress_.skipped;
  ++progress_.skipped_in_row;
  MOTLEY_VALIDATE(numeric,
                  progress_.skipped_in_row <= config_.fault.max_skips,
                  "step " << result.step << " gave no finite update: " << result.non_finite << " ("
                          << progress_.skipped_in_row
                          << " bad steps in a row, fault.max_skips allows "
                          << config_.fault.max_skips
                          << "); lower optimizer.lr, lengthen the warm-up, or go back to an "
                             "earlier checkpoint");
}

template <class T>
StepResult TrainerOf<T>::train_step(std::span<Batch const> micro_batches,
                                    std::int64_t valid_tokens) {
  StepResult result;
  result.step = progress_.step + 1;
  result.learning_rate = learning_rate(config_.optimizer, config_.train.train_iters, result.step);
  StepInfo const step{result.step, valid_tokens};
  Accumulated const sum = accumulate(micro_batches, step, result.phases);
  result.loss = sum.loss;

  PhaseClock clock{exec_};
  Optimizer<T> const& optimizer = *parts_->optimizer;
  result.grad_norm = optimizer.gradient_norm(exec_);
  result.is_skipped = !std::isfinite(result.loss) || !std::isfinite(result.grad_norm);
  progress_.step = result.step;
  progress_.tokens += valid_tokens;
  if (result.is_skipped) {
    result.non_finite =
        sum.non_finite.empty() ? locate_gradient(micro_batches, step) : sum.non_finite;
    skip(result);
    return result;
  }
  ++progress_.updates;
  progress_.skipped_in_row = 0;
  optimizer.update(
      exec_, result.learning_rate, progress_.updates, optimizer.clip_factor(result.grad_norm));
  parts_->network.pack(exec_);
  clock.end_phase(result.phases.update_s);
  return result;
}

template <class T>
double TrainerOf<T>::forward_backward(std::span<Batch const> micro_batches,
                                      std::int64_t valid_tokens) {
  PhaseTimes times;
  return accumulate(micro_batches, {progress_.step + 1, valid_tokens}, times).loss;
}

template <class T>
double TrainerOf<T>::loss_sum(Batch const& batch) {
  return parts_->executor.loss_sum(batch);
}

template <class T>
std::vector<double> TrainerOf<T>::logits(Batch const& batch, LogitRows rows) {
  return parts_->executor.logits(batch, rows);
}

template <class T>
std::vector<NamedTensor> TrainerOf<T>::tensors(StateKind kind) {
  exec_.fence("motley::model::Trainer::tensors");
  return parts_->state.tensors(kind);
}

template <class T>
void TrainerOf<T>::adopt_parameters() {
  parts_->state.restart_from_parameters(exec_);
  parts_->network.pack(exec_);
  progress_ = {};
}

template <class T>
void TrainerOf<T>::adopt_state(TrainProgress const& progress) {
  parts_->network.pack(exec_);
  progress_ = progress;
}

template <class T>
double TrainerOf<T>::measured_peak_flop_per_s() {
  return engine_.measured_peak_flop_per_s(exec_, config_.model.dtype);
}

template struct TrainerParts<float>;
template struct TrainerParts<BFloat16>;
template struct TrainerParts<double>;
template MemoryTable count_memory<float>(TrainerConfig const&,
                                         comm::Group const&,
                                         kernels::MatmulEngine&);
template MemoryTable count_memory<BFloat16>(TrainerConfig const&,
                                            comm::Group const&,
                                            kernels::MatmulEngine&);
template MemoryTable count_memory<double>(TrainerConfig const&,
                                          comm::Group const&,
                                          kernels::MatmulEngine&);
template class TrainerOf<float>;
template class TrainerOf<BFloat16>;
template class TrainerOf<double>;

}  // namespace motley::model::detail
