#include <functional>
#include <numeric>
#include <utility>

#include "io/hdf5/detail/chunk_index.hpp"
#include "io/hdf5/file.hpp"

namespace motley::io::hdf5 {

Dataset::Dataset(DatasetHandle handle, Subject subject)
    : subject_{std::move(subject)}, handle_{std::move(handle)} {
  load_extents();
}

void Dataset::load_extents() {
  SpaceHandle const space{MOTLEY_HDF5_CHECK(subject_, H5Dget_space(id()))};
  int const order = MOTLEY_HDF5_CHECK(subject_, H5Sget_simple_extent_ndims(space.get()));
  std::vector<hsize_t> extents(static_cast<std::size_t>(order));
  MOTLEY_HDF5_CHECK(subject_, H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr));
  extents_.assign(extents.begin(), extents.end());
}

std::int64_t Dataset::count() const noexcept {
  return std::accumulate(extents_.begin(), extents_.end(), std::int64_t{1}, std::multiplies<>{});
}

std::int64_t Dataset::row_count() const noexcept {
  if (extents_.empty()) return 1;
  return std::accumulate(
      extents_.begin() + 1, extents_.end(), std::int64_t{1}, std::multiplies<>{});
}

Interval Dataset::rows_of(std::int64_t first_row, std::size_t count) const {
  auto const elements = static_cast<std::int64_t>(count);
  std::int64_t const row = row_count();
  MOTLEY_VALIDATE(bug,
                  row == 0 ? elements == 0 : elements % row == 0,
                  elements << " elements are not whole rows of \"" << subject_.object << "\" in \""
                           << subject_.file << "\" (a row has " << row
                           << "); this is a bug of motley, please report it");
  return {first_row, row == 0 ? extents_.front() : first_row + elements / row};
}

std::optional<Element> Dataset::element() const {
  TypeHandle const type{MOTLEY_HDF5_CHECK(subject_, H5Dget_type(id()))};
  return find_element(type.get(), subject_);
}

Attributes Dataset::attributes() const { return {id(), subject_}; }

SpaceHandle Dataset::select_rows(Interval rows) const {
  std::int64_t const limit = extents_.empty() ? 1 : extents_.front();
  MOTLEY_VALIDATE(bug,
                  0 <= rows.begin && rows.begin <= rows.end && rows.end <= limit,
                  "rows " << rows << " are not in \"" << subject_.object << "\" of \""
                          << subject_.file << "\" (it has " << limit
                          << "); this is a bug of motley, please report it");
  SpaceHandle space{MOTLEY_HDF5_CHECK(subject_, H5Dget_space(id()))};
  if (extents_.empty() || count() == 0) return space;
  std::vector<hsize_t> start(extents_.size(), 0);
  std::vector<hsize_t> size(extents_.begin(), extents_.end());
  start.front() = static_cast<hsize_t>(rows.begin);
  size.front() = static_cast<hsize_t>(rows.size());
  MOTLEY_HDF5_CHECK(subject_,
                    H5Sselect_hyperslab(
                        space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr));
  return space;
}

SpaceHandle Dataset::memory_space(Interval rows) const {
  if (extents_.empty()) return SpaceHandle{MOTLEY_HDF5_CHECK(subject_, H5Screate(H5S_SCALAR))};
  std::int64_t const count = rows.size() * row_count();
  auto const elements = static_cast<hsize_t>(count);
  return SpaceHandle{MOTLEY_HDF5_CHECK(subject_, H5Screate_simple(1, &elements, nullptr))};
}

void Dataset::read_rows(Interval rows, Element element, void* data) const {
  SpaceHandle const source = select_rows(rows);
  if (rows.size() * row_count() == 0) return;
  SpaceHandle const target = memory_space(rows);
  TypeHandle const type = make_type(element, subject_);
  MOTLEY_HDF5_CHECK(subject_,
                    H5Dread(id(), type.get(), target.get(), source.get(), H5P_DEFAULT, data));
}

void Dataset::write_rows(Interval rows, Element element, void const* data) {
  SpaceHandle const target = select_rows(rows);
  if (rows.size() * row_count() == 0) return;
  SpaceHandle const source = memory_space(rows);
  TypeHandle const type = make_type(element, subject_);
  MOTLEY_HDF5_CHECK(subject_,
                    H5Dwrite(id(), type.get(), source.get(), target.get(), H5P_DEFAULT, data));
}

void Dataset::resize(std::int64_t rows) {
  MOTLEY_EXPECT(!extents_.empty() && rows >= 0);
  std::vector<hsize_t> extents(extents_.begin(), extents_.end());
  extents.front() = static_cast<hsize_t>(rows);
  MOTLEY_HDF5_CHECK(subject_, H5Dset_extent(id(), extents.data()));
  extents_.front() = rows;
}

void Dataset::write_filtered_chunk(std::int64_t first_row,
                                   std::uint32_t filter_mask,
                                   std::span<std::byte const> bytes) {
  MOTLEY_EXPECT(!extents_.empty());
  std::vector<hsize_t> start(extents_.size(), 0);
  start.front() = static_cast<hsize_t>(first_row);
  MOTLEY_HDF5_CHECK(
      subject_,
      H5Dwrite_chunk(id(), H5P_DEFAULT, filter_mask, start.data(), bytes.size(), bytes.data()));
}

StorageLayout Dataset::storage() const {
  PropertyHandle const creation{MOTLEY_HDF5_CHECK(subject_, H5Dget_create_plist(id()))};
  StorageLayout result;
  H5D_layout_t const layout = MOTLEY_HDF5_CHECK(subject_, H5Pget_layout(creation.get()));
  if (layout != H5D_CHUNKED) return result;
  std::vector<hsize_t> chunk(extents_.size());
  MOTLEY_HDF5_CHECK(subject_,
                    H5Pget_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()));
  result.chunk_elements = static_cast<std::int64_t>(
      std::accumulate(chunk.begin(), chunk.end(), hsize_t{1}, std::multiplies<>{}));
  int const filters = MOTLEY_HDF5_CHECK(subject_, H5Pget_nfilters(creation.get()));
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    result.filters.push_back(MOTLEY_HDF5_CHECK(subject_,
                                               H5Pget_filter2(creation.get(),
                                                              static_cast<unsigned>(i),
                                                              &flags,
                                                              &values,
                                                              nullptr,
                                                              0,
                                                              nullptr,
                                                              nullptr)));
  }
  return result;
}

std::uint64_t Dataset::stored_bytes() const { return H5Dget_storage_size(id()); }

std::optional<std::uint64_t> Dataset::file_offset() const {
  haddr_t const offset = H5Dget_offset(id());
  if (offset == HADDR_UNDEF) return std::nullopt;
  return offset;
}

std::int64_t Dataset::chunk_count() const {
  SpaceHandle const space{MOTLEY_HDF5_CHECK(subject_, H5Dget_space(id()))};
  hsize_t count = 0;
  MOTLEY_HDF5_CHECK(subject_, H5Dget_num_chunks(id(), space.get(), &count));
  return static_cast<std::int64_t>(count);
}

ChunkPlace Dataset::chunk(std::int64_t index) const {
  SpaceHandle const space{MOTLEY_HDF5_CHECK(subject_, H5Dget_space(id()))};
  std::vector<hsize_t> first(extents_.size(), 0);
  unsigned mask = 0;
  haddr_t offset = 0;
  hsize_t bytes = 0;
  MOTLEY_HDF5_CHECK(
      subject_,
      H5Dget_chunk_info(
          id(), space.get(), static_cast<hsize_t>(index), first.data(), &mask, &offset, &bytes));
  return {static_cast<std::int64_t>(first.front()) * row_count(), offset, bytes, mask};
}

std::vector<ChunkPlace> Dataset::chunks() const {
  std::int64_t const count = chunk_count();
  FileHandle const file{MOTLEY_HDF5_CHECK(subject_, H5Iget_file_id(id()))};
  H5O_info_t info{};
  MOTLEY_HDF5_CHECK(subject_, H5Oget_info2(id(), &info, H5O_INFO_BASIC));
  std::optional<std::vector<ChunkPlace>> places =
      detail::read_chunk_index(descriptor_of(file.get(), subject_), info.addr);
  auto const is_same = [&](std::int64_t index) {
    return chunk(index) == (*places)[static_cast<std::size_t>(index)];
  };
  // A few places from HDF5 itself tell whether the file is laid out as we think.
  if (places && std::cmp_equal(places->size(), count) &&
      (count == 0 || (is_same(0) && is_same(count / 2) && is_same(count - 1)))) {
    return *std::move(places);
  }
  std::vector<ChunkPlace> slow;
  slow.reserve(static_cast<std::size_t>(count));
  for (std::int64_t index = 0; index < count; ++index) slow.push_back(chunk(index));
  return slow;
}

void Dataset::close() {
  hid_t const raw = handle_.release();
  MOTLEY_HDF5_CHECK(subject_, H5Dclose(raw));
}

}  // namespace motley::io::hdf5
