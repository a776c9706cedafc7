#include "model/train/executor.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "kernels/base/host_copy.hpp"
#include "kernels/cast.hpp"
#include "kernels/reduce.hpp"
#include "model/train/non_finite.hpp"

namespace motley::model {
namespace {

using kernels::Accumulate;

void check_ids(std::span<std::int32_t const> ids,
               std::int32_t lowest,
               std::int64_t vocab,
               char const* what) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    MOTLEY_VALIDATE(data,
                    ids[i] >= lowest && ids[i] < vocab,
                    what << " " << i << " of a batch is " << ids[i] << " (the vocabulary has "
                         << vocab << " tokens); use data made with the tokenizer of this model");
  }
}

}  // namespace

template <class T>
Executor<T>::Executor(TrainerConfig const& config,
                      Network<T>& network,
                      ModelState<T> const& state,
                      Arena& arena)
    : config_{config}, network_{network}, state_{state}, arena_{arena} {}

template <class T>
void Executor<T>::count_memory(Arena& arena, MemoryMeter& meter) {
  bool const is_training = config_.purpose == Purpose::train;
  Keep const keep = !is_training                                  ? Keep::nothing
                    : config_.memory.recompute == Recompute::full ? Keep::inputs
                                                                  : Keep::everything;
  activations_.make(
      arena, network_, config_.train.micro_batch_size, config_.model.seq_length, keep, &meter);
}

template <class T>
void Executor<T>::start_gradients(Exec const& exec) {
  StateLayout const& layout = state_.layout();
  View1<A> const gradients = state_.gradients();
  std::int64_t const matrices = layout.matrix_count();
  kernels::fill<A>(exec, A{0}, part_of(gradients, matrices, layout.count() - matrices));
  for (LocalTensor const& local : layout.tensors()) {
    bool const head_starts_it = config_.model.tied && local.tensor.split == Split::vocab_rows;
    if (local.tensor.place == Place::embedding && !head_starts_it) {
      kernels::fill<A>(exec, A{0}, part_of(gradients, local.offset, local.padded_count()));
    }
  }
}

template <class T>
void Executor<T>::clear_gradients(Exec const& exec) {
  kernels::fill<A>(exec, A{0}, state_.gradients());
}

template <class T>
void Executor<T>::check(Batch const& batch, bool has_targets) const {
  MOTLEY_VALIDATE(bug,
                  batch.batch >= 1 && batch.batch <= config_.train.micro_batch_size &&
                      batch.tokens >= 1 && batch.tokens <= config_.model.seq_length,
                  "a batch of " << batch.batch << " windows of " << batch.tokens
                                << " tokens was given (memory is for "
                                << config_.train.micro_batch_size << " of "
                                << config_.model.seq_length
                                << "); this is a bug of motley, please report it");
  auto const rows = static_cast<std::size_t>(batch.batch * batch.tokens);
  MOTLEY_EXPECT(batch.inputs.size() == rows);
  MOTLEY_EXPECT(!has_targets || batch.targets.size() == rows);
  check_ids(batch.inputs, 0, config_.model.vocab, "input");
  if (has_targets) check_ids(batch.targets, Batch::ignored_target, config_.model.vocab, "target");
}

template <class T>
Pass Executor<T>::start(Batch const& batch, Keep keep, bool has_targets) {
  check(batch, has_targets);
  activations_.make(arena_, network_, batch.batch, batch.tokens, keep);
  copy_to_device(exec_, batch.inputs, activations_.ids);
  if (has_targets) copy_to_device(exec_, batch.targets, activations_.targets);
  Pass pass;
  pass.exec = exec_;
  pass.batch = batch.batch;
  pass.tokens = batch.tokens;
  pass.seed = config_.seed;
  pass.samples = activations_.samples;
  if (keep != Keep::nothing && config_.model.dropout > 0.0) {
    MOTLEY_EXPECT(static_cast<std::int64_t>(batch.samples.size()) == batch.batch);
    copy_to_device(exec_, batch.samples, activations_.samples);
    pass.dropout = config_.model.dropout;
  }
  return pass;
}

template <class T>
void Executor<T>::forward(Pass const& pass) {
  auto const& boundaries = activations_.boundaries;
  network_.embedding.forward(pass, activations_.ids, boundaries[0]);
  for (std::size_t i = 0; i < network_.layers.size(); ++i) {
    network_.layers[i].forward(
        pass, boundaries[i], activations_.saved[i], activations_.scratch, boundaries[i + 1]);
  }
}

template <class T>
void Executor<T>::backward(Pass const& pass) {
  auto const& boundaries = activations_.boundaries;
  View2<T> dy = activations_.d_stream[0];
  View2<T> dx = activations_.d_stream[1];
  std::size_t const n_layers = network_.layers.size();
  for (std::size_t i = n_layers; i-- > 0;) {
    auto& layer = network_.layers[i];
    auto const& saved = activations_.saved[i];
    // The last layer ran last: what it saved is still there.
    bool const is_gone = activations_.keep == Keep::inputs && i + 1 < n_layers;
    if (is_gone) layer.recompute(pass, boundaries[i], saved, activations_.scratch);
    layer.backward_input(
        pass, boundaries[i], saved, dy, activations_.pending, activations_.scratch, dx);
    layer.backward_weight(pass, saved, dy, activations_.pending);
    std::swap(dx, dy);
  }
  network_.embedding.backward_weight(pass, activations_.ids, dy);
}

template <class T>
double Executor<T>::read_loss(Exec const& exec) {
  kernels::sum<A>(exec, activations_.head.losses, activations_.loss, activations_.reduce_workspace);
  double loss = 0.0;
  copy_to_host(exec, activations_.loss, std::span<double>{&loss, 1});
  return loss;
}

template <class T>
typename Executor<T>::Result Executor<T>::forward_backward(Batch const& batch,
                                                           StepInfo const& step,
                                                           Accumulate accumulate,
                                                           PhaseTimes& times) {
  ArenaScope const scope{arena_};
  PhaseClock clock{exec_};
  bool const is_full = config_.memory.recompute == Recompute::full;
  Pass pass = start(batch, is_full ? Keep::inputs : Keep::everything, true);
  pass.step = static_cast<std::uint64_t>(step.step);
  pass.weight_gradients = accumulate;
  forward(pass);
  clock.end_phase(times.forward_s);

  auto const& last = activations_.boundaries.back();
  network_.head.normalize(exec_, last, activations_.head);
  network_.head.losses_and_gradients(pass,
                                     last,
                                     activations_.targets,
                                     static_cast<A>(1.0 / static_cast<double>(step.valid_tokens)),
                                     activations_.head,
                                     activations_.scratch.norm_workspace,
                                     activations_.d_stream[0]);
  Result result;
  result.loss_sum = read_loss(exec_);
  if (!std::isfinite(result.loss_sum)) {
    result.non_finite = first_non_finite_output(exec_, activations_, state_);
  }
  clock.end_phase(times.head_s);

  backward(pass);
  clock.end_phase(times.backward_s);
  return result;
}

template <class T>
double Executor<T>::loss_sum(Batch const& batch) {
  ArenaScope const scope{arena_};
  Pass const pass = start(batch, Keep::nothing, true);
  forward(pass);
  network_.head.normalize(exec_, activations_.boundaries.back(), activations_.head);
  network_.head.losses(exec_, activations_.targets, activations_.head);
  return read_loss(exec_);
}

template <class T>
void Executor<T>::append_logits(Pass const& pass,
                                std::int64_t first,
                                std::int64_t count,
                                std::vector<double>& out) {
  network_.head.logits(pass.exec, first, count, activations_.head);
  auto const width = static_cast<std::size_t>(activations_.head.logits.extent(1));
  std::vector<A> rows(static_cast<std::size_t>(count) * width);
  copy_to_host(pass.exec, flat_of(rows_of(activations_.head.logits, 0, count)), std::span<A>{rows});
  auto const vocab = static_cast<std::size_t>(config_.model.vocab);
  for (std::size_t row = 0; row < static_cast<std::size_t>(count); ++row) {
    auto const begin = rows.begin() + static_cast<std::ptrdiff_t>(row * width);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(vocab));
  }
}

template <class T>
Batch Executor<T>::lengthened(Batch const& window) {
  constexpr std::int64_t unit = 64;
  std::int64_t const tokens =
      std::min(config_.model.seq_length, (window.tokens + unit - 1) / unit * unit);
  lengthened_ids_.assign(static_cast<std::size_t>(tokens), 0);
  std::copy(window.inputs.begin(), window.inputs.end(), lengthened_ids_.begin());
  Batch batch;
  batch.batch = 1;
  batch.tokens = tokens;
  batch.inputs = lengthened_ids_;
  return batch;
}

template <class T>
std::vector<double> Executor<T>::last_logits(Batch const& batch) {
  ArenaScope const scope{arena_};
  std::int64_t const tokens = batch.tokens;
  Pass const pass = start(batch.batch == 1 ? lengthened(batch) : batch, Keep::nothing, false);
  forward(pass);
  network_.head.normalize(exec_, activations_.boundaries.back(), activations_.head);
  std::vector<double> out;
  for (std::int64_t window = 0; window < batch.batch; ++window) {
    append_logits(pass, window * pass.tokens + tokens - 1, 1, out);
  }
  return out;
}

template <class T>
std::vector<double> Executor<T>::logits(Batch const& batch, LogitRows rows) {
  if (rows == LogitRows::last_of_window) return last_logits(batch);
  ArenaScope const scope{arena_};
  Pass const pass = start(batch, Keep::nothing, false);
  forward(pass);
  network_.head.normalize(exec_, activations_.boundaries.back(), activations_.head);
  std::vector<double> out;
  std::int64_t const chunk = network_.head.chunk_rows(pass.rows());
  for (std::int64_t first = 0; first < pass.rows(); first += chunk) {
    append_logits(pass, first, std::min(chunk, pass.rows() - first), out);
  }
  return out;
}

template class Executor<float>;
template class Executor<BFloat16>;
template class Executor<double>;

}  // namespace motley::model
