#pragma once

#include <cstdint>
#include <span>

namespace motley {

/// A micro-batch of token windows, in host memory owned by whoever made it.
///
/// Shapes: inputs and targets [batch, tokens], row by row. A target of `ignored_target` does not
/// count in the loss. `samples[b]` is the global sample index of row b: dropout is keyed by it.
struct Batch {
  static constexpr std::int32_t ignored_target = -1;

  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::span<std::int32_t const> inputs;
  std::span<std::int32_t const> targets;
  std::span<std::uint64_t const> samples;
};

}  // namespace motley
