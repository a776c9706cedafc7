#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/hash.hpp"

namespace motley::io {

// The layout of a data set in HDF5, known to its writer and its readers.
//
//   /tokens       [tokens]  u16 if vocab <= 65536, else u32, little-endian; chunks of 1 MiB;
//                 filters in this order: shuffle (u32 only), deflate, Fletcher32
//   /doc_offsets  [documents + 1]  u64: the first is 0, the last the number of tokens; chunks of
//                 1 MiB; shuffle, deflate, Fletcher32
//   /loss_mask    [tokens]  u8, optional: 1 = counts in the loss; absent = all count
//
// Attributes of the root: strings are of variable length, UTF-8.
namespace dataset_format {

inline constexpr char const* version = "motley.dataset.v1";

inline constexpr char const* tokens = "tokens";
inline constexpr char const* doc_offsets = "doc_offsets";
inline constexpr char const* loss_mask = "loss_mask";

inline constexpr char const* attr_format = "format";                  ///< string: `version`
inline constexpr char const* attr_vocab = "vocab";                    ///< i64: ids are below it
inline constexpr char const* attr_end_of_text = "end_of_text_id";     ///< i64
inline constexpr char const* attr_tokenizer_hash = "tokenizer_hash";  ///< string: its fingerprint
inline constexpr char const* attr_content_hash = "content_hash";      ///< string: ContentHash, hex
inline constexpr char const* attr_entropy = "unigram_entropy_nats";   ///< f64
/// String: JSON list of {"name": file name, "bytes": size on disk}.
inline constexpr char const* attr_sources = "sources";

inline constexpr std::int64_t chunk_bytes = std::int64_t{1} << 20U;

[[nodiscard]] constexpr std::size_t token_bytes(std::int64_t vocab) noexcept {
  return vocab <= 65536 ? 2 : 4;
}

}  // namespace dataset_format

/// The content hash of a data set: SHA-256 over the 64 bytes SHA-256(bytes of /tokens) followed by
/// SHA-256(bytes of /doc_offsets), both as little-endian elements of their stored width. Two
/// streams, so that writer and verifier need neither array as a whole.
class ContentHash {
 public:
  void add_tokens(std::span<std::byte const> stored) { tokens_.update(stored); }
  void add_offsets(std::span<std::uint64_t const> offsets) {
    static_assert(std::endian::native == std::endian::little);
    offsets_.update(std::as_bytes(offsets));
  }
  /// Ends both streams; 64 hexadecimal digits.
  [[nodiscard]] std::string finish() {
    Digest const tokens = tokens_.finish();
    Digest const offsets = offsets_.finish();
    Sha256 both;
    both.update(std::as_bytes(std::span{tokens}));
    both.update(std::as_bytes(std::span{offsets}));
    return to_hex(both.finish());
  }

 private:
  Sha256 tokens_;
  Sha256 offsets_;
};

}  // namespace motley::io
