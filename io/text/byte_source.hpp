#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace motley::io {

/// The bytes of one file, decompressed.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(ByteSource const&) = delete;
  ByteSource& operator=(ByteSource const&) = delete;
  ByteSource(ByteSource&&) = delete;
  ByteSource& operator=(ByteSource&&) = delete;
  virtual ~ByteSource() = default;

  /// Fills the front of `buffer`; returns how much, less than all of it at the end alone.
  /// Throws Error{data}, naming the file, if it is damaged or cut short.
  [[nodiscard]] virtual std::size_t read(std::span<char> buffer) = 0;
  /// Bytes of the file consumed so far, as it lies on disk.
  [[nodiscard]] virtual std::int64_t file_position() const = 0;
};

/// Opens a plain, gzip or zstd file, told apart by its first bytes. A name that ends in .gz, .dz or
/// .zst promises the format. Throws Error{data} if the file cannot be opened or breaks the promise.
[[nodiscard]] std::unique_ptr<ByteSource> open_byte_source(std::filesystem::path const& path);

}  // namespace motley::io
