#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/text/document_stream.hpp"
#include "io/tokenizer/tokenizer.hpp"

namespace motley::io {

/// Which part of the input becomes the validation set.
enum class ValidSplit {
  tail,       ///< the last share of the bytes; a text of one document is cut between words
  documents,  ///< whole documents, drawn by a hash of their first bytes: equal ones stay together
};

/// How a data set is built.
struct BuildOptions {
  std::vector<std::filesystem::path> files;  ///< in this order
  TextOptions text;
  std::filesystem::path output;        ///< HDF5 data set to write
  std::filesystem::path valid_output;  ///< and the validation set; needs valid_fraction > 0
  double valid_fraction = 0.0;         ///< share of the input in the validation set, [0, 1)
  ValidSplit valid_split = ValidSplit::tail;
  int threads = 1;         ///< that encode; reading and writing are done by the caller's
  bool overwrite = false;  ///< replace outputs that exist
};

struct BuildProgress {
  std::int64_t bytes_done = 0;   ///< of the input files, as they lie on disk
  std::int64_t bytes_total = 0;  ///< ditto
  std::int64_t tokens = 0;
};

/// One data set that was written.
struct BuiltSet {
  std::filesystem::path path;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;            ///< with the end-of-text token after each document
  std::int64_t text_bytes = 0;        ///< bytes of text in it
  double unigram_entropy_nats = 0.0;  ///< -sum p ln p over the frequencies of its tokens
  std::string content_hash;           ///< see io/dataset_format.hpp
};

struct BuildResult {
  BuiltSet train;
  std::optional<BuiltSet> valid;
};

/// Encodes text files into an HDF5 data set, and a validation set where asked.
///
/// Files are written under a temporary name, synced and renamed: an output is whole or absent.
/// Bytes written are the same whatever the number of threads.
///
/// Runs on  the main thread (HDF5) and `threads` more
/// Cost     memory: a few MiB per thread, plus the longest jsonl line
/// Throws   Error{usage} on options and on outputs that exist; Error{data} naming file (and line)
///          on input that is empty, damaged or not what its name says; Error{write} on a full disk
[[nodiscard]] BuildResult build_dataset(
    BuildOptions const& options,
    Tokenizer const& tokenizer,
    std::function<void(BuildProgress const&)> const& progress = {});

}  // namespace motley::io
