#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/detail/chunk_decoder.hpp"
#include "io/durable_file.hpp"
#include "io/hdf5/file.hpp"

namespace motley::io::detail {

/// A one-dimensional array of unsigned integers in an HDF5 file, read chunk by chunk without HDF5
/// and from any number of threads. A contiguous one is treated as chunks of 1 MiB.
class StoredArray {
 public:
  /// Main thread only (HDF5).
  ///
  /// @param limit values of the array are below it
  /// Throws   Error{data} if it is not one-dimensional, has filters that we do not know, or its
  ///          chunks are not all there
  StoredArray(hdf5::File const& file, hdf5::Dataset const& dataset, std::uint64_t limit);

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t element_bytes() const noexcept { return element_bytes_; }
  [[nodiscard]] std::int64_t chunk_elements() const noexcept { return chunk_elements_; }
  [[nodiscard]] std::int64_t chunk_bytes() const noexcept {
    return chunk_elements_ * element_bytes_;
  }
  [[nodiscard]] std::int64_t chunk_count() const noexcept {
    return static_cast<std::int64_t>(places_.size());
  }
  /// Elements of the array in a chunk: fewer than `chunk_elements` in the last one.
  [[nodiscard]] std::int64_t elements_in(std::int64_t chunk) const noexcept;

  /// Reads, checks and decodes a chunk. What lies behind the end of the array is undefined.
  ///
  /// @param out has `chunk_bytes` bytes
  /// Throws   Error{data} naming file, chunk and offset if it cannot be read in four tries, is
  ///          damaged, or holds a value that reaches `limit`
  void read_chunk(std::int64_t chunk, ChunkDecoder& decoder, std::span<std::byte> out) const;

 private:
  void load_filters(hdf5::StorageLayout const& storage);
  void load_chunks(hdf5::Dataset const& dataset, std::uint64_t file_bytes);
  void load_contiguous(hdf5::Dataset const& dataset, std::uint64_t file_bytes);
  [[nodiscard]] std::string try_read(hdf5::ChunkPlace const& place,
                                     ChunkDecoder& decoder,
                                     std::span<std::byte> out) const;
  void expect_below_limit(std::int64_t chunk, std::span<std::byte const> bytes) const;

  std::string path_;
  std::string name_;
  FileDescriptor descriptor_;
  std::int64_t count_ = 0;
  std::int64_t element_bytes_ = 0;
  std::int64_t chunk_elements_ = 0;
  std::uint64_t limit_ = 0;
  std::vector<Filter> filters_;
  std::vector<hdf5::ChunkPlace> places_;
};

}  // namespace motley::io::detail
