#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "io/durable_file.hpp"
#include "io/run_folder.hpp"

namespace motley::io::detail {

/// The file `lock`, opened and held under flock(2) until destruction. It is written in place and
/// never replaced, so that all who look at it lock the same file. To be held for moments only.
///
/// Throws   Error{usage} if it cannot be opened, or if another process does not let go of it
class LockFile {
 public:
  /// Opens it, and creates it where it is missing.
  explicit LockFile(std::filesystem::path const& file);

  /// False where the file system knows no flock.
  [[nodiscard]] bool is_exclusive() const noexcept { return is_exclusive_; }
  /// Empty if nobody wrote it yet, or if it is torn (its writer was killed and never owned it).
  [[nodiscard]] std::optional<LockRecord> read() const;
  /// Durable on return.
  void write(LockRecord const& record) const;
  void beat() const;
  /// Time of the last beat, on the clock of the file system, in ns.
  [[nodiscard]] std::int64_t last_beat_ns() const;

 private:
  std::filesystem::path path_;
  FileDescriptor file_;  // closing it ends the flock
  bool is_exclusive_ = true;
};

[[nodiscard]] std::optional<LockRecord> parse_lock(std::string_view text);

/// A record that names this process, with a fresh token and no epoch.
[[nodiscard]] LockRecord own_record();

/// Whether an owner is known to be gone, however fresh its heartbeat: its process no longer exists
/// here, Slurm no longer runs its job, or it belongs to an earlier start of our own job.
[[nodiscard]] bool is_surely_gone(LockRecord const& owner, LockRecord const& self);

/// Now, on the clock of the file system of `folder`, in ns: what heartbeats are compared with.
[[nodiscard]] std::int64_t file_system_now_ns(std::filesystem::path const& folder);

}  // namespace motley::io::detail
