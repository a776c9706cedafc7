#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/checkpoint.hpp"

namespace motley::io::detail {

inline constexpr char const* state_file = "state.h5";
inline constexpr char const* manifest_file = "manifest.json";

/// Content of manifest.json: the completeness marker, and all that says whether state.h5 is intact.
struct Manifest {
  CheckpointMeta meta;
  std::int64_t file_bytes = 0;  ///< of state.h5
  std::string outside_sha256;   ///< of all bytes of state.h5 outside the tensors, in file order
  std::vector<TensorRecord> tensors;
};

/// JSON whose last entry is the SHA-256 of the text itself, with zeros in the place of its digits.
[[nodiscard]] std::string to_text(Manifest const& manifest);

/// Empty if the text is damaged or not of our version; then `damage` gets a sentence about it.
[[nodiscard]] std::optional<Manifest> parse_manifest(std::string_view text,
                                                     std::vector<std::string>& damage);

/// "/adam/m/layers.0.norm1.weight": how tensors are named to users, and their path in state.h5.
[[nodiscard]] std::string path_of(TensorRecord const& record);

}  // namespace motley::io::detail
