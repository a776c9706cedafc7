#include "io/run_folder.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "io/detail/lock_file.hpp"
#include "io/durable_file.hpp"
#include "io/json.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::io {
namespace {

namespace fs = std::filesystem;

void make_folder(fs::path const& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error == std::errc::no_space_on_device) throw_write_error(folder, error.value());
  MOTLEY_VALIDATE(usage,
                  !error && fs::is_directory(folder),
                  "run folder " << folder << " cannot be made (" << error.message()
                                << "); choose a run.dir that you may write");
}

/// Names that `RunFolder::temporary_name` makes, of any owner.
bool is_temporary(std::string const& name) {
  constexpr std::string_view suffix = ".tmp";
  constexpr std::string_view mark = ".epoch_";
  std::size_t const position = name.rfind(mark);
  if (!name.ends_with(suffix) || position == std::string::npos) return false;
  std::size_t const first = position + mark.size();
  std::string const digits = name.substr(first, name.size() - suffix.size() - first);
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
}

std::string owner_text(LockRecord const& owner, double silent_s) {
  std::ostringstream text;
  text << "process " << owner.pid << " on host " << owner.host;
  if (!owner.job.empty()) text << ", job " << owner.job;
  text << ", heartbeat " << silent_s << " s ago";
  return text.str();
}

}  // namespace

class RunFolder::Impl {
 public:
  Impl(fs::path folder, RunFolderOptions options) : path_{std::move(folder)}, options_{options} {
    make_folder(path_);
    lock_ = detail::own_record();
    while (!try_acquire()) {
    }
    try {
      make_folder(path_ / "checkpoints");
      remove_leftovers();
      heartbeat_ = std::jthread{[this](std::stop_token const& stop) { beat_until(stop); }};
    } catch (...) {
      release();
      throw;
    }
  }
  Impl(Impl const&) = delete;
  Impl& operator=(Impl const&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() {
    heartbeat_ = {};
    release();
  }

  [[nodiscard]] fs::path const& path() const noexcept { return path_; }
  [[nodiscard]] LockRecord const& lock() const noexcept { return lock_; }

  void while_owned(std::function<void()> const& action) const {
    detail::LockFile const file{lock_path()};
    auto const other = find_other_owner(file);
    MOTLEY_VALIDATE(usage,
                    !other,
                    "run folder " << path_ << " was taken over by process " << other->pid
                                  << " on host " << other->host
                                  << " (this process gave no sign of life for too long); this run "
                                     "ends here and leaves the folder to its successor");
    action();
  }

  [[nodiscard]] fs::path temporary_name(fs::path const& final_name) const {
    fs::path name = final_name;
    name += ".epoch_" + std::to_string(lock_.epoch) + ".tmp";
    return name;
  }

 private:
  [[nodiscard]] fs::path lock_path() const { return path_ / "lock"; }

  /// One try to become the owner; false if another process moved meanwhile.
  ///
  /// Throws   Error{usage} if a live run owns the folder
  bool try_acquire() {
    std::optional<LockRecord> owner;
    std::int64_t beat = 0;
    {
      detail::LockFile const file{lock_path()};
      if (!file.is_exclusive()) {
        MOTLEY_LOG(warning) << "the file system of " << path_
                            << " has no flock: two runs started in the same moment on it are not "
                               "told apart; start one at a time";
      }
      owner = file.read();
      beat = file.last_beat_ns();
      if (!owner || owner->is_released) {
        return take(file, owner);
      }
    }
    // Whether the owner lives may take seconds to find out (Slurm): not while all others wait.
    expect_gone(*owner, beat);
    detail::LockFile const file{lock_path()};
    auto const now = file.read();
    if (!now || now->token != owner->token || file.last_beat_ns() != beat) return false;
    MOTLEY_LOG(warning) << "run folder " << path_ << " is taken over from " << owner->host
                        << " process " << owner->pid << ", which ended without releasing it";
    return take(file, owner);
  }

  /// Makes this process the owner; false if another one did the same where there is no flock.
  bool take(detail::LockFile const& file, std::optional<LockRecord> const& previous) {
    lock_.epoch = previous ? previous->epoch + 1 : 1;
    file.write(lock_);
    if (file.is_exclusive()) return true;
    std::this_thread::sleep_for(std::chrono::seconds{1});  // the last of several writers wins
    return !find_other_owner(file);
  }

  void expect_gone(LockRecord const& owner, std::int64_t beat_ns) const {
    if (detail::is_surely_gone(owner, lock_)) return;
    std::int64_t const silent_ns = detail::file_system_now_ns(path_) - beat_ns;
    if (std::chrono::nanoseconds{silent_ns} > options_.stale_after) return;
    MOTLEY_FAIL(usage,
                "run folder " << path_ << " belongs to a live run ("
                              << owner_text(owner, 1e-9 * static_cast<double>(silent_ns))
                              << "); end that run, or choose another run.dir");
  }

  /// Whoever else owns the folder now; empty if it is this process.
  [[nodiscard]] std::optional<LockRecord> find_other_owner(detail::LockFile const& file) const {
    auto owner = file.read();
    if (!owner) {  // somebody deleted the file: say again who we are
      file.write(lock_);
      return std::nullopt;
    }
    if (owner->token == lock_.token) return std::nullopt;
    return owner;
  }

  /// Temporary files of earlier owners go. They are renamed first: an owner that wakes up in the
  /// middle finds its source gone as a whole and never publishes half of it.
  void remove_leftovers() const {
    std::vector<fs::path> leftovers;
    for (fs::path const& folder : {path_, path_ / "checkpoints"}) {
      for (auto const& entry : fs::directory_iterator{folder}) {
        if (is_temporary(entry.path().filename())) leftovers.push_back(entry.path());
      }
    }
    for (std::size_t i = 0; i < leftovers.size(); ++i) {
      fs::path const trash = temporary_name(path_ / ("trash_" + std::to_string(i)));
      std::error_code error;
      fs::rename(leftovers[i], trash, error);
      if (error == std::errc::no_such_file_or_directory) continue;
      if (!error) fs::remove_all(trash, error);
      if (error) {
        MOTLEY_LOG(warning) << "leftover " << leftovers[i] << " of an earlier run stays ("
                            << error.message() << "); remove it by hand";
      }
    }
  }

  /// Body of the heartbeat thread. It ends when the folder is lost; the owner learns that at its
  /// next rename.
  void beat_until(std::stop_token const& stop) const {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock guard{mutex};
    for (;;) {
      wake.wait_for(guard, stop, options_.heartbeat_interval, [] { return false; });
      if (stop.stop_requested()) return;
      try {
        detail::LockFile const file{lock_path()};
        if (find_other_owner(file)) return;
        file.beat();
      } catch (Error const& error) {
        MOTLEY_LOG_LOCAL(warning) << "no heartbeat: " << error.what();
      }
    }
  }

  void release() noexcept {
    try {
      detail::LockFile const file{lock_path()};
      if (find_other_owner(file)) return;
      LockRecord released = lock_;
      released.is_released = true;
      file.write(released);
    } catch (std::exception const& error) {
      MOTLEY_LOG_LOCAL(warning) << "the run folder is not released: " << error.what();
    }
  }

  fs::path path_;
  RunFolderOptions options_;
  LockRecord lock_;
  std::jthread heartbeat_;
};

RunFolder::RunFolder(fs::path folder, RunFolderOptions options)
    : impl_{std::make_unique<Impl>(std::move(folder), options)} {}

RunFolder::~RunFolder() = default;

fs::path const& RunFolder::path() const noexcept { return impl_->path(); }
fs::path RunFolder::checkpoints() const { return path() / "checkpoints"; }
fs::path RunFolder::metrics_file() const { return path() / "metrics.jsonl"; }
fs::path RunFolder::log_file() const { return path() / "motley.log"; }
LockRecord const& RunFolder::lock() const noexcept { return impl_->lock(); }

void RunFolder::expect_owned() const {
  impl_->while_owned([] {});
}

fs::path RunFolder::temporary_name(fs::path const& final_name) const {
  return impl_->temporary_name(final_name);
}

void RunFolder::while_owned(std::function<void()> const& renames) const {
  impl_->while_owned(renames);
}

void RunFolder::replace_file(fs::path const& name, std::string_view content) const {
  fs::path const file = path() / name;
  fs::path const temporary = temporary_name(file);
  std::error_code error;
  try {
    write_synced_file(temporary, content);
    // The new content is complete before ownership is checked, and a successor removes it before
    // it starts: so whatever stops this process in between, it cannot overwrite its successor.
    while_owned([&] { fs::rename(temporary, file, error); });
    if (error) throw_write_error(file, error.value());
  } catch (...) {
    fs::remove(temporary, error);
    throw;
  }
  sync_folder(file.parent_path());
}

void RunFolder::write_last_exit(LastExit const& exit) const {
  Json json;
  json["code"] = exit.code;
  json["reason"] = exit.reason;
  json["step"] = exit.step;
  json["time"] = utc_time_now();
  replace_file("last_exit.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<LockRecord> read_lock(fs::path const& run_folder) {
  std::error_code error;
  if (!fs::exists(run_folder / "lock", error)) return std::nullopt;
  return detail::parse_lock(read_whole_file(run_folder / "lock"));
}

std::optional<LastExit> read_last_exit(fs::path const& run_folder) {
  fs::path const file = run_folder / "last_exit.json";
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  try {
    Json const json = Json::parse(read_whole_file(file));
    LastExit exit;
    json.at("code").get_to(exit.code);
    json.at("reason").get_to(exit.reason);
    json.at("step").get_to(exit.step);
    json.at("time").get_to(exit.time);
    return exit;
  } catch (JsonError const&) {
    return std::nullopt;
  }
}

bool holds_run(fs::path const& run_folder) {
  std::error_code error;
  auto const metrics_bytes = fs::file_size(run_folder / "metrics.jsonl", error);
  if (!error && metrics_bytes > 0) return true;
  for (fs::directory_iterator entry{run_folder / "checkpoints", error};
       !error && entry != fs::directory_iterator{};
       entry.increment(error)) {
    std::string const name = entry->path().filename();
    if (name.starts_with("step_") && !is_temporary(name)) return true;
  }
  return false;
}

}  // namespace motley::io
