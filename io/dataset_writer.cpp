#include "io/dataset_writer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

namespace format = dataset_format;

constexpr int deflate_level = 4;
constexpr std::size_t chunk_offsets =
    static_cast<std::size_t>(format::chunk_bytes) / sizeof(std::uint64_t);

/// Shuffling brings equal bytes together: the zeros of wide numbers, but it tears apart the words
/// that repeat in u16 tokens. Measured on 4 million tokens of English with 50,257 in the
/// vocabulary, bytes per token: u16 1.05 plain and 1.21 shuffled, u32 1.29 and 1.21.
hdf5::DatasetSpec spec_of(hdf5::Element element) {
  hdf5::DatasetSpec spec;
  spec.element = element;
  spec.extents = {0};
  spec.chunk_rows = format::chunk_bytes / static_cast<std::int64_t>(hdf5::size_bytes(element));
  spec.is_shuffled = element != hdf5::Element::u16;
  spec.deflate_level = deflate_level;
  spec.is_checksummed = true;
  return spec;
}

hdf5::Element token_element(std::int64_t vocab) {
  return format::token_bytes(vocab) == 2 ? hdf5::Element::u16 : hdf5::Element::u32;
}

std::string path_in_file(char const* name) { return std::string{"/"} + name; }

}  // namespace

DatasetWriter::DatasetWriter(std::filesystem::path const& path, DatasetDescription description)
    : description_{std::move(description)},
      file_{hdf5::File::create(path.string())},
      tokens_{file_.create_dataset(path_in_file(format::tokens),
                                   spec_of(token_element(description_.vocab)))},
      offsets_{
          file_.create_dataset(path_in_file(format::doc_offsets), spec_of(hdf5::Element::u64))},
      chunk_tokens_{static_cast<std::size_t>(format::chunk_bytes) /
                    format::token_bytes(description_.vocab)},
      counts_(static_cast<std::size_t>(description_.vocab)) {
  token_buffer_.reserve(chunk_tokens_);
  offset_buffer_.reserve(chunk_offsets);
  add_offset();
}

void DatasetWriter::append(std::span<std::int32_t const> ids) {
  for (std::int32_t const id : ids) {
    MOTLEY_VALIDATE(bug,
                    id >= 0 && id < description_.vocab,
                    "token " << id << " does not belong into a data set of vocabulary "
                             << description_.vocab
                             << "; this is a bug of motley, please report it");
    ++counts_[static_cast<std::size_t>(id)];
  }
  token_count_ += static_cast<std::int64_t>(ids.size());
  while (!ids.empty()) {
    std::size_t const room = chunk_tokens_ - token_buffer_.size();
    std::span<std::int32_t const> const part = ids.first(std::min(room, ids.size()));
    token_buffer_.insert(token_buffer_.end(), part.begin(), part.end());
    ids = ids.subspan(part.size());
    if (token_buffer_.size() == chunk_tokens_) flush_tokens();
  }
}

void DatasetWriter::end_document() {
  document_begin_ = token_count_;
  ++document_count_;
  add_offset();
}

void DatasetWriter::add_offset() {
  offset_buffer_.push_back(static_cast<std::uint64_t>(token_count_));
  if (offset_buffer_.size() == chunk_offsets) flush_offsets();
}

void DatasetWriter::flush_offsets() {
  hash_.add_offsets(offset_buffer_);
  offsets_.append(std::span<std::uint64_t const>{offset_buffer_});
  offset_buffer_.clear();
}

template <class Stored>
void DatasetWriter::store_tokens() {
  std::vector<Stored> const stored(token_buffer_.begin(), token_buffer_.end());
  hash_.add_tokens(std::as_bytes(std::span{stored}));
  tokens_.append(std::span<Stored const>{stored});
}

void DatasetWriter::flush_tokens() {
  if (format::token_bytes(description_.vocab) == 2) {
    store_tokens<std::uint16_t>();
  } else {
    store_tokens<std::uint32_t>();
  }
  token_buffer_.clear();
}

double DatasetWriter::entropy_nats() const {
  double sum = 0.0;
  for (std::int64_t const count : counts_) {
    if (count == 0) continue;
    double const share = static_cast<double>(count) / static_cast<double>(token_count_);
    sum -= share * std::log(share);
  }
  return sum;
}

DatasetSummary DatasetWriter::finish() {
  if (document_begin_ < token_count_) end_document();
  if (!token_buffer_.empty()) flush_tokens();
  if (!offset_buffer_.empty()) flush_offsets();
  DatasetSummary summary{document_count_, token_count_, entropy_nats(), hash_.finish()};

  hdf5::Attributes attributes = file_.attributes();
  attributes.set(format::attr_format, format::version);
  attributes.set(format::attr_vocab, description_.vocab);
  attributes.set(format::attr_end_of_text, std::int64_t{description_.end_of_text_id});
  attributes.set(format::attr_tokenizer_hash, description_.tokenizer_hash);
  attributes.set(format::attr_content_hash, summary.content_hash);
  attributes.set(format::attr_entropy, summary.unigram_entropy_nats);
  attributes.set(format::attr_sources, description_.sources);
  tokens_.close();
  offsets_.close();
  file_.close();
  return summary;
}

}  // namespace motley::io
