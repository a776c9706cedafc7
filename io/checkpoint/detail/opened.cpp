#include "io/checkpoint/detail/opened.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

#include "io/checkpoint/detail/state_layout.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step_";

std::optional<Manifest> read_manifest(fs::path const& folder, std::vector<std::string>& damage) {
  std::error_code error;
  if (!fs::exists(folder / manifest_file, error)) {
    damage.emplace_back("manifest.json is missing (a save that did not finish leaves it out)");
    return std::nullopt;
  }
  try {
    return parse_manifest(read_whole_file(folder / manifest_file), damage);
  } catch (Error const& unreadable) {
    damage.emplace_back(unreadable.what());
    return std::nullopt;
  }
}

void check_size(OpenedCheckpoint const& opened, std::vector<std::string>& damage) {
  struct stat status {};
  std::int64_t const expected = opened.manifest.file_bytes;
  if (::fstat(opened.state.get(), &status) == 0 && status.st_size == expected) return;
  damage.push_back("state.h5 has " + std::to_string(status.st_size) + " bytes, the manifest says " +
                   std::to_string(expected));
}

void check_outside(OpenedCheckpoint const& opened, std::vector<std::string>& damage) {
  Manifest const& manifest = opened.manifest;
  auto const hash = hash_outside(opened.state.get(), manifest.tensors, manifest.file_bytes);
  if (!hash) {
    damage.emplace_back("the HDF5 metadata of state.h5 cannot be read whole");
  } else if (*hash != manifest.outside_sha256) {
    damage.emplace_back(
        "the HDF5 metadata of state.h5 are damaged (the bytes outside the tensors do not have the "
        "SHA-256 that the manifest names)");
  }
}

/// The step in "step_00001000"; empty for other names.
std::optional<std::int64_t> parse_step(std::string const& name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  char const* const end = name.data() + name.size();
  std::int64_t step = 0;
  auto const result = std::from_chars(name.data() + step_prefix.size(), end, step);
  if (result.ptr != end || step_name(step) != name) return std::nullopt;
  return step;
}

}  // namespace

std::optional<OpenedCheckpoint> open_checkpoint(fs::path const& folder,
                                                std::vector<std::string>& damage) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    damage.emplace_back("there is no such folder");
    return std::nullopt;
  }
  auto manifest = read_manifest(folder, damage);
  FileDescriptor state{::open((folder / state_file).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!state) {
    damage.push_back("state.h5 cannot be opened (" + system_error_text(errno) + ")");
    return std::nullopt;
  }
  if (!manifest) return std::nullopt;
  OpenedCheckpoint opened{folder, std::move(*manifest), std::move(state)};
  check_size(opened, damage);
  check_outside(opened, damage);
  return opened;
}

std::string step_name(std::int64_t step) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "step_%08lld", static_cast<long long>(step));
  return name.data();
}

std::vector<CheckpointFolder> list_checkpoints(fs::path const& folder) {
  std::vector<CheckpointFolder> result;
  std::error_code error;
  for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{};
       entry.increment(error)) {
    auto const step = parse_step(entry->path().filename());
    if (step) result.push_back({*step, entry->path()});
  }
  std::sort(
      result.begin(), result.end(), [](auto const& a, auto const& b) { return a.step > b.step; });
  return result;
}

fs::path resolve_checkpoint(fs::path const& path) {
  std::error_code error;
  for (char const* name : {manifest_file, state_file}) {
    if (fs::exists(path / name, error)) return path;
  }
  for (fs::path const& folder : {path / "checkpoints", path}) {
    auto const checkpoints = list_checkpoints(folder);
    if (!checkpoints.empty()) return checkpoints.front().path;
  }
  MOTLEY_FAIL(checkpoint,
              "there is no checkpoint at " << path
                                           << " (neither state.h5 with manifest.json nor a folder "
                                              "step_… is in it); check the path");
}

std::string joined(std::vector<std::string> const& sentences) {
  std::string text;
  for (std::string const& sentence : sentences) {
    if (!text.empty()) text += "; ";
    text += sentence;
  }
  return text;
}

}  // namespace motley::io::detail
