#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "io/dataset_format.hpp"
#include "io/hdf5/file.hpp"

namespace motley::io {

/// What a data set says of its tokens.
struct DatasetDescription {
  std::int64_t vocab = 0;
  std::int32_t end_of_text_id = 0;
  std::string tokenizer_hash;
  std::string sources = "[]";  ///< see dataset_format::attr_sources
};

/// What was written.
struct DatasetSummary {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  double unigram_entropy_nats = 0.0;
  std::string content_hash;
};

/// Writes a data set of io/dataset_format.hpp, token after token. Main thread only (HDF5).
///
/// Cost     memory: a chunk of tokens and 8 bytes per vocabulary entry; deflate on one core
/// Throws   Error{write}, from every function, naming the file
class DatasetWriter {
 public:
  /// Makes the file; what was at `path` is lost.
  DatasetWriter(std::filesystem::path const& path, DatasetDescription description);

  /// Adds tokens to the open document. Each must be in [0, vocab): Error{bug}.
  void append(std::span<std::int32_t const> ids);
  /// Ends the open document; the next token begins another.
  void end_document();
  /// Ends an open document that has tokens, writes what is left and closes the file.
  [[nodiscard]] DatasetSummary finish();

 private:
  void flush_tokens();
  template <class Stored>
  void store_tokens();
  void add_offset();
  void flush_offsets();
  [[nodiscard]] double entropy_nats() const;

  DatasetDescription description_;
  hdf5::File file_;
  hdf5::Dataset tokens_;
  hdf5::Dataset offsets_;
  ContentHash hash_;
  std::size_t chunk_tokens_;
  std::vector<std::int32_t> token_buffer_;    // less than a chunk
  std::vector<std::uint64_t> offset_buffer_;  // less than a chunk
  std::vector<std::int64_t> counts_;          // of each token id
  std::int64_t token_count_ = 0;
  std::int64_t document_count_ = 0;
  std::int64_t document_begin_ = 0;
};

}  // namespace motley::io
