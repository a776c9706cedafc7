#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "io/durable_file.hpp"
#include "io/run_folder.hpp"

namespace motley::io {

/// Speed of the devices of one kind during a step.
struct DeviceTypeMetrics {
  std::optional<double> stage_ms;
  std::optional<double> mfu;             ///< fraction of the peak, 0 to 1
  std::optional<std::int64_t> mem_peak;  ///< bytes
};

/// One row of metrics.jsonl. The keys are stable and always there: what is unknown is null, and so
/// is a number that is not finite, which JSON cannot say.
struct MetricsRow {
  std::int64_t step = 0;
  std::int64_t tokens = 0;   ///< since the first step, over all runs
  std::int64_t samples = 0;  ///< since the first step, over all runs
  std::optional<double> loss;
  std::optional<double> val_loss;
  std::optional<double> lr;
  std::optional<double> grad_norm;
  std::optional<double> tokens_per_s;
  std::optional<double> step_ms;
  std::optional<double> mfu;                  ///< fraction of the peak, 0 to 1
  std::optional<std::int64_t> mem_peak;       ///< bytes of device memory
  std::optional<std::int64_t> host_mem_peak;  ///< bytes
  std::optional<std::int64_t> skipped;        ///< updates left out since the first step
  std::optional<std::int64_t> nan;            ///< steps with a non-finite loss or norm
  std::optional<double> imbalance;            ///< time of the slowest pipeline over the mean
  std::optional<double> exposed_comm_ms;
  std::optional<double> bubble_pct;
  std::optional<double> data_wait_ms;
  std::map<std::string, DeviceTypeMetrics> per_type;
};

/// Writer of the metrics.jsonl of a run: one object a line, in order of steps, each line in the
/// file when `write` returns. A full disk is warned about once and never ends the run.
class MetricsLog final {
 public:
  /// Opens the log of a run that goes on after `step` (0: a fresh run). Rows beyond that step and a
  /// half-written last line, both left by a killed run, are cut off. Where there was a log,
  /// `{"event":"resume","step":…,"time":…}` follows. `folder` outlives this.
  ///
  /// Cost     reads the file from its end, as far back as rows are cut
  /// Throws   Error{write} if the file cannot be opened or cut
  MetricsLog(RunFolder const& folder, std::int64_t step);

  /// Throws   Error{usage} if another process owns the run folder by now
  void write(MetricsRow const& row);

  /// A row that is not a step: {"event": name, "step": …, "time": …, "text": text}.
  ///
  /// Throws   Error{usage} if another process owns the run folder by now
  void write_event(std::string const& name, std::int64_t step, std::string const& text = {});

 private:
  void append(std::string const& line);

  RunFolder const* folder_;
  std::filesystem::path path_;
  FileDescriptor file_;
  bool is_failing_ = false;
};

}  // namespace motley::io
