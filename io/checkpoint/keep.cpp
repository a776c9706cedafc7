#include "io/checkpoint/detail/keep.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <system_error>

#include "io/checkpoint/checkpoint.hpp"
#include "io/checkpoint/detail/opened.hpp"
#include "io/durable_file.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

namespace fs = std::filesystem;

constexpr char const* verified_mark = "verified";

/// Whether one of the kept checkpoints is known to be readable; reads the newest back if need be.
bool is_one_verified(std::span<detail::CheckpointFolder const> kept,
                     int threads,
                     SaveReport& report) {
  bool const is_marked = std::any_of(kept.begin(), kept.end(), [](auto const& checkpoint) {
    std::error_code error;
    return fs::exists(checkpoint.path / verified_mark, error);
  });
  if (is_marked) return true;
  auto const start = std::chrono::steady_clock::now();
  fs::path const& newest = kept.front().path;
  std::vector<std::string> const damage = verify_checkpoint(newest, threads);
  report.verify_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (damage.empty()) {
    std::ofstream const mark{newest / verified_mark};  // made empty
    return true;
  }
  report.warnings.push_back("checkpoint " + newest.string() + " was read back and is damaged (" +
                            detail::joined(damage) + "); no older checkpoint is deleted");
  return false;
}

}  // namespace

void detail::apply_keep_rules(RunFolder const& folder,
                              SaveOptions const& options,
                              SaveReport& report) {
  std::vector<CheckpointFolder> checkpoints = list_checkpoints(folder.checkpoints());
  auto const first_old = std::min(
      checkpoints.size(), static_cast<std::size_t>(std::max<std::int64_t>(options.keep_last, 1)));
  auto const first_deleted =
      std::stable_partition(checkpoints.begin() + static_cast<std::ptrdiff_t>(first_old),
                            checkpoints.end(),
                            [&](auto const& old) {
                              return options.keep_every > 0 && old.step % options.keep_every == 0;
                            });
  if (first_deleted == checkpoints.end()) return;
  std::span const kept{checkpoints.begin(), first_deleted};
  if (options.verify && !is_one_verified(kept, options.threads, report)) return;
  for (auto old = first_deleted; old != checkpoints.end(); ++old) {
    fs::path const trash = folder.temporary_name(old->path);
    std::error_code error;
    // Renamed while the folder is surely ours, so that a cut-off run deletes nothing of its
    // successor's.
    folder.while_owned([&] { fs::rename(old->path, trash, error); });
    if (!error) fs::remove_all(trash, error);
    if (error) {
      report.warnings.push_back("old checkpoint " + old->path.string() + " cannot be deleted (" +
                                error.message() + "); delete it by hand");
    }
  }
}

std::vector<fs::path> set_aside_checkpoints_after(RunFolder const& folder, std::int64_t step) {
  std::vector<fs::path> renamed;
  for (auto const& checkpoint : detail::list_checkpoints(folder.checkpoints())) {
    if (checkpoint.step <= step) break;
    fs::path name = checkpoint.path;
    name += ".abandoned_" + std::to_string(folder.lock().epoch);
    std::error_code error;
    folder.while_owned([&] { fs::rename(checkpoint.path, name, error); });
    if (error) throw_write_error(name, error.value());
    renamed.push_back(name);
  }
  if (!renamed.empty()) sync_folder(folder.checkpoints());
  return renamed;
}

}  // namespace motley::io
