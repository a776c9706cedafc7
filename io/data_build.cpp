#include "io/data_build.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "io/dataset_writer.hpp"
#include "io/detail/ordered_pool.hpp"
#include "io/detail/pending_file.hpp"
#include "io/hash.hpp"
#include "io/json.hpp"
#include "io/tokenizer/pretokenizer.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

using Progress = std::function<void(BuildProgress const&)>;

/// A piece of text and, where that is known before it is read, the set it belongs to.
struct SortedPiece {
  Piece piece;
  bool is_valid = false;
};

/// Tokens of pieces, one piece behind the other.
struct EncodedBatch {
  struct Part {
    std::size_t end = 0;  ///< of its ids
    std::int64_t text_bytes = 0;
    bool starts_document = false;
    bool ends_document = false;
    bool is_valid = false;
  };
  std::vector<std::int32_t> ids;
  std::vector<Part> parts;
};

using Pool = detail::OrderedPool<EncodedBatch, Encoder>;

void check_output(std::filesystem::path const& output, BuildOptions const& options) {
  std::error_code error;
  MOTLEY_VALIDATE(usage,
                  options.overwrite || !std::filesystem::exists(output, error),
                  "data set " << output << " exists (it is not replaced unasked); choose another "
                              << "path, or ask to overwrite it");
  for (auto const& file : options.files) {
    MOTLEY_VALIDATE(usage,
                    !std::filesystem::equivalent(file, output, error),
                    "data set " << output << " is one of the text files (it would be lost); choose "
                                << "another path");
  }
}

void check_options(BuildOptions const& options) {
  MOTLEY_VALIDATE(usage,
                  options.threads >= 1,
                  options.threads << " threads were asked for (at least 1 has to encode); ask for "
                                     "1 or more");
  MOTLEY_VALIDATE(usage,
                  options.valid_fraction >= 0.0 && options.valid_fraction < 1.0,
                  "a validation share of " << options.valid_fraction
                                           << " was asked for (it is a part of 1); choose one of "
                                              "at least 0 and below 1");
  MOTLEY_VALIDATE(usage,
                  !options.output.empty(),
                  "no data set was named (the tokens go there); "
                  "give a path");
  MOTLEY_VALIDATE(usage,
                  (options.valid_fraction > 0.0) == !options.valid_output.empty(),
                  "a validation set needs both a path (given: "
                      << options.valid_output << ") and a share above 0 (given: "
                      << options.valid_fraction << "); give both or neither");
  MOTLEY_VALIDATE(usage,
                  options.output != options.valid_output,
                  "data set and validation set have one path, " << options.output
                                                                << " (one would replace the "
                                                                   "other); name two");
  check_output(options.output, options);
  if (!options.valid_output.empty()) check_output(options.valid_output, options);
}

std::string sources_json(std::vector<std::filesystem::path> const& files) {
  Json list = Json::array();
  for (auto const& file : files) {
    list.push_back(
        {{"name", file.filename().string()}, {"bytes", std::filesystem::file_size(file)}});
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Whether a document, known by its first piece, is drawn for the validation set.
bool is_drawn(std::string_view first_piece, double fraction) {
  constexpr std::size_t looked_at_bytes = std::size_t{64} << 10U;
  Sha256 hash;
  hash.update(first_piece.substr(0, looked_at_bytes));
  Digest const digest = hash.finish();
  double value = 0.0;  // in [0, 1)
  for (std::size_t i = 0; i < 6; ++i)
    value += std::ldexp(digest[i], -8 * (static_cast<int>(i) + 1));
  return value < fraction;
}

Pool::Job encoding_job(BuildOptions const& options,
                       std::int32_t end_of_text_id,
                       std::vector<SortedPiece> batch) {
  return Pool::Job{[&options, end_of_text_id, pieces = std::move(batch)](Encoder& encoder) mutable {
    EncodedBatch result;
    for (auto& [piece, is_valid] : pieces) {
      extract_document(piece, options.files, options.text);
      encoder.encode(piece.bytes, result.ids);
      if (piece.ends_document) result.ids.push_back(end_of_text_id);
      bool const draws = options.valid_split == ValidSplit::documents && piece.starts_document &&
                         options.valid_fraction > 0.0;
      result.parts.push_back({result.ids.size(),
                              static_cast<std::int64_t>(piece.bytes.size()),
                              piece.starts_document,
                              piece.ends_document,
                              draws ? is_drawn(piece.bytes, options.valid_fraction) : is_valid});
    }
    return result;
  }};
}

/// Sends the last share of the text to the validation set.
class TailSorter {
 public:
  /// Looks through all files to learn how much text there is, unless no tail is wanted.
  explicit TailSorter(BuildOptions const& options) {
    if (options.valid_fraction == 0.0 || options.valid_split != ValidSplit::tail) return;
    std::int64_t total = 0;
    DocumentStream stream{options.files, options.text};
    for (Piece piece; stream.next(piece);) total += static_cast<std::int64_t>(piece.bytes.size());
    border_ = total - std::llround(static_cast<double>(total) * options.valid_fraction);
  }

  /// Appends the next piece to `batch`; one of text that lies across the border becomes two.
  void sort(Piece piece, std::vector<SortedPiece>& batch) {
    std::int64_t const begin = position_;
    position_ += static_cast<std::int64_t>(piece.bytes.size());
    bool const is_across = begin < border_ && border_ < position_ && !piece.is_json_line;
    if (is_across && border_ - begin > 1) {
      Piece head = piece;
      std::string_view const before =
          std::string_view{piece.bytes}.substr(0, static_cast<std::size_t>(border_ - begin));
      std::size_t const cut = pretokenizer_.last_cut(before);
      head.bytes.resize(cut);
      head.ends_document = true;
      batch.push_back({std::move(head), false});
      piece.bytes.erase(0, cut);
      piece.starts_document = true;
      batch.push_back({std::move(piece), true});
      return;
    }
    batch.push_back({std::move(piece), begin >= border_});
  }

 private:
  PreTokenizer pretokenizer_;
  std::int64_t border_ = INT64_MAX;
  std::int64_t position_ = 0;
};

/// One of the two data sets while it is written.
class SetWriter {
 public:
  SetWriter(std::filesystem::path const& path, DatasetDescription const& description)
      : file_{path}, writer_{file_.temporary(), description} {}

  void append(std::span<std::int32_t const> ids, EncodedBatch::Part const& part) {
    writer_.append(ids);
    text_bytes_ += part.text_bytes;
    if (part.ends_document) writer_.end_document();
  }

  [[nodiscard]] BuiltSet finish() {
    DatasetSummary summary = writer_.finish();
    MOTLEY_VALIDATE(data,
                    summary.documents > 0,
                    "data set " << file_.target()
                                << " would be empty (the share of the validation set leaves no "
                                   "document for it); choose another share, or split the tail");
    return {file_.target(),
            summary.documents,
            summary.tokens,
            text_bytes_,
            summary.unigram_entropy_nats,
            std::move(summary.content_hash)};
  }
  void publish() { file_.publish(); }

 private:
  detail::PendingFile file_;  // first: it outlives the writer
  DatasetWriter writer_;
  std::int64_t text_bytes_ = 0;
};

class Builder {
 public:
  Builder(BuildOptions const& options, Tokenizer const& tokenizer, Progress const& progress);
  [[nodiscard]] BuildResult run();

 private:
  void write(EncodedBatch const& batch);

  BuildOptions const& options_;
  Progress const& progress_;
  std::int32_t end_of_text_id_;
  DocumentStream stream_;
  TailSorter sorter_;
  SetWriter train_;
  std::optional<SetWriter> valid_;
  Pool pool_;
  bool is_document_valid_ = false;  // set of the document that is being written
  std::int64_t tokens_ = 0;
};

DatasetDescription describe(BuildOptions const& options, Tokenizer const& tokenizer) {
  return {tokenizer.vocab_size(),
          tokenizer.end_of_text_id(),
          tokenizer.fingerprint(),
          sources_json(options.files)};
}

std::vector<Encoder> make_encoders(Tokenizer const& tokenizer, int threads) {
  std::vector<Encoder> encoders;
  encoders.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) encoders.emplace_back(tokenizer);
  return encoders;
}

Builder::Builder(BuildOptions const& options, Tokenizer const& tokenizer, Progress const& progress)
    : options_{options},
      progress_{progress},
      end_of_text_id_{tokenizer.end_of_text_id()},
      stream_{options.files, options.text},
      sorter_{options},
      train_{options.output, describe(options, tokenizer)},
      pool_{make_encoders(tokenizer, options.threads)} {
  if (options.valid_fraction > 0.0) {
    valid_.emplace(options.valid_output, describe(options, tokenizer));
  }
}

void Builder::write(EncodedBatch const& batch) {
  std::size_t begin = 0;
  for (EncodedBatch::Part const& part : batch.parts) {
    if (part.starts_document) is_document_valid_ = part.is_valid;
    SetWriter& set = is_document_valid_ ? *valid_ : train_;
    set.append(std::span{batch.ids}.subspan(begin, part.end - begin), part);
    begin = part.end;
  }
  tokens_ += static_cast<std::int64_t>(batch.ids.size());
  if (progress_) progress_({stream_.bytes_done(), stream_.bytes_total(), tokens_});
}

BuildResult Builder::run() {
  std::vector<SortedPiece> batch;
  std::int64_t batch_bytes = 0;
  for (Piece piece; stream_.next(piece);) {
    batch_bytes += static_cast<std::int64_t>(piece.bytes.size());
    sorter_.sort(std::exchange(piece, {}), batch);
    if (batch_bytes < options_.text.piece_bytes) continue;
    pool_.give(encoding_job(options_, end_of_text_id_, std::exchange(batch, {})));
    batch_bytes = 0;
    while (pool_.is_full()) write(pool_.take());
  }
  if (!batch.empty()) pool_.give(encoding_job(options_, end_of_text_id_, std::move(batch)));
  while (pool_.pending() > 0) write(pool_.take());

  BuildResult result{train_.finish(), std::nullopt};
  if (valid_) result.valid = valid_->finish();
  if (valid_) valid_->publish();
  train_.publish();
  return result;
}

}  // namespace

BuildResult build_dataset(BuildOptions const& options,
                          Tokenizer const& tokenizer,
                          Progress const& progress) {
  check_options(options);
  return Builder{options, tokenizer, progress}.run();
}

}  // namespace motley::io
