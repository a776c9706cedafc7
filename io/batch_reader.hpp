#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/dataset.hpp"
#include "io/sample_order.hpp"
#include "kernels/base/batch.hpp"

// Shapes: B windows of a micro-batch, T tokens of a window (train.seq_length).

namespace motley::io {

enum class ReadOrder {
  shuffled,  ///< by (seed, epoch, data), as SampleOrder does it: for training
  in_file,   ///< windows as they lie in the file: for validation
};

struct ReaderOptions {
  std::int64_t seq_length = 1024;  ///< T, >= 1
  std::int64_t micro_batch = 4;    ///< B, >= 1; the last one of a block may be smaller
  ReadOrder order = ReadOrder::shuffled;
  std::uint64_t seed = 1234;         ///< of the order (key: run.seed)
  std::string split = "train";       ///< part of the fingerprint
  int threads = 2;                   ///< that read and decode, >= 1
  std::int64_t prefetch_blocks = 2;  ///< blocks made ready before they are asked for, >= 1
  std::size_t cache_bytes = std::size_t{256} << 20U;  ///< decoded chunks kept in memory, at most
};

/// Which positions a rank reads: block k holds windows [first + k·stride, … + count). A rank that
/// computes the whole global batch has count = stride = global batch; one that computes a share of
/// it starts at its own offset with a smaller count.
struct BlockSequence {
  std::uint64_t first = 0;  ///< position, counted over all epochs
  std::int64_t count = 0;   ///< windows of a block, >= 1
  std::int64_t stride = 0;  ///< windows from one block to the next, >= count
};

/// A rank's windows of one step.
struct Block {
  std::uint64_t first = 0;         ///< position of the first window
  std::int64_t valid_tokens = 0;   ///< targets that count in the loss
  std::span<Batch const> batches;  ///< in order of position
};

/// Reads, decodes and arranges token windows in threads of its own, ahead of their use.
///
/// Sample g is the window of tokens [g·T, g·T + T], so G = (tokens - 1) / T samples make an epoch;
/// epochs follow one another without end. What is delivered depends on data, options and positions
/// alone, never on threads. No memory is allocated between two calls of `start`.
class BatchReader {
 public:
  /// Throws   Error{usage} on options out of range; Error{data} if there is no whole window
  BatchReader(Dataset dataset, ReaderOptions const& options);
  BatchReader(BatchReader const&) = delete;
  BatchReader& operator=(BatchReader const&) = delete;
  BatchReader(BatchReader&&) = delete;
  BatchReader& operator=(BatchReader&&) = delete;
  /// Ends the threads; waits for the chunks they are decoding.
  ~BatchReader();

  /// Forgets what was read ahead and begins a sequence of blocks anywhere.
  void start(BlockSequence const& sequence);

  /// The next block of the sequence. Its spans are valid until the next call of `next` or `start`.
  ///
  /// Throws   Error{data} naming file, chunk and offset if a chunk could not be read in four tries,
  ///          is damaged or holds an id beyond the vocabulary; again at every further call
  [[nodiscard]] Block next();

  /// Targets that count in the loss at positions [first, first + count), which need not be those
  /// of this rank. Reads the loss mask alone; without one the answer is count·T.
  [[nodiscard]] std::int64_t valid_tokens(std::uint64_t first, std::int64_t count);

  [[nodiscard]] std::int64_t samples_per_epoch() const noexcept;
  [[nodiscard]] DatasetInfo const& info() const noexcept;
  /// See `data_fingerprint`.
  [[nodiscard]] std::string const& fingerprint() const noexcept;
  /// Memory held, in bytes; grows in `start` only.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  /// Seconds the caller has waited in `next` since the last call of this.
  [[nodiscard]] double take_wait_s() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::io
