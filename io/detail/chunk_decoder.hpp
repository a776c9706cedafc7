#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct libdeflate_decompressor;  // its header stays in chunk_decoder.cpp

namespace motley::io::detail {

/// HDF5's variant of Fletcher's checksum: over 16-bit big-endian words, an odd last byte as the
/// upper half of one more.
///
/// Cost     one pass, in sums of 64 bits that are reduced once per MiB
/// Source   Fletcher, "An arithmetic checksum for serial transmissions", IEEE Trans. Comm. 30
///          (1982); the byte order was read off files that HDF5 wrote (see the test)
[[nodiscard]] std::uint32_t fletcher32(std::span<std::byte const> bytes) noexcept;

/// A filter of HDF5 that we can undo.
enum class Filter { deflate, shuffle, fletcher32 };

/// Undoes the filters of chunks; one per thread. Inflates with libdeflate, which takes a third of
/// zlib's time.
class ChunkDecoder {
 public:
  /// Buffers for chunks of `chunk_bytes`, `element_bytes` each element. Allocates once.
  ChunkDecoder(std::int64_t chunk_bytes, std::int64_t element_bytes);

  /// Most bytes that a chunk of `chunk_bytes` can take in a file.
  [[nodiscard]] static std::int64_t largest_stored_bytes(std::int64_t chunk_bytes);
  /// Where to put the chunk as it is in the file; then call `decode`.
  [[nodiscard]] std::span<std::byte> stored_buffer() noexcept { return stored_; }

  /// Decodes the first `stored_bytes` of the buffer into `out`, a whole chunk.
  ///
  /// @param filters in the order of writing; filter i is left out if bit i of `mask` is set
  /// @return what is wrong with the chunk, for the "why" of a message; empty if nothing is
  [[nodiscard]] std::string decode(std::size_t stored_bytes,
                                   std::span<Filter const> filters,
                                   std::uint32_t mask,
                                   std::span<std::byte> out);

 private:
  struct FreeDecompressor {
    void operator()(libdeflate_decompressor* decompressor) const noexcept;
  };
  /// Inflates `from` into the other buffer; empty if it does not fit or is damaged.
  [[nodiscard]] std::span<std::byte> inflate(std::span<std::byte const> from);

  std::int64_t element_bytes_;
  std::vector<std::byte> stored_;
  std::vector<std::byte> inflated_;
  std::vector<std::byte> unshuffled_;
  std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor_;
};

}  // namespace motley::io::detail
