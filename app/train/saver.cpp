#include "app/train/saver.hpp"

#include <vector>

#include "app/config/load.hpp"
#include "app/train/resume_rules.hpp"
#include "io/hash.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"
#include "model/spec/logical_tensors.hpp"

namespace motley::app {
namespace {

constexpr std::int64_t retry_after_steps = 10;

/// The tensors of a trainer in the terms of a checkpoint.
class StateOf final {
 public:
  explicit StateOf(model::Trainer& trainer)
      : parameters_{trainer.tensors(model::StateKind::parameter)},
        masters_{trainer.tensors(model::StateKind::master)},
        first_moments_{trainer.tensors(model::StateKind::adam_m)},
        second_moments_{trainer.tensors(model::StateKind::adam_v)} {}

  [[nodiscard]] io::StateTensors tensors() const {
    return {parameters_, masters_, first_moments_, second_moments_};
  }

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> masters_;
  std::vector<NamedTensor> first_moments_;
  std::vector<NamedTensor> second_moments_;
};

/// Hash of names, shapes and dtype: what the tensors of two runs must share.
std::string model_hash(model::ModelSpec const& spec) {
  std::string text{to_string(spec.dtype)};
  for (model::LogicalTensor const& tensor : model::logical_tensors(spec)) {
    text += "\n" + tensor.name + " " + tensor.shape.to_string();
  }
  return io::sha256_hex(text);
}

std::int64_t integer_of(io::Attributes const& attributes, std::string const& name) {
  auto const found = attributes.find(name);
  auto const* value =
      found == attributes.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  MOTLEY_VALIDATE(checkpoint,
                  value != nullptr,
                  "the checkpoint has no integer \"" << name << "\" (it was written by another "
                                                     << "version); resume with that version");
  return *value;
}

model::TrainProgress progress_of(io::CheckpointMeta const& meta) {
  model::TrainProgress progress;
  progress.step = meta.step;
  progress.tokens = meta.tokens;
  progress.updates = integer_of(meta.schedule, "updates");
  progress.skipped = integer_of(meta.schedule, "skipped");
  progress.skipped_in_row = integer_of(meta.schedule, "skipped_in_row");
  return progress;
}

}  // namespace

Saver::Saver(RunConfig const& config,
             io::RunFolder const& folder,
             DataFeed& data,
             model::Trainer& trainer)
    : config_{config},
      folder_{folder},
      data_{data},
      trainer_{trainer},
      config_text_{to_toml(config)} {}

std::int64_t Saver::resume() {
  ResumeWish const wish{
      config_text_, data_.fingerprint(), config_.override_on_resume == OverrideOnResume::allow};
  auto const accept = [&](io::CheckpointMeta const& meta) {
    for (KeyDifference const& one : check_resume({meta.config, meta.data_fingerprint}, wish)) {
      MOTLEY_LOG(info) << one.key << " was " << one.saved << " in the checkpoint and is " << one.now
                       << " from now on";
    }
  };
  StateOf const state{trainer_};
  auto const report = io::resume_checkpoint(
      folder_.path(), io::parse_resume(config_.checkpoint.resume), state.tensors(), accept);
  folder_.replace_file("run.toml", config_text_);
  if (!report) return 0;
  trainer_.adopt_state(progress_of(report->meta));
  data_.seek(report->meta.next_sample);
  saved_step_ = report->meta.step;
  for (auto const& later : io::set_aside_checkpoints_after(folder_, report->meta.step)) {
    MOTLEY_LOG(warning) << "checkpoint of a later step set aside as " << later.string()
                        << " (it is damaged, or this run went back); delete it if not wanted";
  }
  MOTLEY_LOG(info) << "resumed from " << report->folder.string() << " at step " << report->meta.step
                   << " (" << report->gb_per_s << " GB/s)";
  return report->meta.step;
}

io::CheckpointMeta Saver::meta() const {
  model::TrainProgress const progress = trainer_.progress();
  io::CheckpointMeta meta;
  meta.step = progress.step;
  meta.tokens = progress.tokens;
  meta.next_sample = data_.next_sample();
  meta.data_fingerprint = data_.fingerprint();
  meta.model_hash = model_hash(config_.model);
  meta.config = config_text_;
  meta.schedule = {{"updates", progress.updates},
                   {"skipped", progress.skipped},
                   {"skipped_in_row", progress.skipped_in_row}};
  meta.random = {{"seed", config_.run.seed}};
  return meta;
}

void Saver::save() {
  io::SaveOptions options;
  options.keep_last = config_.checkpoint.keep_last;
  options.keep_every = config_.checkpoint.keep_every;
  options.verify = config_.checkpoint.verify;
  StateOf const state{trainer_};
  io::SaveReport const report = io::save_checkpoint(folder_, meta(), state.tensors(), options);
  for (std::string const& warning : report.warnings) MOTLEY_LOG(warning) << warning;
  saved_step_ = trainer_.progress().step;
  retry_step_ = -1;
  MOTLEY_LOG(info) << "checkpoint of step " << saved_step_ << " is durable ("
                   << report.folder.string() << ", " << report.bytes << " bytes in "
                   << report.seconds << " s)";
}

void Saver::save_or_retry() {
  try {
    save();
  } catch (Error const& error) {
    if (error.kind() != ErrorKind::write) throw;
    retry_step_ = trainer_.progress().step + retry_after_steps;
    MOTLEY_LOG(warning) << error.what() << ". Training goes on; the next try is at step "
                        << retry_step_;
  }
}

void Saver::retry_if_due() {
  if (retry_step_ >= 0 && trainer_.progress().step >= retry_step_) save_or_retry();
}

void Saver::save_at_exit() {
  if (saved_step_ != trainer_.progress().step) save();
}

}  // namespace motley::app
