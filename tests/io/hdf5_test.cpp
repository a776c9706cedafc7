#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/hdf5/detail/chunk_index.hpp"
#include "io/hdf5/file.hpp"
#include "tests/io/scratch.hpp"

namespace motley::io::hdf5 {
namespace {

using test::Scratch;

template <class Call>
std::string message_of(ErrorKind kind, Call&& call) {
  try {
    call();
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Hdf5Test, values_of_every_type_come_back) {
  Scratch const scratch;
  std::string const path = scratch / "types.h5";
  auto const check = [&]<class T>(std::vector<T> const& values) {
    {
      File file = File::create(path);
      Dataset data = file.create_dataset(
          "/deep/down", {element_of<T>, {static_cast<std::int64_t>(values.size())}});
      data.write(0, std::span<T const>{values});
      data.close();
      file.close();
    }
    File const file = File::open_to_read(path);
    Dataset const data = file.open_dataset("/deep/down");
    EXPECT_EQ(data.element(), element_of<T>) << to_string(element_of<T>);
    EXPECT_EQ(data.read_all<T>(), values) << to_string(element_of<T>);
  };
  check(std::vector<std::uint8_t>{0, 255});
  check(std::vector<std::uint16_t>{0, 65535});
  check(std::vector<std::uint32_t>{0, 4294967295U});
  check(std::vector<std::uint64_t>{0, ~std::uint64_t{0}});
  check(std::vector<std::int32_t>{-1, 2147483647});
  check(std::vector<std::int64_t>{-1, std::int64_t{1} << 62U});
  check(std::vector<float>{-0.5F, 3e38F});
  check(std::vector<double>{-0.5, 1e300});
}

TEST(Hdf5Test, sixteen_bit_floats_read_as_their_values) {
  // 1, -2.5, 2⁻¹⁰, 65280 in bfloat16 and in IEEE binary16 (65280 = 0x1.FEp15).
  std::vector<float> const expected{1.0F, -2.5F, 0x1p-10F, 65280.0F};
  std::vector<std::uint16_t> const bf16{0x3F80, 0xC020, 0x3A80, 0x477F};
  std::vector<std::uint16_t> const fp16{0x3C00, 0xC100, 0x1400, 0x7BF8};
  Scratch const scratch;
  File file = File::create(scratch / "f16.h5");
  for (Element const element : {Element::bf16, Element::fp16}) {
    Dataset data = file.create_dataset("/" + std::string{to_string(element)}, {element, {4}});
    data.write_rows({0, 4}, element, element == Element::bf16 ? bf16.data() : fp16.data());
    EXPECT_EQ(data.element(), element);
    EXPECT_EQ(data.read_all<float>(), expected) << to_string(element);
  }
}

TEST(Hdf5Test, rows_of_a_matrix_and_a_scalar_are_placed_right) {
  Scratch const scratch;
  File file = File::create(scratch / "rows.h5");
  Dataset matrix = file.create_dataset("/m", {Element::i32, {3, 2}});
  std::vector<std::int32_t> const values{1, 2, 3, 4, 5, 6};
  matrix.write(1, std::span<std::int32_t const>{values}.subspan(2));
  matrix.write(0, std::span<std::int32_t const>{values}.first(2));
  EXPECT_EQ(matrix.read_all<std::int32_t>(), values);
  std::vector<std::int32_t> row(2);
  std::vector<std::int32_t> long_row(3);
  std::vector<std::int32_t> two_rows(4);
  matrix.read(1, std::span<std::int32_t>{row});
  EXPECT_EQ(row, (std::vector<std::int32_t>{3, 4}));
  EXPECT_THROW(matrix.read(2, std::span<std::int32_t>{two_rows}), Error);
  EXPECT_THROW(matrix.read(0, std::span<std::int32_t>{long_row}), Error);

  Dataset scalar = file.create_dataset("/s", {Element::fp64, {}});
  double const value = 2.5;
  scalar.write(0, std::span<double const>{&value, 1});
  EXPECT_EQ(scalar.read_all<double>(), std::vector<double>{2.5});
  Dataset const empty = file.create_dataset("/none", {Element::fp64, {0}});
  EXPECT_TRUE(empty.read_all<double>().empty());
}

TEST(Hdf5Test, contiguous_data_lie_at_the_offset_named) {
  Scratch const scratch;
  std::string const path = scratch / "plain.h5";
  std::vector<std::uint32_t> values(5000);
  std::iota(values.begin(), values.end(), 1U);
  std::uint64_t offset = 0;
  {
    File file = File::create(path, {.alignment_bytes = 4096});
    Dataset data = file.create_dataset("/x", {Element::u32, {5000}});
    offset = data.file_offset().value();
    data.write(0, std::span<std::uint32_t const>{values});
    data.close();
    file.close();
  }
  EXPECT_EQ(offset % 4096, 0U);
  std::ifstream in{path, std::ios::binary};
  in.seekg(static_cast<std::streamoff>(offset));
  std::vector<std::uint32_t> found(values.size());
  in.read(reinterpret_cast<char*>(found.data()), static_cast<std::streamsize>(4 * found.size()));
  EXPECT_EQ(found, values);
}

TEST(Hdf5Test, a_chunked_data_set_grows_and_tells_its_filters) {
  Scratch const scratch;
  std::string const path = scratch / "chunks.h5";
  std::vector<std::uint16_t> values(1000);
  std::iota(values.begin(), values.end(), std::uint16_t{0});
  File file = File::create(path);
  Dataset data = file.create_dataset("/x", {Element::u16, {0}, 64, true, 4, true});
  data.append(std::span<std::uint16_t const>{values}.first(300));
  data.append(std::span<std::uint16_t const>{values}.subspan(300));
  file.flush();
  EXPECT_EQ(data.extents(), std::vector<std::int64_t>{1000});
  EXPECT_EQ(data.read_all<std::uint16_t>(), values);
  StorageLayout const storage = data.storage();
  EXPECT_EQ(storage.chunk_elements, 64);
  EXPECT_EQ(storage.filters,
            (std::vector<FilterId>{H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32}));
  ASSERT_EQ(data.chunk_count(), 16);
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < 16; ++i) {
    ChunkPlace const place = data.chunk(i);
    EXPECT_EQ(place.first_element, 64 * i);
    EXPECT_EQ(place.filter_mask, 0U);
    EXPECT_LE(place.offset + place.bytes, std::filesystem::file_size(path));
    bytes += place.bytes;
  }
  EXPECT_EQ(bytes, data.stored_bytes());
}

TEST(Hdf5Test, all_places_of_chunks_are_those_that_hdf5_tells) {
  Scratch const scratch;
  std::string const path = scratch / "index.h5";
  File file = File::create(path);
  // 3000 chunks need B-tree nodes of three levels; rows of attributes make the header continue.
  Dataset data = file.create_dataset("/x", {Element::u16, {0}, 8, true, 1, true});
  std::vector<std::uint16_t> values(24'000);
  std::iota(values.begin(), values.end(), std::uint16_t{0});
  for (std::size_t at = 0; at < values.size(); at += 6000) {
    data.append(std::span<std::uint16_t const>{values}.subspan(at, 6000));
    data.attributes().set("note" + std::to_string(at), std::string(5000, 'x'));
  }
  EXPECT_TRUE(file.create_dataset("/none", {Element::u16, {0}, 8}).chunks().empty());
  file.flush();
  FileDescriptor const descriptor = file.duplicate_descriptor();
  H5O_info_t info{};
  MOTLEY_HDF5_CHECK(data.subject(), H5Oget_info2(data.id(), &info, H5O_INFO_BASIC));
  auto const fast = detail::read_chunk_index(descriptor.get(), info.addr);
  ASSERT_TRUE(fast.has_value());
  ASSERT_EQ(fast->size(), 3000U);
  for (std::int64_t index = 0; index < 3000; index += 37) {
    ASSERT_EQ((*fast)[static_cast<std::size_t>(index)], data.chunk(index)) << index;
  }
  EXPECT_EQ(data.chunks(), *fast);
}

/// A file in the layout of HDF5 1.10, which has other chunk indexes, or of 1.6.
void write_foreign_file(std::string const& path, H5F_libver_t low) {
  Subject const subject{path, ""};
  PropertyHandle const access{MOTLEY_HDF5_CHECK(subject, H5Pcreate(H5P_FILE_ACCESS))};
  MOTLEY_HDF5_CHECK(subject, H5Pset_libver_bounds(access.get(), low, H5F_LIBVER_LATEST));
  FileHandle const file{MOTLEY_HDF5_CHECK(
      subject, H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()))};
  PropertyHandle const creation{MOTLEY_HDF5_CHECK(subject, H5Pcreate(H5P_DATASET_CREATE))};
  hsize_t const chunk = 10;
  MOTLEY_HDF5_CHECK(subject, H5Pset_chunk(creation.get(), 1, &chunk));
  hsize_t const extent = 100;
  SpaceHandle const space{MOTLEY_HDF5_CHECK(subject, H5Screate_simple(1, &extent, nullptr))};
  DatasetHandle const data{MOTLEY_HDF5_CHECK(
      subject,
      H5Dcreate2(
          file.get(), "x", H5T_STD_U16LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT))};
  std::vector<std::uint16_t> const values(100, 7);
  MOTLEY_HDF5_CHECK(
      subject,
      H5Dwrite(data.get(), H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

TEST(Hdf5Test, places_of_chunks_are_found_in_other_layouts) {
  Scratch const scratch;
  for (H5F_libver_t const low : {H5F_LIBVER_EARLIEST, H5F_LIBVER_V110}) {
    std::string const path = scratch / "foreign.h5";
    write_foreign_file(path, low);
    File const file = File::open_to_read(path);
    Dataset const data = file.open_dataset("/x");
    std::vector<ChunkPlace> const places = data.chunks();
    ASSERT_EQ(places.size(), 10U);
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(places[i].first_element, static_cast<std::int64_t>(10 * i));
      EXPECT_EQ(places[i].bytes, 20U);
    }
  }
}

TEST(Hdf5Test, attributes_come_back_and_may_be_long) {
  Scratch const scratch;
  std::string const path = scratch / "attributes.h5";
  std::string const long_text(200'000, 'x');  // an object header ends at 64 KiB
  {
    File file = File::create(path);
    Attributes attributes = file.attributes();
    attributes.set("text", "first");
    attributes.set("text", "żółw");
    attributes.set("empty", "");
    attributes.set("long", long_text);
    attributes.set("count", ~std::uint64_t{0});
    attributes.set("least", std::int64_t{-7});
    attributes.set("ratio", 0.1);
    Dataset data = file.create_dataset("/x", {Element::u8, {1}});
    data.attributes().set("unit", "nats");
    data.close();
    file.close();
  }
  File const file = File::open_to_read(path);
  Attributes const attributes = file.attributes();
  EXPECT_EQ(attributes.get_string("text"), "żółw");
  EXPECT_EQ(attributes.get_string("empty"), "");
  EXPECT_EQ(attributes.get_string("long"), long_text);
  EXPECT_EQ(attributes.get_u64("count"), ~std::uint64_t{0});
  EXPECT_EQ(attributes.get_i64("least"), -7);
  EXPECT_EQ(attributes.get_double("ratio"), 0.1);
  EXPECT_EQ(file.open_dataset("/x").attributes().get_string("unit"), "nats");
  EXPECT_TRUE(attributes.contains("ratio"));
  EXPECT_FALSE(attributes.contains("radio"));
  message_of(ErrorKind::data, [&] { return attributes.get_u64("text"); });
  std::string const message =
      message_of(ErrorKind::data, [&] { return attributes.get_string("radio"); });
  EXPECT_NE(message.find("radio"), std::string::npos) << message;
}

TEST(Hdf5Test, a_variable_length_string_is_read) {
  Scratch const scratch;
  File const file = File::create(scratch / "variable.h5");
  Subject const subject{"variable.h5", ""};
  TypeHandle const type{MOTLEY_HDF5_CHECK(subject, H5Tcopy(H5T_C_S1))};
  MOTLEY_HDF5_CHECK(subject, H5Tset_size(type.get(), H5T_VARIABLE));
  SpaceHandle const space{MOTLEY_HDF5_CHECK(subject, H5Screate(H5S_SCALAR))};
  AttributeHandle const attribute{MOTLEY_HDF5_CHECK(
      subject, H5Acreate2(file.id(), "text", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT))};
  char const* text = "of any length";
  auto const* const value = static_cast<void const*>(&text);
  MOTLEY_HDF5_CHECK(subject, H5Awrite(attribute.get(), type.get(), value));
  EXPECT_EQ(file.attributes().get_string("text"), "of any length");
}

TEST(Hdf5Test, names_and_contains_see_groups) {
  Scratch const scratch;
  File file = File::create(scratch / "names.h5");
  for (char const* path : {"/b/two", "/b/one", "/a"}) {
    file.create_dataset(path, {Element::u8, {1}}).close();
  }
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(file.names("/b"), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(file.contains("/b/two"));
  EXPECT_FALSE(file.contains("/c/two"));
}

TEST(Hdf5Test, a_missing_or_foreign_file_is_named_and_nothing_is_printed) {
  Scratch const scratch;
  std::string const missing = scratch / "missing.h5";
  std::string const foreign = scratch / "foreign.h5";
  std::ofstream{foreign} << "this is not HDF5";
  testing::internal::CaptureStderr();
  std::string const no_file =
      message_of(ErrorKind::data, [&] { return File::open_to_read(missing); });
  std::string const no_hdf5 = message_of(
      ErrorKind::checkpoint, [&] { return File::open_to_read(foreign, ErrorKind::checkpoint); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(no_file.find(missing), std::string::npos) << no_file;
  EXPECT_NE(no_hdf5.find(foreign), std::string::npos) << no_hdf5;
  EXPECT_NE(no_hdf5.find("file signature not found"), std::string::npos) << no_hdf5;
}

TEST(Hdf5Test, a_locked_file_tells_of_the_environment_variable) {
  Scratch const scratch;
  std::string const path = scratch / "locked.h5";
  File::create(path).close();
  int const other = ::open(path.c_str(), O_RDWR);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  std::string const message =
      message_of(ErrorKind::write, [&] { File::open_to_write(path).close(); });
  EXPECT_NE(message.find("HDF5_USE_FILE_LOCKING"), std::string::npos) << message;
  EXPECT_NO_THROW(File::open_to_read(path).close());
  ::close(other);
}

TEST(Hdf5Test, closing_a_file_before_its_data_set_is_an_error) {
  Scratch const scratch;
  File file = File::create(scratch / "order.h5");
  Dataset const data = file.create_dataset("/x", {Element::u8, {1}});
  message_of(ErrorKind::write, [&] { file.close(); });
}

/// What writing 2 MiB ends with where files may not grow beyond 1 MiB: an exit code.
int write_beyond_limit(std::string const& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit const limit{1 << 20, 1 << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
  try {
    File file = File::create(path);
    Dataset data = file.create_dataset("/x", {Element::u8, {0}, 1 << 16});
    std::vector<std::uint8_t> const values(1 << 21);
    data.append(std::span<std::uint8_t const>{values});
    data.close();
    file.close();
  } catch (Error const& error) {
    return exit_code(error);
  }
  return 0;
}

TEST(Hdf5Test, a_full_disk_is_an_error_of_close_at_the_latest) {
  // In a process of its own: HDF5 cannot forget a file that it could not write.
  Scratch const scratch;
  EXPECT_EXIT(std::exit(write_beyond_limit(scratch / "full.h5")), testing::ExitedWithCode(73), "");
}

}  // namespace
}  // namespace motley::io::hdf5
