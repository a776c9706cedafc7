#pragma once

#include <cstdint>
#include <string>

#include "app/config/run_config.hpp"
#include "app/train/data_feed.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/run_folder.hpp"
#include "model/train/trainer.hpp"

namespace motley::app {

/// Saves and restores everything that decides how a run goes on. All references outlive it.
class Saver final {
 public:
  Saver(RunConfig const& config,
        io::RunFolder const& folder,
        DataFeed& data,
        model::Trainer& trainer);

  /// Brings data and trainer to where checkpoint.resume says; returns the step, 0 for a fresh
  /// start. Writes run.toml.
  ///
  /// Throws   Error as io::resume_checkpoint and check_resume
  std::int64_t resume();

  /// Saves; if that is impossible (full disk) says so, lets training go on and tries again later.
  void save_or_retry();
  /// Tries again what `save_or_retry` could not do, some steps later.
  void retry_if_due();
  /// Saves unless this step is saved already. Throws Error{write} if it cannot.
  void save_at_exit();

 private:
  void save();
  [[nodiscard]] io::CheckpointMeta meta() const;

  RunConfig const& config_;
  io::RunFolder const& folder_;
  DataFeed& data_;
  model::Trainer& trainer_;
  std::string config_text_;
  std::int64_t saved_step_ = -1;
  std::int64_t retry_step_ = -1;  // -1: nothing to retry
};

}  // namespace motley::app
