#include "io/tokenizer/train.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "io/detail/ordered_pool.hpp"
#include "io/tokenizer/detail/merge_trainer.hpp"
#include "io/tokenizer/pretokenizer.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

// Longer pre-tokens are no words but data (base64, lines of a table), and cost time at each merge.
constexpr std::size_t longest_word_bytes = 1024;
constexpr std::int64_t smallest_vocab = 257;  // the bytes and the end of text
constexpr std::int64_t merges_between_reports = 256;

using Progress = std::function<void(TokenizerTrainProgress const&)>;
using Phase = TokenizerTrainProgress::Phase;

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};
using WordCounts = std::unordered_map<std::string, std::int64_t, StringHash, std::equal_to<>>;

/// What one counting thread keeps.
struct Counter {
  PreTokenizer pretokenizer;
  WordCounts counts;

  void count(std::string_view text) {
    pretokenizer.start(text);
    std::string_view word;
    while (pretokenizer.next(word)) {
      if (word.size() < 2 || word.size() > longest_word_bytes) continue;
      auto found = counts.find(word);
      if (found == counts.end()) found = counts.emplace(word, 0).first;
      ++found->second;
    }
  }
};

using Pool = detail::OrderedPool<std::int64_t, Counter>;

void check_options(TokenizerTrainOptions const& options) {
  MOTLEY_VALIDATE(usage,
                  !options.files.empty(),
                  "no text file was named (a tokenizer is trained on text); name at least one");
  MOTLEY_VALIDATE(usage,
                  options.vocab_size >= smallest_vocab && options.vocab_size < INT32_MAX,
                  "a vocabulary of " << options.vocab_size
                                     << " tokens was asked for (the 256 bytes "
                                     << "and the end-of-text token make " << smallest_vocab
                                     << "); ask for between that and 2147483646");
  MOTLEY_VALIDATE(usage,
                  options.threads >= 1 && options.min_pair_count >= 1 && options.sample_bytes >= 0,
                  "threads (" << options.threads << ") and the smallest pair count ("
                              << options.min_pair_count << ") must be 1 or more, the sample ("
                              << options.sample_bytes << " bytes) 0 or more; change them");
}

Pool::Job counting_job(TokenizerTrainOptions const& options, std::vector<Piece> batch) {
  return Pool::Job{[&options, pieces = std::move(batch)](Counter& counter) mutable {
    std::int64_t bytes = 0;
    for (Piece& piece : pieces) {
      bytes += static_cast<std::int64_t>(piece.bytes.size());
      extract_document(piece, options.files, options.text);
      counter.count(piece.bytes);
    }
    return bytes;
  }};
}

/// Counts the words of one file, up to `budget` bytes of it; `report` gets the bytes counted.
template <class Report>
void count_file(TokenizerTrainOptions const& options,
                std::size_t file,
                std::int64_t budget,
                Pool& pool,
                Report const& report) {
  DocumentStream stream{{options.files[file]}, options.text};
  std::vector<Piece> batch;
  std::int64_t given = 0;
  std::int64_t batch_bytes = 0;
  for (Piece piece; given < budget && stream.next(piece);) {
    piece.file = static_cast<std::int32_t>(file);
    batch_bytes += static_cast<std::int64_t>(piece.bytes.size());
    given += static_cast<std::int64_t>(piece.bytes.size());
    batch.push_back(std::move(piece));
    if (batch_bytes < options.text.piece_bytes) continue;
    pool.give(counting_job(options, std::exchange(batch, {})));
    batch_bytes = 0;
    while (pool.is_full()) report(pool.take());
  }
  if (!batch.empty()) pool.give(counting_job(options, std::move(batch)));
  while (pool.pending() > 0) report(pool.take());
}

std::vector<std::int64_t> sizes_of(std::vector<std::filesystem::path> const& files) {
  std::vector<std::int64_t> sizes;
  for (auto const& file : files) {
    std::error_code error;  // reported when the file is opened
    auto const bytes = std::filesystem::file_size(file, error);
    sizes.push_back(error ? 0 : static_cast<std::int64_t>(bytes));
  }
  return sizes;
}

/// Bytes of text that a file may give to the sample: its share of the sizes on disk.
std::int64_t budget_of(std::int64_t size, std::int64_t total, std::int64_t sample_bytes) {
  if (sample_bytes == 0 || total == 0) return INT64_MAX;
  double const share = static_cast<double>(size) / static_cast<double>(total);
  return 1 + static_cast<std::int64_t>(static_cast<double>(sample_bytes) * share);
}

WordCounts count_words(TokenizerTrainOptions const& options, Progress const& progress) {
  Pool pool{std::vector<Counter>(static_cast<std::size_t>(options.threads))};
  std::vector<std::int64_t> const sizes = sizes_of(options.files);
  std::int64_t const total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::int64_t const expected =
      options.sample_bytes == 0 ? total : std::min(total, options.sample_bytes);
  std::int64_t done = 0;
  for (std::size_t file = 0; file < options.files.size(); ++file) {
    std::int64_t const budget = budget_of(sizes[file], total, options.sample_bytes);
    count_file(options, file, budget, pool, [&](std::int64_t bytes) {
      done += bytes;
      if (progress) progress({Phase::count, done, std::max(done, expected)});
    });
  }
  WordCounts all = std::move(pool.states().front().counts);
  for (std::size_t i = 1; i < pool.states().size(); ++i) {
    WordCounts const part = std::exchange(pool.states()[i].counts, {});
    for (auto const& [word, count] : part) all[word] += count;
  }
  return all;
}

}  // namespace

Tokenizer train_tokenizer(TokenizerTrainOptions const& options, Progress const& progress) {
  check_options(options);
  detail::MergeTrainer trainer;
  for (auto const& [word, count] : count_words(options, progress)) trainer.add_word(word, count);

  std::int64_t const merged_tokens = options.vocab_size - 1;  // one is left for the end of text
  auto const tokens = [&] { return static_cast<std::int64_t>(trainer.tokens().size()); };
  std::int64_t const first = tokens();
  while (tokens() < merged_tokens && trainer.merge_best(options.min_pair_count)) {
    if (progress && (tokens() - first) % merges_between_reports == 0) {
      progress({Phase::merge, tokens() - first, merged_tokens - first});
    }
  }
  BpeModel model;
  model.tokens = trainer.tokens();
  model.merges = trainer.merges();
  model.end_of_text_id = static_cast<std::int32_t>(model.tokens.size());
  model.tokens.emplace_back(end_of_text);
  model.special_ids = {model.end_of_text_id};
  return Tokenizer{std::move(model)};
}

}  // namespace motley::io
