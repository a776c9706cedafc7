#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "app/config/run_config.hpp"
#include "io/batch_reader.hpp"

namespace motley::app {

/// The data of a run: the windows of each step in their shuffled order, and the fixed windows that
/// validation uses.
class DataFeed final {
 public:
  /// Opens and checks the data sets of a run and starts reading ahead from its first step.
  ///
  /// Throws   Error{data} naming the file, e.g. if its token ids do not fit the model's vocabulary
  explicit DataFeed(RunConfig const& config);

  /// The micro-batches of the next step; valid until the next call.
  [[nodiscard]] io::Block next_step();
  /// Global position of the first window that `next_step` has not given out.
  [[nodiscard]] std::int64_t next_sample() const noexcept { return next_sample_; }
  /// Goes to a global position, e.g. that of a checkpoint.
  void seek(std::int64_t next_sample);
  /// Seconds that `next_step` has waited for the readers since the last call of this.
  [[nodiscard]] double take_wait_s() { return train_.take_wait_s(); }

  [[nodiscard]] bool has_validation() const noexcept { return valid_ != nullptr; }
  /// The micro-batches of a validation, the same every time; valid until the next call.
  [[nodiscard]] io::Block validation();

  /// What decides the data and its order: content, window, seed. Part of a checkpoint.
  [[nodiscard]] std::string fingerprint() const;
  /// Lines for the start-up report.
  [[nodiscard]] std::string description() const;

 private:
  std::int64_t global_batch_;
  std::int64_t validation_windows_ = 0;
  std::int64_t seed_;
  std::int64_t next_sample_ = 0;
  io::BatchReader train_;
  std::unique_ptr<io::BatchReader> valid_;
};

}  // namespace motley::app
