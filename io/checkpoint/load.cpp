#include <chrono>
#include <system_error>

#include "io/checkpoint/checkpoint.hpp"
#include "io/checkpoint/detail/opened.hpp"
#include "io/checkpoint/detail/pieces.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::io {
namespace {

namespace fs = std::filesystem;

void expect_same_tensors(fs::path const& folder,
                         std::span<TensorRecord const> records,
                         StateTensors const& tensors) {
  std::vector<std::string> const differences = detail::differences(records, tensors);
  MOTLEY_VALIDATE(checkpoint,
                  differences.empty(),
                  "checkpoint " << folder << " is of another model (" << detail::joined(differences)
                                << "); set the [model] of its run, or choose another checkpoint");
}

/// Loads one checkpoint; empty if it is damaged, and `damage` says how.
///
/// Throws   Error{checkpoint} if it is of another model; what `accept` throws
std::optional<LoadReport> try_load(fs::path const& folder,
                                   StateTensors const& tensors,
                                   AcceptCheckpoint const& accept,
                                   int threads,
                                   std::vector<std::string>& damage) {
  auto const start = std::chrono::steady_clock::now();
  auto opened = detail::open_checkpoint(folder, damage);
  if (!opened || !damage.empty()) return std::nullopt;
  detail::Manifest& manifest = opened->manifest;
  if (accept) accept(manifest.meta);
  expect_same_tensors(folder, manifest.tensors, tensors);
  auto const pieces = detail::pieces_of(manifest.tensors, tensors);
  damage = detail::read_pieces(opened->state.get(), manifest.tensors, pieces, threads);
  if (!damage.empty()) return std::nullopt;

  LoadReport report;
  report.folder = folder;
  for (detail::Piece const& piece : pieces) {
    report.bytes += static_cast<std::int64_t>(bytes_of(manifest.tensors[piece.record], piece));
  }
  report.meta = std::move(manifest.meta);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.gb_per_s = 1e-9 * static_cast<double>(report.bytes) / report.seconds;
  return report;
}

[[noreturn]] void throw_damaged(fs::path const& folder, std::vector<std::string> const& damage) {
  MOTLEY_FAIL(checkpoint,
              "checkpoint " << folder << " is damaged (" << detail::joined(damage)
                            << "); choose another one, or checkpoint.resume=auto for the newest "
                               "intact one");
}

std::optional<LoadReport> load_newest(fs::path const& run_folder,
                                      StateTensors const& tensors,
                                      AcceptCheckpoint const& accept,
                                      int threads) {
  auto const checkpoints = detail::list_checkpoints(run_folder / "checkpoints");
  std::vector<std::string> all_damage;
  for (auto const& checkpoint : checkpoints) {
    std::vector<std::string> damage;
    auto report = try_load(checkpoint.path, tensors, accept, threads, damage);
    if (report) return report;
    MOTLEY_LOG(warning) << "checkpoint " << checkpoint.path << " is damaged and skipped ("
                        << detail::joined(damage) << ")";
    all_damage.push_back(checkpoint.path.filename().string() + ": " + detail::joined(damage));
  }
  MOTLEY_VALIDATE(checkpoint,
                  checkpoints.empty(),
                  "no checkpoint of " << run_folder << " is intact (" << detail::joined(all_damage)
                                      << "); restore one, or move the folder checkpoints away to "
                                         "train from the start");
  MOTLEY_LOG(warning) << "FRESH START: there is no checkpoint in " << run_folder
                      << ", training begins at step 0";
  return std::nullopt;
}

}  // namespace

Resume parse_resume(std::string_view value) {
  if (value == "never") return {Resume::Mode::never, {}};
  if (value == "auto") return {Resume::Mode::newest, {}};
  MOTLEY_VALIDATE(
      usage,
      !value.empty(),
      "checkpoint.resume is empty (it says where to go on); set never, auto or the path "
      "of a checkpoint");
  return {Resume::Mode::path, fs::path{value}};
}

std::optional<LoadReport> resume_checkpoint(fs::path const& run_folder,
                                            Resume const& resume,
                                            StateTensors const& tensors,
                                            AcceptCheckpoint const& accept,
                                            int threads) {
  switch (resume.mode) {
    case Resume::Mode::never:
      MOTLEY_VALIDATE(usage,
                      !holds_run(run_folder),
                      "run folder "
                          << run_folder
                          << " holds a run (checkpoint.resume=never would overwrite it); "
                             "choose another run.dir, or checkpoint.resume=auto to go on");
      return std::nullopt;
    case Resume::Mode::newest:
      return load_newest(run_folder, tensors, accept, threads);
    case Resume::Mode::path:
      break;
  }
  return load_checkpoint(resume.path, tensors, accept, threads);
}

CheckpointMeta read_checkpoint_meta(fs::path const& path) {
  fs::path const folder = detail::resolve_checkpoint(path);
  std::vector<std::string> damage;
  auto opened = detail::open_checkpoint(folder, damage);
  if (!opened || !damage.empty()) throw_damaged(folder, damage);
  return std::move(opened->manifest.meta);
}

LoadReport load_checkpoint(fs::path const& path,
                           StateTensors const& tensors,
                           AcceptCheckpoint const& accept,
                           int threads) {
  fs::path const folder = detail::resolve_checkpoint(path);
  std::vector<std::string> damage;
  auto report = try_load(folder, tensors, accept, threads, damage);
  if (!report) throw_damaged(folder, damage);
  return std::move(*report);
}

}  // namespace motley::io
