#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/detail/manifest.hpp"
#include "io/durable_file.hpp"

namespace motley::io::detail {

/// A checkpoint whose manifest is understood and whose state.h5 is open to be read.
struct OpenedCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
  FileDescriptor state;
};

/// Opens a checkpoint and checks all but its tensors: manifest, size of state.h5, and the SHA-256
/// of what is outside the tensors. What is wrong goes to `damage`, one sentence each; empty if that
/// is so much that tensors cannot be read. No HDF5, any thread.
[[nodiscard]] std::optional<OpenedCheckpoint> open_checkpoint(std::filesystem::path const& folder,
                                                              std::vector<std::string>& damage);

struct CheckpointFolder {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// Name of the folder of a step, "step_00001000".
[[nodiscard]] std::string step_name(std::int64_t step);

/// The folders step_NNNNNNNN under a folder, damaged ones too, highest step first.
[[nodiscard]] std::vector<CheckpointFolder> list_checkpoints(std::filesystem::path const& folder);

/// The checkpoint folder that a path of the user means: itself, or the highest step of a run folder
/// or of its folder `checkpoints`.
///
/// Throws   Error{checkpoint} if there is none
[[nodiscard]] std::filesystem::path resolve_checkpoint(std::filesystem::path const& path);

/// The sentences, joined for a message.
[[nodiscard]] std::string joined(std::vector<std::string> const& sentences);

}  // namespace motley::io::detail
