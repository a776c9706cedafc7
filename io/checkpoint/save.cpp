#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/statvfs.h>

#include "io/checkpoint/checkpoint.hpp"
#include "io/checkpoint/detail/keep.hpp"
#include "io/checkpoint/detail/manifest.hpp"
#include "io/checkpoint/detail/opened.hpp"
#include "io/checkpoint/detail/pieces.hpp"
#include "io/checkpoint/detail/state_layout.hpp"
#include "io/durable_file.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

namespace fs = std::filesystem;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void expect_finite(Attributes const& attributes) {
  for (auto const& [name, value] : attributes) {
    auto const* const number = std::get_if<double>(&value);
    MOTLEY_VALIDATE(bug,
                    number == nullptr || std::isfinite(*number),
                    "\"" << name
                         << "\" of a checkpoint is not finite (JSON cannot say it); this is "
                         << "a bug of motley, please report it");
  }
}

void expect_free_space(fs::path const& folder, std::int64_t bytes) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) throw_write_error(folder, errno);
  auto const free_bytes = static_cast<std::int64_t>(status.f_bavail * status.f_frsize);
  MOTLEY_VALIDATE(write,
                  bytes <= free_bytes,
                  "the checkpoint does not fit into "
                      << folder << " (it takes " << 1e-9 * static_cast<double>(bytes) << " GB, "
                      << 1e-9 * static_cast<double>(free_bytes)
                      << " GB are free); free space there, or lower checkpoint.keep_last");
}

/// Takes all space of the file at once, where the file system can: a full disk or quota shows
/// before anything is written, and the file lies in one piece.
void reserve(int descriptor, std::int64_t bytes, fs::path const& file) {
  while (::fallocate(descriptor, 0, 0, bytes) != 0) {
    if (errno == EOPNOTSUPP || errno == ENOSYS) return;
    if (errno != EINTR) throw_write_error(file, errno);
  }
}

/// Takes the space for state.h5 before HDF5 makes it, and gives it back.
void expect_reservable(fs::path const& file, std::int64_t bytes) {
  expect_free_space(file.parent_path(), bytes);
  reserve(create_file(file).get(), bytes, file);
}

/// Writes the tensors into a state.h5 that is laid out, and fills in their checksums, which are
/// taken from the memory that is written.
void write_tensors(int descriptor,
                   fs::path const& file,
                   std::span<detail::Piece const> pieces,
                   std::vector<TensorRecord>& records,
                   int threads) {
  std::vector<Checksum> sums(pieces.size());
  detail::run_parallel(static_cast<std::int64_t>(pieces.size()), threads, [&](std::int64_t i) {
    auto const index = static_cast<std::size_t>(i);
    detail::Piece const& piece = pieces[index];
    TensorRecord const& record = records[piece.record];
    sums[index] = checksum_part(record.dtype, piece.data, piece.first, piece.count);
    write_at(descriptor,
             {piece.data, detail::bytes_of(record, piece)},
             detail::file_offset(record, piece),
             file);
  });
  for (std::size_t i = 0; i < pieces.size(); ++i) records[pieces[i].record].checksum += sums[i];
}

/// Writes both files into the temporary folder, durably.
///
/// Returns  bytes of state.h5
std::int64_t write_files(fs::path const& folder,
                         CheckpointMeta const& meta,
                         StateTensors const& tensors,
                         int threads) {
  detail::Manifest manifest;
  manifest.meta = meta;
  manifest.tensors = detail::records_of(tensors);
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) throw_write_error(folder, error.value());

  fs::path const file = folder / detail::state_file;
  expect_reservable(file, detail::most_bytes(manifest.tensors));
  detail::create_state_file(file, meta, manifest.tensors);
  FileDescriptor const state{::open(file.c_str(), O_RDWR | O_CLOEXEC)};
  if (!state) throw_write_error(file, errno);
  manifest.file_bytes = static_cast<std::int64_t>(fs::file_size(file));
  reserve(state.get(), manifest.file_bytes, file);
  auto const pieces = detail::pieces_of(manifest.tensors, tensors);
  write_tensors(state.get(), file, pieces, manifest.tensors, threads);
  sync_file(state.get(), file);
  auto const hash = detail::hash_outside(state.get(), manifest.tensors, manifest.file_bytes);
  if (!hash) throw_write_error(file, EIO);
  manifest.outside_sha256 = *hash;

  write_synced_file(folder / detail::manifest_file, to_text(manifest));
  sync_folder(folder);
  return manifest.file_bytes;
}

/// Gives the finished folder its name. A checkpoint of the same step changes places with it, so
/// that there is one at any moment where the file system can do that, and goes to `old_name`
/// otherwise.
///
/// Returns  the system's error number, or 0
int rename_over(fs::path const& temporary, fs::path const& final_name, fs::path const& old_name) {
  if (::rename(temporary.c_str(), final_name.c_str()) == 0) return 0;
  if (errno != ENOTEMPTY && errno != EEXIST) return errno;
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, final_name.c_str(), RENAME_EXCHANGE) ==
      0) {
    return 0;
  }
  if (::rename(final_name.c_str(), old_name.c_str()) != 0) return errno;
  return ::rename(temporary.c_str(), final_name.c_str()) == 0 ? 0 : errno;
}

void remove_folder(fs::path const& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
}

}  // namespace

SaveReport save_checkpoint(RunFolder const& folder,
                           CheckpointMeta const& meta,
                           StateTensors const& tensors,
                           SaveOptions const& options) {
  auto const start = std::chrono::steady_clock::now();
  for (Attributes const* attributes : {&meta.data, &meta.schedule, &meta.random}) {
    expect_finite(*attributes);
  }
  folder.expect_owned();
  SaveReport report;
  report.folder = folder.checkpoints() / detail::step_name(meta.step);
  fs::path const temporary = folder.temporary_name(report.folder);
  fs::path const old_name = folder.temporary_name(report.folder.string() + ".old");
  try {
    report.bytes = write_files(temporary, meta, tensors, options.threads);
    int error_number = 0;
    folder.while_owned([&] { error_number = rename_over(temporary, report.folder, old_name); });
    if (error_number != 0) throw_write_error(report.folder, error_number);
    sync_folder(folder.checkpoints());
  } catch (...) {
    remove_folder(temporary);
    folder.expect_owned();  // a successor removes what we write: that is the better message
    throw;
  }
  remove_folder(temporary);  // what was replaced
  remove_folder(old_name);
  report.seconds = seconds_since(start);
  report.gb_per_s = 1e-9 * static_cast<double>(report.bytes) / report.seconds;
  try {
    folder.replace_file("checkpoints/latest", report.folder.filename().string() + "\n");
  } catch (Error const& error) {
    if (error.kind() != ErrorKind::write) throw;
    report.warnings.emplace_back(error.what());  // the checkpoint itself is there and durable
  }
  detail::apply_keep_rules(folder, options, report);
  return report;
}

}  // namespace motley::io
