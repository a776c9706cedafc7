#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "io/dataset_format.hpp"
#include "io/hdf5/file.hpp"

namespace motley::test {

/// What a test writes into a data set, right or wrong.
struct DatasetParts {
  std::vector<std::uint32_t> tokens;
  std::int64_t vocab = 65536;
  io::hdf5::Element element = io::hdf5::Element::u16;
  std::int64_t chunk = 64;  ///< elements; 0: contiguous
  bool is_shuffled = true;
  int deflate_level = 4;
  bool is_checksummed = true;
  std::vector<std::uint8_t> loss_mask;   ///< none if empty
  std::vector<std::uint64_t> documents;  ///< offsets; one document if empty
  std::string format = io::dataset_format::version;
  std::optional<std::string> content_hash;  ///< instead of the right one
};

/// Tokens 0, 1, 2, … below `vocab` in an order that does not repeat soon.
inline std::vector<std::uint32_t> make_tokens(std::int64_t count, std::int64_t vocab = 65536) {
  std::vector<std::uint32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::uint32_t>((i * 7919 + i / 97) % static_cast<std::size_t>(vocab));
  }
  return tokens;
}

template <class T>
void write_part(io::hdf5::File& file,
                std::string const& name,
                DatasetParts const& parts,
                std::vector<T> const& values) {
  bool const is_chunked = parts.chunk > 0;
  io::hdf5::Dataset data =
      file.create_dataset(name,
                          {io::hdf5::element_of<T>,
                           {is_chunked ? 0 : static_cast<std::int64_t>(values.size())},
                           parts.chunk,
                           parts.is_shuffled,
                           parts.deflate_level,
                           parts.is_checksummed});
  if (is_chunked) {
    data.append(std::span<T const>{values});
  } else {
    data.write(0, std::span<T const>{values});
  }
  data.close();
}

inline std::vector<std::uint64_t> documents_of(DatasetParts const& parts) {
  if (!parts.documents.empty()) return parts.documents;
  return {0, parts.tokens.size()};
}

/// The content hash as the format defines it, from the values alone.
inline std::string content_hash_of(DatasetParts const& parts) {
  io::ContentHash hash;
  if (parts.element == io::hdf5::Element::u16) {
    std::vector<std::uint16_t> const narrow(parts.tokens.begin(), parts.tokens.end());
    hash.add_tokens(std::as_bytes(std::span{narrow}));
  } else {
    hash.add_tokens(std::as_bytes(std::span{parts.tokens}));
  }
  hash.add_offsets(documents_of(parts));
  return hash.finish();
}

inline void write_dataset(std::string const& path, DatasetParts const& parts) {
  namespace format = io::dataset_format;
  io::hdf5::File file = io::hdf5::File::create(path);
  if (parts.element == io::hdf5::Element::u16) {
    write_part(file,
               "/tokens",
               parts,
               std::vector<std::uint16_t>(parts.tokens.begin(), parts.tokens.end()));
  } else {
    write_part(file, "/tokens", parts, parts.tokens);
  }
  write_part(file, "/doc_offsets", parts, documents_of(parts));
  if (!parts.loss_mask.empty()) write_part(file, "/loss_mask", parts, parts.loss_mask);
  io::hdf5::Attributes attributes = file.attributes();
  attributes.set(format::attr_format, parts.format);
  attributes.set(format::attr_vocab, parts.vocab);
  attributes.set(format::attr_end_of_text, std::int64_t{0});
  attributes.set(format::attr_tokenizer_hash, "the tokenizer");
  attributes.set(format::attr_content_hash, parts.content_hash.value_or(content_hash_of(parts)));
  attributes.set(format::attr_sources, R"([{"name": "text", "bytes": 7}])");
  attributes.set(format::attr_entropy, 3.25);
  file.close();
}

inline std::string read_bytes(std::string const& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

inline void write_bytes(std::string const& path, std::string const& bytes) {
  std::ofstream out{path, std::ios::binary};
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace motley::test
