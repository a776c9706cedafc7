#include "app/train/session.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

#include "app/config/load.hpp"
#include "app/log_sink.hpp"
#include "app/signals.hpp"
#include "app/step_line.hpp"
#include "app/train/data_feed.hpp"
#include "app/train/report.hpp"
#include "app/train/resume_rules.hpp"
#include "app/train/saver.hpp"
#include "io/metrics_log.hpp"
#include "io/run_folder.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"
#include "model/plan/cost.hpp"
#include "model/train/host_memory.hpp"
#include "model/train/trainer.hpp"

namespace motley::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Sums over the steps since the last log line.
struct Interval {
  std::int64_t steps = 0;
  double step_s = 0;
  double data_wait_s = 0;
};

/// A run on one rank, from its start to its end.
class Session final {
 public:
  Session(RunConfig const& config, io::RunFolder const& folder);

  /// Trains to the target or a stop; returns the exit code.
  int run();
  [[nodiscard]] std::int64_t step() const { return trainer_->progress().step; }
  [[nodiscard]] std::string const& reason() const noexcept { return reason_; }

 private:
  void train_step();
  [[nodiscard]] std::optional<double> validate();
  void log_step(std::optional<double> val_loss);
  [[nodiscard]] bool is_due(std::int64_t interval) const;
  [[nodiscard]] std::int64_t target() const;
  [[nodiscard]] int finish();

  RunConfig const& config_;
  DataFeed data_;
  std::unique_ptr<model::Trainer> trainer_;
  Saver saver_;
  std::int64_t first_step_;  // from the checkpoint
  io::MetricsLog metrics_;
  SignalCatcher signals_;
  double peak_flop_per_s_;
  model::StepResult last_;
  Interval interval_;
  std::string reason_;
};

Session::Session(RunConfig const& config, io::RunFolder const& folder)
    : config_{config},
      data_{config},
      trainer_{model::make_trainer(config.trainer(), comm::Group{})},
      saver_{config, folder, data_, *trainer_},
      first_step_{saver_.resume()},
      metrics_{folder, first_step_},
      peak_flop_per_s_{trainer_->measured_peak_flop_per_s()} {
  MOTLEY_LOG(info) << "products " << trainer_->products() << ", measured peak "
                   << static_cast<std::int64_t>(peak_flop_per_s_ / 1e9) << " GFLOP/s";
  MOTLEY_LOG(info) << data_.description();
  MOTLEY_LOG(info) << memory_report(trainer_->memory());
}

std::int64_t Session::target() const {
  bool const stops_early = config_.train.exit_at_step > 0;
  return stops_early ? config_.train.exit_at_step : config_.train.train_iters;
}

bool Session::is_due(std::int64_t interval) const {
  return interval > 0 && trainer_->progress().step % interval == 0;
}

void Session::train_step() {
  auto const start = Clock::now();
  io::Block const block = data_.next_step();
  last_ = trainer_->train_step(block.batches, block.valid_tokens);
  ++interval_.steps;
  interval_.step_s += seconds_since(start);
  interval_.data_wait_s += data_.take_wait_s();
  if (!last_.is_skipped) return;
  MOTLEY_LOG(warning) << "step " << last_.step << " was skipped: " << last_.non_finite;
  metrics_.write_event("skip", last_.step, last_.non_finite);
}

std::optional<double> Session::validate() {
  if (!data_.has_validation()) return std::nullopt;
  io::Block const block = data_.validation();
  double sum = 0;
  for (Batch const& batch : block.batches) sum += trainer_->loss_sum(batch);
  return sum / static_cast<double>(std::max<std::int64_t>(block.valid_tokens, 1));
}

void Session::log_step(std::optional<double> val_loss) {
  model::TrainProgress const progress = trainer_->progress();
  auto const steps = static_cast<double>(std::max<std::int64_t>(interval_.steps, 1));
  double const step_s = interval_.step_s / steps;
  auto const windows = static_cast<double>(config_.train.global_batch_size);
  auto const tokens = static_cast<double>(config_.model.seq_length);
  double const flop =
      model::step_flop(config_.model, config_.train.global_batch_size, config_.model.seq_length);

  StepLine line;
  line.step = progress.step;
  line.train_iters = config_.train.train_iters;
  line.loss = last_.loss;
  line.val_loss = val_loss;
  line.grad_norm = last_.grad_norm;
  line.lr = last_.learning_rate;
  line.step_ms = 1000 * step_s;
  line.tokens_per_s = windows * tokens / step_s;
  line.mfu = flop / (step_s * peak_flop_per_s_);
  line.mem_bytes = static_cast<double>(model::peak_resident_memory_bytes());
  line.mem_limit_bytes = line.mem_bytes + static_cast<double>(model::available_memory_bytes());
  line.data_wait_ms = 1000 * interval_.data_wait_s / steps;
  line.skipped = progress.skipped;
  line.tokens = progress.tokens;
  MOTLEY_LOG(info) << format_step_line(line);

  io::MetricsRow row;
  row.step = progress.step;
  row.tokens = progress.tokens;
  row.samples = data_.next_sample();
  row.loss = last_.loss;
  row.val_loss = val_loss;
  row.lr = last_.learning_rate;
  row.grad_norm = last_.grad_norm;
  row.tokens_per_s = line.tokens_per_s;
  row.step_ms = line.step_ms;
  row.mfu = line.mfu;
  row.host_mem_peak = static_cast<std::int64_t>(line.mem_bytes);
  row.skipped = progress.skipped;
  row.nan = progress.skipped;
  row.data_wait_ms = line.data_wait_ms;
  metrics_.write(row);
  interval_ = {};
}

int Session::run() {
  while (trainer_->progress().step < target()) {
    train_step();
    bool const is_last = trainer_->progress().step >= target();
    SignalRequest const request = signals_.take();
    bool const stops = request == SignalRequest::stop;
    std::optional<double> val_loss;
    if (is_due(config_.eval.interval) || (is_last && !stops)) val_loss = validate();
    if (is_due(config_.log.interval) || val_loss || is_last || stops) log_step(val_loss);
    if (is_last) break;
    if (stops) {
      reason_ = std::string{"signal "} + SignalCatcher::stop_signal_name();
      return finish();
    }
    if (request == SignalRequest::checkpoint || is_due(config_.checkpoint.interval)) {
      saver_.save_or_retry();
    } else {
      saver_.retry_if_due();
    }
  }
  return finish();
}

int Session::finish() {
  saver_.save_at_exit();
  MOTLEY_LOG(info) << memory_report(trainer_->memory());
  bool const is_done = trainer_->progress().step >= config_.train.train_iters;
  if (reason_.empty()) reason_ = is_done ? "target step reached" : "train.exit_at_step reached";
  MOTLEY_LOG(info) << "stopped at step " << step() << " of " << config_.train.train_iters << " ("
                   << reason_ << "), exit code " << (is_done ? 0 : exit_code_resume);
  return is_done ? 0 : exit_code_resume;
}

/// Runs a session and leaves the way it ended in last_exit.json.
int run_recorded(RunConfig const& config, io::RunFolder const& folder) {
  std::int64_t step = 0;
  try {
    Session session{config, folder};
    step = session.step();
    int code = 0;
    try {
      code = session.run();
    } catch (std::exception const&) {
      step = session.step();
      throw;
    }
    folder.write_last_exit({code, session.reason(), session.step(), ""});
    return code;
  } catch (std::exception const& error) {
    try {
      folder.write_last_exit({exit_code(error), error.what(), step, ""});
    } catch (std::exception const& second) {
      MOTLEY_LOG(warning) << "last_exit.json could not be written: " << second.what();
    }
    throw;
  }
}

void expect_one_rank(Ranks const& ranks) {
  MOTLEY_VALIDATE(usage,
                  ranks.size == 1,
                  "the job has " << ranks.size
                                 << " ranks (this version trains on one); start one rank "
                                 << "and give it all cores with run.threads");
}

}  // namespace

int train(RunConfig const& config, Ranks const& ranks) {
  expect_one_rank(ranks);
  MOTLEY_LOG(info) << start_report(config, ranks);
  if (io::parse_resume(config.checkpoint.resume).mode == io::Resume::Mode::never) {
    MOTLEY_VALIDATE(usage,
                    !io::holds_run(config.run.dir),
                    "run.dir \"" << config.run.dir
                                 << "\" holds a run (checkpoint.resume=never would "
                                 << "mix two); choose another run.dir or checkpoint.resume=auto");
  }
  io::RunFolder const folder{config.run.dir};
  install_log(
      {make_log_sink(folder.log_file()), log_level_from_environment(), ranks.rank, ranks.host});
  return run_recorded(config, folder);
}

int describe_training(RunConfig const& config, Ranks const& ranks) {
  expect_one_rank(ranks);
  MOTLEY_LOG(info) << to_toml(config);
  MOTLEY_LOG(info) << start_report(config, ranks);
  MOTLEY_LOG(info) << model::predict_memory(config.trainer()).to_string();
  return 0;
}

}  // namespace motley::app
