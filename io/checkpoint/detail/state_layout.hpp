#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.hpp"

namespace motley::io::detail {

/// Makes state.h5 with all that HDF5 puts into it, the tensors as holes, and fills in where they
/// lie; their bytes are then written at these offsets without HDF5. The same input gives the same
/// file. Main thread only.
///
/// Throws   Error{write}. HDF5 cannot forget a file that it could not write, so there should be
///          space for sure: see `most_bytes`
void create_state_file(std::filesystem::path const& file,
                       CheckpointMeta const& meta,
                       std::vector<TensorRecord>& tensors);

/// What the file of these tensors takes at most.
[[nodiscard]] std::int64_t most_bytes(std::span<TensorRecord const> tensors) noexcept;

/// SHA-256 of all bytes of a file that no tensor covers, in file order, in hexadecimal; empty if
/// the file cannot be read or ends before `file_bytes`.
[[nodiscard]] std::optional<std::string> hash_outside(int descriptor,
                                                      std::span<TensorRecord const> tensors,
                                                      std::int64_t file_bytes);

}  // namespace motley::io::detail
