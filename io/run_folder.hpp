#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace motley::io {

/// Who owns a run folder: what its file `lock` says (JSON). The modification time of the file is
/// the owner's heartbeat: one clock, that of the file system, judges the owners of all hosts.
struct LockRecord {
  std::string host;
  std::int64_t pid = 0;
  std::string process_start;  ///< start time of the process, so that a reused pid is not mistaken
  std::string process_space;  ///< boot and pid namespace: where `pid` means something
  std::string job;            ///< SLURM_JOB_ID, empty outside Slurm
  std::int64_t job_restart = 0;  ///< SLURM_RESTART_COUNT
  std::uint64_t epoch = 0;       ///< grows by one with each owner
  std::string token;             ///< random; two owners never have the same
  bool is_released = false;      ///< the owner ended in order
};

/// How a run ended: `last_exit.json`.
struct LastExit {
  int code = 0;
  std::string reason;
  std::int64_t step = 0;
  std::string time;  ///< UTC, ISO 8601; filled in by `write_last_exit`
};

struct RunFolderOptions {
  std::chrono::milliseconds heartbeat_interval{10'000};
  std::chrono::milliseconds stale_after{
      120'000};  ///< an owner silent for longer has lost the folder
};

/// The folder of one run, owned by this process from construction to destruction. Rank 0 alone
/// makes one; other ranks compare `read_lock(...)->token` with rank 0's to see that they look at
/// the same folder.
///
/// At most one process owns a folder: every look at the lock that leads to a write, and every
/// rename of the owner, happens under flock(2) of the file `lock`. An owner that was stopped and
/// replaced finds another token there and gets Error{usage}. Where a file system has no flock, a
/// successor still makes its predecessor's renames fail, since it removes their sources at its
/// start.
///
/// The heartbeat is a thread of its own, so that no long save or step starves it.
///
///   run.toml  metrics.jsonl  motley.log  last_exit.json  lock  checkpoints/
class RunFolder final {
 public:
  /// Makes the folder where it is missing, takes its lock, removes what a killed owner left half
  /// written (`*.tmp`).
  ///
  /// Throws   Error{usage} naming the owner if a live run holds it, or if the folder cannot be
  /// made;
  ///          Error{write} if the disk is full
  explicit RunFolder(std::filesystem::path folder, RunFolderOptions options = {});
  RunFolder(RunFolder const&) = delete;
  RunFolder& operator=(RunFolder const&) = delete;
  RunFolder(RunFolder&&) = delete;
  RunFolder& operator=(RunFolder&&) = delete;
  /// Stops the heartbeat and marks the lock as released, so that the next run need not wait.
  ~RunFolder();

  [[nodiscard]] std::filesystem::path const& path() const noexcept;
  [[nodiscard]] std::filesystem::path checkpoints() const;  ///< exists
  [[nodiscard]] std::filesystem::path metrics_file() const;
  [[nodiscard]] std::filesystem::path log_file() const;
  [[nodiscard]] LockRecord const& lock() const noexcept;

  /// Throws   Error{usage} if another process owns the folder by now (this one must end)
  void expect_owned() const;

  /// Name of a file or folder that is being written: "<final_name>.epoch_<n>.tmp". No two owners
  /// share one, and a start removes those of its predecessors.
  [[nodiscard]] std::filesystem::path temporary_name(std::filesystem::path const& final_name) const;

  /// Runs `renames` while this process surely owns the folder.
  ///
  /// Throws   Error{usage} if it does not; what `renames` throws
  void while_owned(std::function<void()> const& renames) const;

  /// Creates or replaces a small file of the folder (such as run.toml, plan.toml), durably and
  /// whole: readers see the old or the new content.
  ///
  /// Throws   Error{write}, the old file stays; Error{usage} if the folder is lost
  void replace_file(std::filesystem::path const& name, std::string_view content) const;

  /// replace_file of `last_exit.json`; `time` is filled in.
  void write_last_exit(LastExit const& exit) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// What the lock of a folder says; empty if there is no lock or it is not readable as one.
[[nodiscard]] std::optional<LockRecord> read_lock(std::filesystem::path const& run_folder);

/// How the previous run ended; empty if there is no (readable) last_exit.json.
[[nodiscard]] std::optional<LastExit> read_last_exit(std::filesystem::path const& run_folder);

/// Whether a run left something to lose here: checkpoints, damaged ones too, or metrics.
[[nodiscard]] bool holds_run(std::filesystem::path const& run_folder);

}  // namespace motley::io
