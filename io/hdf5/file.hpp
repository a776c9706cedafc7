#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/durable_file.hpp"
#include "io/hdf5/element.hpp"
#include "io/hdf5/handle.hpp"
#include "kernels/base/shape.hpp"

namespace motley::io::hdf5 {

// The main thread alone calls anything in this file: HDF5 is not thread-safe (DESIGN.md §4).
// Every member function throws Error of the kind its file was opened with.

/// "1.10.8"
[[nodiscard]] std::string library_version();

/// The attributes of an open file, group or data set, which outlives this.
class Attributes {
 public:
  Attributes(hid_t object, Subject subject);

  [[nodiscard]] bool contains(std::string const& name) const;
  /// Strings are UTF-8 of any length without zero bytes.
  void set(std::string const& name, std::string_view value);
  void set(std::string const& name, char const* value) { set(name, std::string_view{value}); }
  void set(std::string const& name, std::uint64_t value);
  void set(std::string const& name, std::int64_t value);
  void set(std::string const& name, double value);
  /// Throw if there is no such attribute or it is of another type.
  [[nodiscard]] std::string get_string(std::string const& name) const;
  [[nodiscard]] std::uint64_t get_u64(std::string const& name) const;
  [[nodiscard]] std::int64_t get_i64(std::string const& name) const;
  [[nodiscard]] double get_double(std::string const& name) const;

 private:
  [[nodiscard]] Subject subject_of(std::string const& name) const;
  void set_scalar(std::string const& name, hid_t type, void const* value);
  void get_scalar(std::string const& name, hid_t memory_type, H5T_class_t type, void* value) const;

  hid_t object_;
  Subject subject_;
};

/// How to make a data set. Chunked ones grow along dim 0; contiguous ones have their place in the
/// file from the start and are never filled.
struct DatasetSpec {
  Element element = Element::u8;
  std::vector<std::int64_t> extents;  ///< none: a scalar
  std::int64_t chunk_rows = 0;        ///< rows of dim 0 in a chunk; 0: contiguous
  bool is_shuffled = false;           ///< filters, in this order; chunked only
  int deflate_level = 0;              ///< 0: not compressed
  bool is_checksummed = false;        ///< Fletcher32 of every chunk
};

/// Filters of a chunked data set, in the order in which they were applied when writing.
using FilterId = H5Z_filter_t;

/// How the bytes of a data set lie in the file.
struct StorageLayout {
  std::int64_t chunk_elements = 0;  ///< 0: not chunked
  std::vector<FilterId> filters;
};

/// Place of one chunk in the file. Filter i was left out when writing if bit i of the mask is set.
struct ChunkPlace {
  std::int64_t first_element = 0;
  std::uint64_t offset = 0;  ///< from the start of the file
  std::uint64_t bytes = 0;
  std::uint32_t filter_mask = 0;
  bool operator==(ChunkPlace const&) const = default;
};

class Dataset {
 public:
  Dataset(DatasetHandle handle, Subject subject);

  [[nodiscard]] std::vector<std::int64_t> const& extents() const noexcept { return extents_; }
  /// Number of elements: the product of the extents.
  [[nodiscard]] std::int64_t count() const noexcept;
  /// Empty if the type in the file is none of ours.
  [[nodiscard]] std::optional<Element> element() const;
  [[nodiscard]] Attributes attributes() const;

  /// Reads or writes rows of dim 0; a scalar has one row. Values are converted to or from the
  /// type in the file. Throw Error{bug} if the rows are outside the data set.
  void read_rows(Interval rows, Element element, void* data) const;
  void write_rows(Interval rows, Element element, void const* data);
  /// `data` holds whole rows, from `first_row` on.
  template <class T>
  void read(std::int64_t first_row, std::span<T> data) const {
    read_rows(rows_of(first_row, data.size()), element_of<T>, data.data());
  }
  template <class T>
  void write(std::int64_t first_row, std::span<T const> data) {
    write_rows(rows_of(first_row, data.size()), element_of<T>, data.data());
  }
  template <class T>
  [[nodiscard]] std::vector<T> read_all() const {
    std::vector<T> values(static_cast<std::size_t>(count()));
    read(0, std::span<T>{values});
    return values;
  }
  /// Makes dim 0 of a chunked data set longer or shorter.
  void resize(std::int64_t rows);
  template <class T>
  void append(std::span<T const> data) {
    std::int64_t const first_row = extents_.front();
    Interval const rows = rows_of(first_row, data.size());
    resize(rows.end);
    write_rows(rows, element_of<T>, data.data());
  }
  /// Writes a whole chunk, filtered by the caller (mask: see ChunkPlace), at its first row.
  void write_filtered_chunk(std::int64_t first_row,
                            std::uint32_t filter_mask,
                            std::span<std::byte const> bytes);

  [[nodiscard]] StorageLayout storage() const;
  /// Bytes taken in the file, compressed.
  [[nodiscard]] std::uint64_t stored_bytes() const;
  /// Offset in the file of a contiguous data set; empty if it has none yet.
  [[nodiscard]] std::optional<std::uint64_t> file_offset() const;
  [[nodiscard]] std::int64_t chunk_count() const;
  /// Chunk `index` of those written, in the order of their first elements.
  ///
  /// Cost     HDF5 1.10 walks all chunks before it: 40 ns for each (0.2 µs in files of
  /// version 1.10)
  [[nodiscard]] ChunkPlace chunk(std::int64_t index) const;
  /// All chunks written of a one-dimensional data set, in the order of their first elements.
  ///
  /// Cost     1 µs per chunk in files that File::create made, whatever their number
  [[nodiscard]] std::vector<ChunkPlace> chunks() const;

  [[nodiscard]] hid_t id() const noexcept { return handle_.get(); }
  [[nodiscard]] Subject const& subject() const noexcept { return subject_; }
  /// The orderly end; the destructor only logs what goes wrong.
  void close();

 private:
  [[nodiscard]] std::int64_t row_count() const noexcept;
  [[nodiscard]] Interval rows_of(std::int64_t first_row, std::size_t count) const;
  void load_extents();
  [[nodiscard]] SpaceHandle select_rows(Interval rows) const;
  [[nodiscard]] SpaceHandle memory_space(Interval rows) const;

  Subject subject_;
  DatasetHandle handle_;
  std::vector<std::int64_t> extents_;
};

struct CreateOptions {
  ErrorKind kind = ErrorKind::write;
  std::uint64_t alignment_bytes = 1;  ///< of objects of at least this size
};

/// An HDF5 file. Paths inside it are absolute ("/tokens"); missing groups are made.
class File {
 public:
  /// Makes a new file; what was at `path` is lost. Metadata carry checksums (libver v18).
  [[nodiscard]] static File create(std::string const& path, CreateOptions const& options = {});
  /// Opens without a lock, which some file systems do not have.
  [[nodiscard]] static File open_to_read(std::string const& path, ErrorKind kind = ErrorKind::data);
  [[nodiscard]] static File open_to_write(std::string const& path,
                                          ErrorKind kind = ErrorKind::write);

  [[nodiscard]] bool contains(std::string const& path) const;
  [[nodiscard]] Dataset create_dataset(std::string const& path, DatasetSpec const& spec);
  /// Opens a group, and makes it where it is missing; its parent exists.
  [[nodiscard]] GroupHandle make_group(std::string const& path);
  [[nodiscard]] Dataset open_dataset(std::string const& path) const;
  /// Attributes of the root group.
  [[nodiscard]] Attributes attributes() const;
  /// Names of what is in a group, sorted.
  [[nodiscard]] std::vector<std::string> names(std::string const& group = "/") const;

  [[nodiscard]] std::string const& path() const noexcept { return subject_.file; }
  [[nodiscard]] hid_t id() const noexcept { return handle_.get(); }
  /// The open file once more, for reading beside HDF5 and after `close`.
  [[nodiscard]] FileDescriptor duplicate_descriptor() const;
  /// Hands all written data to the operating system.
  void flush();
  /// The orderly end: a full disk may show only here. Data sets must be closed before.
  void close();

 private:
  File(FileHandle handle, Subject subject);
  [[nodiscard]] Subject subject_of(std::string const& object) const;

  Subject subject_;
  FileHandle handle_;
};

}  // namespace motley::io::hdf5
