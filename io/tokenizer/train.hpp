#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "io/text/document_stream.hpp"
#include "io/tokenizer/tokenizer.hpp"

namespace motley::io {

/// How a tokenizer is trained.
struct TokenizerTrainOptions {
  std::vector<std::filesystem::path> files;
  TextOptions text;
  std::int64_t vocab_size = 8192;   ///< bytes, merges and the end-of-text token together; >= 257
  std::int64_t min_pair_count = 2;  ///< rarer pairs are not merged; the vocabulary may end smaller
  std::int64_t sample_bytes = std::int64_t{1} << 30U;  ///< of text, shared by the files; 0 = all
  int threads = 1;                                     ///< that count pre-tokens
};

struct TokenizerTrainProgress {
  enum class Phase { count, merge };
  Phase phase = Phase::count;
  std::int64_t done = 0;   ///< bytes of text, or merges
  std::int64_t total = 0;  ///< bytes (estimated for compressed files), or merges
};

/// Trains a byte-level BPE tokenizer on text files.
///
/// The result is a function of the text alone: not of threads, nor of where pieces were cut. Of
/// pairs equally frequent the one of smaller ids is merged first. Ids: the 256 bytes in GPT-2's
/// order, the merges, the end-of-text token.
///
/// Cost     memory: the distinct pre-tokens of the sample, about 100 bytes each
/// Throws   Error{usage} on options; Error{data} on files that cannot be read
/// Source   Sennrich et al. 2016, algorithm 1; Radford et al. 2019, section 2.2
[[nodiscard]] Tokenizer train_tokenizer(
    TokenizerTrainOptions const& options,
    std::function<void(TokenizerTrainProgress const&)> const& progress = {});

}  // namespace motley::io
