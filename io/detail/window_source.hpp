#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "io/dataset.hpp"
#include "io/detail/chunk_cache.hpp"
#include "io/detail/chunk_decoder.hpp"

// Shapes: T tokens of a window.

namespace motley::io::detail {

/// Windows of a data set: sample g is tokens [g·T, g·T + T], the last one only as a target. Any
/// thread reads with a scratch of its own.
class WindowSource {
 public:
  struct Scratch {
    ChunkDecoder tokens;
    std::optional<ChunkDecoder> loss_mask;
    std::vector<std::int32_t> window;  ///< T + 1
    std::vector<std::int32_t> counts;  ///< T; 0 where a target does not count
  };

  /// @param users threads that read at the same time
  /// Throws   Error{data} if there is no whole window
  WindowSource(Dataset dataset, std::int64_t seq_length, std::size_t cache_bytes, int users);

  [[nodiscard]] Scratch make_scratch() const;
  [[nodiscard]] DatasetInfo const& info() const noexcept { return dataset_.info(); }
  [[nodiscard]] std::int64_t seq_length() const noexcept { return seq_length_; }
  [[nodiscard]] std::int64_t sample_count() const noexcept {
    return (info().tokens - 1) / seq_length_;
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

  /// Shapes   inputs [T], targets [T]
  /// @return the number of targets that count; the others are Batch::ignored_target
  std::int64_t read(std::int64_t sample,
                    Scratch& scratch,
                    std::span<std::int32_t> inputs,
                    std::span<std::int32_t> targets);
  /// What `read` would return, from the loss mask alone.
  [[nodiscard]] std::int64_t valid_tokens(std::int64_t sample, Scratch& scratch);

 private:
  Dataset dataset_;
  std::int64_t seq_length_;
  ChunkCache tokens_;
  std::optional<ChunkCache> loss_mask_;
};

}  // namespace motley::io::detail
