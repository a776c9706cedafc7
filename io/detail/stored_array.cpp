#include "io/detail/stored_array.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

constexpr std::int64_t contiguous_chunk_bytes = std::int64_t{1} << 20U;
constexpr std::int64_t largest_chunk_bytes = std::int64_t{256} << 20U;
constexpr int read_tries = 4;
constexpr std::chrono::milliseconds first_pause{10};

/// Fills `out` from a place of the file; what is wrong if that does not work. Errors of the system
/// may pass (network file systems), so they are tried again, with growing pauses.
std::string read_fully(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  int tries = 0;
  std::chrono::milliseconds pause = first_pause;
  while (!out.empty()) {
    ssize_t const got = ::pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    if (got == 0) return "the file ends before it";
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      std::string const why = system_error_text(errno);
      if (++tries == read_tries) return why + ", " + std::to_string(read_tries) + " times";
      std::this_thread::sleep_for(pause);
      pause *= 10;
      continue;
    }
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

/// Index of the first value that is not below the limit; -1 if there is none.
template <class T>
std::int64_t first_beyond(std::span<std::byte const> bytes, std::uint64_t limit) {
  std::size_t const count = bytes.size() / sizeof(T);
  auto const* const values = reinterpret_cast<T const*>(bytes.data());
  // The largest value first: that loop has no exit and vectorizes.
  T largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, values[i]);
  if (count == 0 || largest < limit) return -1;
  auto const* const found =
      std::find_if(values, values + count, [&](T value) { return value >= limit; });
  return found - values;
}

std::uint64_t value_at(std::span<std::byte const> bytes, std::int64_t index, std::int64_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + index * width, static_cast<std::size_t>(width));
  return value;
}

std::uint64_t file_bytes_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

StoredArray::StoredArray(hdf5::File const& file, hdf5::Dataset const& dataset, std::uint64_t limit)
    : path_{file.path()},
      name_{dataset.subject().object},
      descriptor_{file.duplicate_descriptor()},
      count_{dataset.count()},
      limit_{limit} {
  std::optional<hdf5::Element> const element = dataset.element();
  bool const is_known = element == hdf5::Element::u8 || element == hdf5::Element::u16 ||
                        element == hdf5::Element::u32;
  MOTLEY_VALIDATE(data,
                  is_known && dataset.extents().size() == 1,
                  "\"" << name_ << "\" of \"" << path_
                       << "\" is not a one-dimensional array of u8, "
                       << "u16 or u32 (motley's reader knows no other); build the data set again");
  element_bytes_ = static_cast<std::int64_t>(hdf5::size_bytes(*element));
  std::uint64_t const file_bytes = file_bytes_of(descriptor_.get());
  hdf5::StorageLayout const storage = dataset.storage();
  if (storage.chunk_elements == 0) {
    load_contiguous(dataset, file_bytes);
    return;
  }
  chunk_elements_ = storage.chunk_elements;
  MOTLEY_VALIDATE(data,
                  chunk_elements_ <= largest_chunk_bytes / element_bytes_,
                  "chunks of \"" << name_ << "\" in \"" << path_ << "\" have " << chunk_elements_
                                 << " elements (a reader keeps several of them in memory; the "
                                 << "limit is 256 MiB); rewrite it with h5repack -l CHUNK=524288");
  load_filters(storage);
  load_chunks(dataset, file_bytes);
}

void StoredArray::load_filters(hdf5::StorageLayout const& storage) {
  for (hdf5::FilterId const id : storage.filters) {
    std::optional<Filter> filter;
    if (id == H5Z_FILTER_DEFLATE) filter = Filter::deflate;
    if (id == H5Z_FILTER_SHUFFLE) filter = Filter::shuffle;
    if (id == H5Z_FILTER_FLETCHER32) filter = Filter::fletcher32;
    MOTLEY_VALIDATE(data,
                    filter.has_value(),
                    "\"" << name_ << "\" of \"" << path_ << "\" has HDF5 filter " << id
                         << " (motley's reader undoes deflate, shuffle and Fletcher32); rewrite it "
                         << "with h5repack -f SHUF -f GZIP=4 -f FLET");
    filters_.push_back(*filter);
  }
}

void StoredArray::load_chunks(hdf5::Dataset const& dataset, std::uint64_t file_bytes) {
  places_ = dataset.chunks();
  std::int64_t const needed = (count_ + chunk_elements_ - 1) / chunk_elements_;
  MOTLEY_VALIDATE(data,
                  chunk_count() == needed,
                  "\"" << name_ << "\" of \"" << path_ << "\" has " << chunk_count()
                       << " chunks where its " << count_ << " elements need " << needed
                       << " (it was not written to the end); build the data set again");
  auto const largest =
      static_cast<std::uint64_t>(ChunkDecoder::largest_stored_bytes(chunk_bytes()));
  for (std::int64_t i = 0; i < needed; ++i) {
    hdf5::ChunkPlace const& place = places_[static_cast<std::size_t>(i)];
    bool const is_inside = place.bytes <= file_bytes && place.offset <= file_bytes - place.bytes;
    MOTLEY_VALIDATE(
        data,
        place.first_element == i * chunk_elements_ && place.bytes <= largest && is_inside,
        "chunk " << i << " of \"" << name_ << "\" in \"" << path_
                 << "\" is said to start with element " << place.first_element << " and to take "
                 << place.bytes << " bytes from offset " << place.offset << " (the file has "
                 << file_bytes << " bytes; it is damaged or cut short); copy or build it again");
  }
}

void StoredArray::load_contiguous(hdf5::Dataset const& dataset, std::uint64_t file_bytes) {
  chunk_elements_ = contiguous_chunk_bytes / element_bytes_;
  if (count_ == 0) return;
  std::optional<std::uint64_t> const offset = dataset.file_offset();
  auto const bytes = static_cast<std::uint64_t>(count_ * element_bytes_);
  MOTLEY_VALIDATE(data,
                  offset && bytes <= file_bytes && *offset <= file_bytes - bytes,
                  "\"" << name_ << "\" of \"" << path_ << "\" is not all in the file (" << bytes
                       << " bytes are needed; it is cut short, external, or kept in its header); "
                       << "copy or build the data set again");
  for (std::int64_t first = 0; first < count_; first += chunk_elements_) {
    std::int64_t const elements = std::min(chunk_elements_, count_ - first);
    places_.push_back({first,
                       *offset + static_cast<std::uint64_t>(first * element_bytes_),
                       static_cast<std::uint64_t>(elements * element_bytes_),
                       0});
  }
}

std::int64_t StoredArray::elements_in(std::int64_t chunk) const noexcept {
  return std::min(chunk_elements_, count_ - chunk * chunk_elements_);
}

std::string StoredArray::try_read(hdf5::ChunkPlace const& place,
                                  ChunkDecoder& decoder,
                                  std::span<std::byte> out) const {
  auto const bytes = static_cast<std::size_t>(place.bytes);
  if (filters_.empty()) {
    if (bytes > out.size()) return "it has " + std::to_string(bytes) + " bytes";
    return read_fully(descriptor_.get(), place.offset, out.first(bytes));
  }
  std::string why =
      read_fully(descriptor_.get(), place.offset, decoder.stored_buffer().first(bytes));
  if (!why.empty()) return why;
  return decoder.decode(bytes, filters_, place.filter_mask, out);
}

void StoredArray::read_chunk(std::int64_t chunk,
                             ChunkDecoder& decoder,
                             std::span<std::byte> out) const {
  MOTLEY_EXPECT(0 <= chunk && chunk < chunk_count());
  MOTLEY_EXPECT(out.size() == static_cast<std::size_t>(chunk_bytes()));
  hdf5::ChunkPlace const& place = places_[static_cast<std::size_t>(chunk)];
  std::string const why = try_read(place, decoder, out);
  MOTLEY_VALIDATE(data,
                  why.empty(),
                  "chunk " << chunk << " of \"" << name_ << "\" in \"" << path_ << "\", "
                           << place.bytes << " bytes at offset " << place.offset
                           << ", cannot be used (" << why
                           << "); check the disk, then copy or build the data set again");
  expect_below_limit(chunk,
                     out.first(static_cast<std::size_t>(elements_in(chunk) * element_bytes_)));
}

void StoredArray::expect_below_limit(std::int64_t chunk, std::span<std::byte const> bytes) const {
  std::int64_t const found = element_bytes_ == 1   ? first_beyond<std::uint8_t>(bytes, limit_)
                             : element_bytes_ == 2 ? first_beyond<std::uint16_t>(bytes, limit_)
                                                   : first_beyond<std::uint32_t>(bytes, limit_);
  MOTLEY_VALIDATE(data,
                  found < 0,
                  "\"" << name_ << "\" of \"" << path_ << "\" has the value "
                       << value_at(bytes, found, element_bytes_) << " at element "
                       << chunk * chunk_elements_ + found << " (values are below " << limit_
                       << "; the file is damaged or its vocab attribute is wrong); copy or build "
                       << "the data set again");
}

}  // namespace motley::io::detail
