#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/sample_order.hpp"

namespace motley::io {

namespace detail {
class StoredArray;
}  // namespace detail

/// What a data set says of itself, and how it lies in its file.
struct DatasetInfo {
  std::string path;
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  std::int64_t vocab = 0;  ///< token ids are below it
  std::int64_t end_of_text_id = 0;
  std::int64_t token_bytes = 0;  ///< of one token, not compressed
  bool has_loss_mask = false;
  std::string tokenizer_hash;
  std::string content_hash;  ///< see io/dataset_format.hpp
  std::string sources;       ///< JSON
  double unigram_entropy_nats = 0.0;
  std::uint64_t file_bytes = 0;
  std::uint64_t stored_token_bytes = 0;  ///< of all tokens, compressed
  std::int64_t chunks = 0;               ///< of tokens; 0 where they are contiguous

  [[nodiscard]] double compression_ratio() const noexcept;
  [[nodiscard]] DataIdentity identity() const { return {content_hash, tokens, token_bytes}; }
};

/// Reads what a data set says of itself; looks at no token. Main thread only (HDF5).
///
/// Throws   Error{data} naming the file if it is missing, not HDF5, cut short, of another format or
///          lacks a part
[[nodiscard]] DatasetInfo inspect_dataset(std::string const& path);

/// Called with the tokens checked so far and all tokens.
using VerifyProgress = std::function<void(std::int64_t, std::int64_t)>;

/// Reads all of a data set: every checksum, every token id against the vocabulary, document
/// offsets, loss mask and the content hash. Main thread only (HDF5).
///
/// Throws   Error{data} at the first thing that is wrong, naming the file and the place
/// Cost     one pass over the file, on one core
DatasetInfo verify_dataset(std::string const& path, VerifyProgress const& progress = {});

/// A data set open for reading without HDF5: the places of all chunks are known, so that any
/// thread can read and decode them.
class Dataset {
 public:
  /// Main thread only (HDF5).
  ///
  /// Cost     about 1 µs per chunk if motley wrote the file; else HDF5 finds each place by walking
  ///          over all before it
  /// Throws   Error{data} as `inspect_dataset`, and on storage that we do not read (filters other
  ///          than shuffle, deflate and Fletcher32)
  explicit Dataset(std::string const& path);
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  Dataset(Dataset const&) = delete;
  Dataset& operator=(Dataset const&) = delete;
  ~Dataset();

  [[nodiscard]] DatasetInfo const& info() const noexcept { return info_; }
  [[nodiscard]] detail::StoredArray const& tokens() const noexcept { return *tokens_; }
  /// Null if every token counts in the loss.
  [[nodiscard]] detail::StoredArray const* loss_mask() const noexcept { return loss_mask_.get(); }

 private:
  DatasetInfo info_;
  std::unique_ptr<detail::StoredArray> tokens_;
  std::unique_ptr<detail::StoredArray> loss_mask_;
};

/// Throws Error{data} if a model of `model_vocab` rows cannot take the tokens of a data set.
void require_vocab(DatasetInfo const& info, std::int64_t model_vocab);

}  // namespace motley::io
