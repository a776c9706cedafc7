#include "io/dataset.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "io/dataset_format.hpp"
#include "io/detail/stored_array.hpp"
#include "io/hdf5/file.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

namespace format = dataset_format;

constexpr std::int64_t offsets_at_once = std::int64_t{1} << 17U;

std::string object_path(char const* name) { return std::string{"/"} + name; }

void expect_format(hdf5::File const& file) {
  bool const is_ours = file.attributes().contains(format::attr_format);
  MOTLEY_VALIDATE(data,
                  is_ours,
                  "file \"" << file.path() << "\" is HDF5 but no data set of motley (it has no "
                            << "attribute \"" << format::attr_format
                            << "\"); build one with motley data build");
  std::string const found = file.attributes().get_string(format::attr_format);
  MOTLEY_VALIDATE(data,
                  found == format::version,
                  "data set \"" << file.path() << "\" has format \"" << found
                                << "\" (this program reads \"" << format::version
                                << "\"); build it again with this program");
}

hdf5::Dataset open_part(hdf5::File const& file, char const* name) {
  MOTLEY_VALIDATE(data,
                  file.contains(object_path(name)),
                  "data set \"" << file.path() << "\" has no \"" << object_path(name)
                                << "\" (it was not written to the end); build it again");
  return file.open_dataset(object_path(name));
}

void read_attributes(hdf5::File const& file, DatasetInfo& info) {
  hdf5::Attributes const attributes = file.attributes();
  info.vocab = attributes.get_i64(format::attr_vocab);
  info.end_of_text_id = attributes.get_i64(format::attr_end_of_text);
  info.tokenizer_hash = attributes.get_string(format::attr_tokenizer_hash);
  info.content_hash = attributes.get_string(format::attr_content_hash);
  info.sources = attributes.get_string(format::attr_sources);
  info.unigram_entropy_nats = attributes.get_double(format::attr_entropy);
  constexpr std::int64_t largest_vocab = std::int64_t{1} << 31U;  // ids are 32 bits and signed
  MOTLEY_VALIDATE(data,
                  1 <= info.vocab && info.vocab <= largest_vocab,
                  "data set \"" << info.path << "\" names a vocabulary of " << info.vocab
                                << " tokens (1 to " << largest_vocab
                                << " are possible); build it again");
}

void read_tokens_info(hdf5::File const& file, DatasetInfo& info) {
  hdf5::Dataset const tokens = open_part(file, format::tokens);
  std::optional<hdf5::Element> const element = tokens.element();
  bool const is_known = element == hdf5::Element::u16 || element == hdf5::Element::u32;
  MOTLEY_VALIDATE(data,
                  is_known && tokens.extents().size() == 1,
                  "\"" << tokens.subject().object << "\" of \"" << info.path
                       << "\" is not a one-dimensional array of u16 or u32 (other programs write "
                       << "others); build the data set again");
  info.tokens = tokens.count();
  info.token_bytes = static_cast<std::int64_t>(hdf5::size_bytes(*element));
  info.stored_token_bytes = tokens.stored_bytes();
  info.chunks = tokens.storage().chunk_elements > 0 ? tokens.chunk_count() : 0;
}

void read_documents_info(hdf5::File const& file, DatasetInfo& info) {
  hdf5::Dataset const offsets = open_part(file, format::doc_offsets);
  MOTLEY_VALIDATE(data,
                  offsets.element() == hdf5::Element::u64 && offsets.extents().size() == 1 &&
                      offsets.count() >= 1,
                  "\"" << offsets.subject().object << "\" of \"" << info.path
                       << "\" is not an array of u64 with one value more than documents (other "
                       << "programs write others); build the data set again");
  info.documents = offsets.count() - 1;
}

DatasetInfo read_info(hdf5::File const& file) {
  expect_format(file);
  DatasetInfo info;
  info.path = file.path();
  info.file_bytes = std::filesystem::file_size(file.path());
  read_attributes(file, info);
  read_tokens_info(file, info);
  read_documents_info(file, info);
  info.has_loss_mask = file.contains(object_path(format::loss_mask));
  return info;
}

void expect_not_below(DatasetInfo const& info,
                      std::int64_t index,
                      std::uint64_t offset,
                      std::uint64_t last) {
  MOTLEY_VALIDATE(data,
                  index == 0 ? offset == 0 : offset >= last,
                  "document offset " << index << " of \"" << info.path << "\" is " << offset
                                     << " after " << last
                                     << " (offsets start with 0 and never fall; the file is "
                                     << "damaged); copy or build it again");
}

/// Checks that document offsets rise from 0 to the number of tokens, and hashes them.
void verify_offsets(hdf5::File const& file, DatasetInfo const& info, ContentHash& hash) {
  hdf5::Dataset const dataset = open_part(file, format::doc_offsets);
  std::vector<std::uint64_t> part;
  std::uint64_t last = 0;
  for (std::int64_t first = 0; first < dataset.count(); first += offsets_at_once) {
    part.resize(static_cast<std::size_t>(std::min(offsets_at_once, dataset.count() - first)));
    dataset.read(first, std::span<std::uint64_t>{part});
    hash.add_offsets(part);
    std::int64_t index = first;
    for (std::uint64_t const offset : part) {
      expect_not_below(info, index++, offset, last);
      last = offset;
    }
  }
  MOTLEY_VALIDATE(data,
                  std::cmp_equal(last, info.tokens),
                  "the last document of \"" << info.path << "\" ends at token " << last
                                            << " (there are " << info.tokens
                                            << "; the file is damaged); copy or build it again");
}

/// Reads all chunks of an array in order and gives them to `use`.
template <class Use>
void for_each_chunk(detail::StoredArray const& array, Use&& use) {
  detail::ChunkDecoder decoder{array.chunk_bytes(), array.element_bytes()};
  std::vector<std::byte> bytes(static_cast<std::size_t>(array.chunk_bytes()));
  for (std::int64_t chunk = 0; chunk < array.chunk_count(); ++chunk) {
    array.read_chunk(chunk, decoder, bytes);
    auto const used = static_cast<std::size_t>(array.elements_in(chunk) * array.element_bytes());
    use(chunk, std::span<std::byte const>{bytes}.first(used));
  }
}

}  // namespace

double DatasetInfo::compression_ratio() const noexcept {
  auto const bytes = static_cast<double>(tokens * token_bytes);
  return stored_token_bytes == 0 ? 1.0 : bytes / static_cast<double>(stored_token_bytes);
}

DatasetInfo inspect_dataset(std::string const& path) {
  return read_info(hdf5::File::open_to_read(path));
}

DatasetInfo verify_dataset(std::string const& path, VerifyProgress const& progress) {
  Dataset const dataset{path};
  DatasetInfo const& info = dataset.info();
  ContentHash hash;
  for_each_chunk(dataset.tokens(), [&](std::int64_t chunk, std::span<std::byte const> bytes) {
    hash.add_tokens(bytes);
    std::int64_t const done =
        chunk * dataset.tokens().chunk_elements() + dataset.tokens().elements_in(chunk);
    if (progress) progress(done, info.tokens);
  });
  if (dataset.loss_mask() != nullptr) {
    for_each_chunk(*dataset.loss_mask(), [](std::int64_t, std::span<std::byte const>) {});
  }
  verify_offsets(hdf5::File::open_to_read(path), info, hash);
  std::string const found = hash.finish();
  MOTLEY_VALIDATE(data,
                  found == info.content_hash,
                  "the content of data set \"" << path << "\" has SHA-256 " << found
                                               << " (its attribute says " << info.content_hash
                                               << "; the file is damaged or was changed); copy or "
                                               << "build it again");
  return info;
}

Dataset::Dataset(std::string const& path) {
  hdf5::File const file = hdf5::File::open_to_read(path);
  info_ = read_info(file);
  MOTLEY_VALIDATE(data,
                  info_.tokens >= 1,
                  "data set \"" << path << "\" has no tokens (nothing can be read from it); build "
                                << "it again from a text that is not empty");
  tokens_ = std::make_unique<detail::StoredArray>(
      file, open_part(file, format::tokens), static_cast<std::uint64_t>(info_.vocab));
  if (!info_.has_loss_mask) return;
  loss_mask_ = std::make_unique<detail::StoredArray>(file, open_part(file, format::loss_mask), 2);
  MOTLEY_VALIDATE(data,
                  loss_mask_->count() == info_.tokens && loss_mask_->element_bytes() == 1,
                  "\"" << object_path(format::loss_mask) << "\" of \"" << path << "\" has "
                       << loss_mask_->count() << " values of " << loss_mask_->element_bytes()
                       << " bytes (it needs one byte for each of " << info_.tokens
                       << " tokens); build the data set again");
}

Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

void require_vocab(DatasetInfo const& info, std::int64_t model_vocab) {
  MOTLEY_VALIDATE(data,
                  info.vocab <= model_vocab,
                  "data set \"" << info.path << "\" has a vocabulary of " << info.vocab
                                << " tokens (the model has " << model_vocab
                                << ": model.vocab); set model.vocab to at least " << info.vocab
                                << " or build the data set with the model's tokenizer");
}

}  // namespace motley::io
