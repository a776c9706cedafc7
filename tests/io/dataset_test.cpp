#include "io/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/detail/chunk_decoder.hpp"
#include "io/detail/stored_array.hpp"
#include "io/hdf5/file.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/dataset_file.hpp"
#include "tests/io/scratch.hpp"

namespace motley::io {
namespace {

using hdf5::Element;
using test::DatasetParts;
using test::make_tokens;
using test::Scratch;
using test::write_dataset;

template <class Call>
std::string data_error_of(Call&& call) {
  try {
    call();
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

void expect_contains(std::string const& message, std::vector<std::string> const& parts) {
  for (std::string const& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
}

/// All values of an array, read without HDF5.
template <class T>
std::vector<T> decode_all(detail::StoredArray const& array) {
  detail::ChunkDecoder decoder{array.chunk_bytes(), array.element_bytes()};
  std::vector<std::byte> bytes(static_cast<std::size_t>(array.chunk_bytes()));
  std::vector<T> values;
  for (std::int64_t chunk = 0; chunk < array.chunk_count(); ++chunk) {
    array.read_chunk(chunk, decoder, bytes);
    auto const count = static_cast<std::size_t>(array.elements_in(chunk));
    values.resize(values.size() + count);
    std::memcpy(values.data() + values.size() - count, bytes.data(), count * sizeof(T));
  }
  return values;
}

TEST(DatasetTest, the_checksum_is_that_of_hdf5) {
  Scratch const scratch;
  std::vector<std::vector<std::uint8_t>> cases;
  for (std::size_t const size : {1, 2, 3, 4, 5, 719, 720, 721, 100'001, 3'000'000}) {
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * i * 31 + i / 7);
    cases.push_back(bytes);
    cases.emplace_back(size, std::uint8_t{0});
    cases.emplace_back(size, std::uint8_t{255});
  }
  std::string const path = scratch / "sums.h5";
  for (std::vector<std::uint8_t> const& bytes : cases) {
    auto const size = static_cast<std::int64_t>(bytes.size());
    hdf5::File file = hdf5::File::create(path);
    hdf5::Dataset data = file.create_dataset("/x", {Element::u8, {0}, size, false, 0, true});
    data.append(std::span<std::uint8_t const>{bytes});
    file.flush();
    hdf5::ChunkPlace const place = data.chunk(0);
    ASSERT_EQ(place.bytes, bytes.size() + 4);
    std::string const stored = test::read_bytes(path);
    std::uint32_t expected = 0;
    std::memcpy(&expected, stored.data() + place.offset + bytes.size(), 4);
    EXPECT_EQ(detail::fletcher32(std::as_bytes(std::span{bytes})), expected) << size;
  }
}

TEST(DatasetTest, chunks_decode_to_what_hdf5_reads_with_any_filters) {
  Scratch const scratch;
  std::string const path = scratch / "filters.h5";
  for (std::int64_t const chunk : {0, 1, 64, 1000}) {
    for (int filters = 0; filters < 8; ++filters) {
      for (Element const element : {Element::u16, Element::u32}) {
        DatasetParts parts;
        parts.tokens = make_tokens(777);
        parts.element = element;
        parts.chunk = chunk;
        parts.is_shuffled = (filters & 1) != 0;
        parts.deflate_level = (filters & 2) != 0 ? 6 : 0;
        parts.is_checksummed = (filters & 4) != 0;
        parts.loss_mask.assign(777, 1);
        parts.loss_mask[5] = 0;
        write_dataset(path, parts);
        Dataset const data{path};
        SCOPED_TRACE(testing::Message() << chunk << " " << filters << " " << to_string(element));
        std::vector<std::uint32_t> found;
        if (element == Element::u16) {
          std::vector<std::uint16_t> const narrow = decode_all<std::uint16_t>(data.tokens());
          found.assign(narrow.begin(), narrow.end());
        } else {
          found = decode_all<std::uint32_t>(data.tokens());
        }
        EXPECT_EQ(found, parts.tokens);
        EXPECT_EQ(decode_all<std::uint8_t>(*data.loss_mask()), parts.loss_mask);
        EXPECT_NO_THROW(verify_dataset(path));
      }
    }
  }
}

TEST(DatasetTest, filters_that_a_chunk_left_out_are_not_undone) {
  Scratch const scratch;
  std::string const path = scratch / "mask.h5";
  std::vector<std::uint16_t> const values{1, 2, 3, 4, 50000, 6, 7, 8};
  auto const bytes = std::as_bytes(std::span{values});
  {
    hdf5::File file = hdf5::File::create(path);
    hdf5::Dataset data = file.create_dataset("/x", {Element::u16, {8}, 4, true, 6, false});
    data.write(0, std::span<std::uint16_t const>{values}.first(4));
    data.write_filtered_chunk(4, 0b11, bytes.subspan(8));  // neither shuffled nor deflated
    data.close();
    file.close();
  }
  hdf5::File const file = hdf5::File::open_to_read(path);
  hdf5::Dataset const data = file.open_dataset("/x");
  ASSERT_EQ(data.read_all<std::uint16_t>(), values);  // HDF5 agrees
  ASSERT_EQ(data.chunk(1).filter_mask, 3U);
  EXPECT_EQ(decode_all<std::uint16_t>(detail::StoredArray{file, data, 65536}), values);
}

TEST(DatasetTest, a_filter_of_others_is_refused) {
  Scratch const scratch;
  hdf5::File const file = hdf5::File::create(scratch / "nbit.h5");
  hdf5::Subject const subject{"nbit.h5", "/x"};
  hdf5::PropertyHandle const creation{MOTLEY_HDF5_CHECK(subject, H5Pcreate(H5P_DATASET_CREATE))};
  hsize_t const extent = 8;
  MOTLEY_HDF5_CHECK(subject, H5Pset_chunk(creation.get(), 1, &extent));
  MOTLEY_HDF5_CHECK(subject, H5Pset_nbit(creation.get()));
  hdf5::SpaceHandle const space{MOTLEY_HDF5_CHECK(subject, H5Screate_simple(1, &extent, nullptr))};
  hdf5::Dataset const data{hdf5::DatasetHandle{MOTLEY_HDF5_CHECK(subject,
                                                                 H5Dcreate2(file.id(),
                                                                            "x",
                                                                            H5T_STD_U16LE,
                                                                            space.get(),
                                                                            H5P_DEFAULT,
                                                                            creation.get(),
                                                                            H5P_DEFAULT))},
                           subject};
  expect_contains(data_error_of([&] {
                    detail::StoredArray{file, data, 65536};
                  }),
                  {"filter 5", "nbit.h5", "h5repack"});
}

TEST(DatasetTest, inspect_tells_what_is_in_the_file) {
  Scratch const scratch;
  std::string const path = scratch / "data.h5";
  DatasetParts parts;
  parts.tokens = make_tokens(1000, 500);
  parts.vocab = 500;
  parts.documents = {0, 10, 10, 1000};
  write_dataset(path, parts);
  DatasetInfo const info = inspect_dataset(path);
  EXPECT_EQ(info.path, path);
  EXPECT_EQ(info.tokens, 1000);
  EXPECT_EQ(info.documents, 3);
  EXPECT_EQ(info.vocab, 500);
  EXPECT_EQ(info.end_of_text_id, 0);
  EXPECT_EQ(info.token_bytes, 2);
  EXPECT_FALSE(info.has_loss_mask);
  EXPECT_EQ(info.tokenizer_hash, "the tokenizer");
  EXPECT_EQ(info.content_hash, content_hash_of(parts));
  EXPECT_EQ(info.sources, R"([{"name": "text", "bytes": 7}])");
  EXPECT_EQ(info.unigram_entropy_nats, 3.25);
  EXPECT_EQ(info.file_bytes, std::filesystem::file_size(path));
  EXPECT_EQ(info.chunks, 16);
  EXPECT_NEAR(
      info.compression_ratio(), 2000.0 / static_cast<double>(info.stored_token_bytes), 1e-12);
  EXPECT_EQ(verify_dataset(path).tokens, 1000);
}

TEST(DatasetTest, a_copy_under_another_name_has_the_same_identity) {
  Scratch const scratch;
  DatasetParts parts;
  parts.tokens = make_tokens(100);
  write_dataset(scratch / "a.h5", parts);
  parts.chunk = 10;
  write_dataset(scratch / "b.h5", parts);
  parts.tokens[50] ^= 1U;
  write_dataset(scratch / "c.h5", parts);
  auto const fingerprint = [&](char const* name) {
    DataIdentity const identity = inspect_dataset(scratch / name).identity();
    return data_fingerprint(std::span{&identity, 1}, 8, "train");
  };
  EXPECT_EQ(fingerprint("a.h5"), fingerprint("b.h5"));
  EXPECT_NE(fingerprint("a.h5"), fingerprint("c.h5"));
}

TEST(DatasetTest, what_is_missing_or_foreign_is_named) {
  Scratch const scratch;
  std::string const path = scratch / "data.h5";
  auto const error_after = [&](auto&& change) {
    DatasetParts parts;
    parts.tokens = make_tokens(100);
    write_dataset(path, parts);
    change();
    return data_error_of([&] { Dataset{path}; });
  };
  auto const rewrite = [&](auto&& change) {
    return error_after([&] {
      hdf5::File file = hdf5::File::open_to_write(path);
      change(file);
      file.close();
    });
  };
  auto const remove = [](char const* name) {
    return [name](hdf5::File& file) { ASSERT_GE(H5Ldelete(file.id(), name, H5P_DEFAULT), 0); };
  };
  auto const remove_attribute = [](char const* name) {
    return [name](hdf5::File& file) { ASSERT_GE(H5Adelete(file.id(), name), 0); };
  };
  expect_contains(error_after([&] { std::filesystem::remove(path); }), {path, "there is no file"});
  expect_contains(error_after([&] { test::write_bytes(path, "some text"); }), {path, "signature"});
  expect_contains(error_after([&] { test::write_bytes(path, ""); }), {path});
  expect_contains(rewrite(remove("tokens")), {path, "/tokens"});
  expect_contains(rewrite(remove("doc_offsets")), {path, "/doc_offsets"});
  expect_contains(rewrite(remove_attribute("format")), {path, "no data set of motley"});
  for (char const* name : {"vocab", "tokenizer_hash", "content_hash", "unigram_entropy_nats"}) {
    expect_contains(rewrite(remove_attribute(name)), {path, name});
  }
  expect_contains(
      rewrite([](hdf5::File& file) { file.attributes().set("format", "motley.dataset.v9"); }),
      {path, "motley.dataset.v9", "motley.dataset.v1"});
  expect_contains(rewrite([](hdf5::File& file) { file.attributes().set("vocab", "many"); }),
                  {path, "vocab"});
  expect_contains(
      rewrite([](hdf5::File& file) { file.attributes().set("vocab", std::int64_t{0}); }),
      {path, "vocabulary of 0"});
}

TEST(DatasetTest, parts_of_other_types_or_sizes_are_refused) {
  Scratch const scratch;
  std::string const path = scratch / "data.h5";
  auto const error_with = [&](std::string const& name, hdf5::DatasetSpec const& spec) {
    DatasetParts parts;
    parts.tokens = make_tokens(100);
    write_dataset(path, parts);
    hdf5::File file = hdf5::File::open_to_write(path);
    if (file.contains(name)) {
      EXPECT_GE(H5Ldelete(file.id(), name.c_str(), H5P_DEFAULT), 0);
    }
    file.create_dataset(name, spec).close();
    file.close();
    return data_error_of([&] { Dataset{path}; });
  };
  expect_contains(error_with("/tokens", {Element::fp32, {100}}), {path, "/tokens", "u16 or u32"});
  expect_contains(error_with("/tokens", {Element::i32, {100}}), {path, "/tokens"});
  expect_contains(error_with("/tokens", {Element::u16, {10, 10}}), {path, "/tokens"});
  expect_contains(error_with("/tokens", {Element::u16, {}}), {path, "/tokens"});
  expect_contains(error_with("/tokens", {Element::u16, {0}, 64}), {path, "no tokens"});
  expect_contains(error_with("/tokens", {Element::u16, {100}, 64}), {path, "chunks"});  // unwritten
  expect_contains(error_with("/tokens", {Element::u16, {100}, std::int64_t{1} << 30U}),
                  {path, "256 MiB"});
  expect_contains(error_with("/doc_offsets", {Element::u32, {2}}), {path, "/doc_offsets"});
  expect_contains(error_with("/doc_offsets", {Element::u64, {0}}), {path, "/doc_offsets"});
  expect_contains(error_with("/loss_mask", {Element::u8, {99}}), {path, "/loss_mask", "99"});
  expect_contains(error_with("/loss_mask", {Element::u16, {100}}), {path, "/loss_mask"});
}

TEST(DatasetTest, verify_finds_wrong_values_and_their_place) {
  Scratch const scratch;
  std::string const path = scratch / "data.h5";
  auto const error_of = [&](auto&& change) {
    DatasetParts parts;
    parts.vocab = 600;
    parts.tokens = make_tokens(1000, 600);
    change(parts);
    write_dataset(path, parts);
    EXPECT_NO_THROW(static_cast<void>(inspect_dataset(path)));
    return data_error_of([&] { verify_dataset(path); });
  };
  expect_contains(error_of([](DatasetParts& parts) { parts.tokens[777] = 600; }),
                  {path, "value 600", "element 777", "below 600"});
  expect_contains(error_of([](DatasetParts& parts) {
                    parts.element = Element::u32;
                    parts.tokens[999] = 1U << 31U;
                  }),
                  {path, "value 2147483648", "element 999"});
  expect_contains(error_of([](DatasetParts& parts) {
                    parts.documents = {1, 1000};
                  }),
                  {path, "offset 0"});
  expect_contains(error_of([](DatasetParts& parts) {
                    parts.documents = {0, 500, 400, 1000};
                  }),
                  {path, "offset 2", "400 after 500"});
  expect_contains(error_of([](DatasetParts& parts) {
                    parts.documents = {0, 500, 1001};
                  }),
                  {path, "1001"});
  expect_contains(error_of([](DatasetParts& parts) {
                    parts.loss_mask.assign(1000, 1);
                    parts.loss_mask[123] = 2;
                  }),
                  {path, "/loss_mask", "element 123"});
  expect_contains(error_of([](DatasetParts& parts) { parts.content_hash = "0123"; }),
                  {path, "SHA-256", "0123"});
}

TEST(DatasetTest, verify_tells_its_progress) {
  Scratch const scratch;
  std::string const path = scratch / "data.h5";
  DatasetParts parts;
  parts.tokens = make_tokens(150);
  write_dataset(path, parts);
  std::vector<std::int64_t> done;
  verify_dataset(path, [&](std::int64_t tokens, std::int64_t all) {
    EXPECT_EQ(all, 150);
    done.push_back(tokens);
  });
  EXPECT_EQ(done, (std::vector<std::int64_t>{64, 128, 150}));
}

TEST(DatasetTest, a_vocabulary_larger_than_the_models_is_refused) {
  DatasetInfo info;
  info.path = "data.h5";
  info.vocab = 50257;
  EXPECT_NO_THROW(require_vocab(info, 50257));
  expect_contains(data_error_of([&] { require_vocab(info, 50256); }),
                  {"data.h5", "50257", "50256", "model.vocab"});
}

TEST(DatasetTest, a_flipped_bit_of_a_chunk_is_named_with_file_chunk_and_offset) {
  Scratch const scratch;
  std::string const path = scratch / "data.h5";
  DatasetParts parts;
  parts.tokens = make_tokens(1000);
  write_dataset(path, parts);
  hdf5::ChunkPlace const place = [&] {
    hdf5::File const file = hdf5::File::open_to_read(path);
    return file.open_dataset("/tokens").chunk(7);
  }();
  std::string bytes = test::read_bytes(path);
  bytes[place.offset + place.bytes / 2] =
      static_cast<char>(bytes[place.offset + place.bytes / 2] ^ 4);
  test::write_bytes(path, bytes);
  expect_contains(
      data_error_of([&] { verify_dataset(path); }),
      {path, "chunk 7 of \"/tokens\"", "offset " + std::to_string(place.offset), "checksum"});
}

/// What verifying a file ends with, tried in a process of its own: 0 for good, 65 for an error of
/// data, anything else for a crash. A file that passes must say the same as the one it came from.
int verify_apart(std::string const& path, DatasetInfo const& original) {
  pid_t const child = fork();
  if (child == 0) {
    alarm(20);
    try {
      DatasetInfo const info = verify_dataset(path);
      bool const is_same = info.content_hash == original.content_hash &&
                           info.vocab == original.vocab && info.tokens == original.tokens &&
                           info.end_of_text_id == original.end_of_text_id &&
                           info.tokenizer_hash == original.tokenizer_hash &&
                           info.unigram_entropy_nats == original.unigram_entropy_nats &&
                           info.sources == original.sources;
      _exit(is_same ? 0 : 1);
    } catch (Error const& error) {
      _exit(exit_code(error));
    } catch (...) {
      _exit(2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// A small file of every kind of structure.
DatasetInfo write_victim(std::string const& path) {
  DatasetParts parts;
  parts.tokens = make_tokens(300, 300);
  parts.vocab = 300;
  parts.documents = {0, 100, 300};
  parts.loss_mask.assign(300, 1);
  write_dataset(path, parts);
  return verify_dataset(path);
}

TEST(DatasetTest, a_file_cut_short_anywhere_is_refused) {
  Scratch const scratch;
  std::string const path = scratch / "data.h5";
  DatasetInfo const original = write_victim(path);
  std::string const whole = test::read_bytes(path);
  for (std::size_t size = 0; size < whole.size();
       size += std::max<std::size_t>(1, whole.size() / 30)) {
    test::write_bytes(path, whole.substr(0, size));
    EXPECT_EQ(verify_apart(path, original), 65) << size << " of " << whole.size() << " bytes";
  }
}

TEST(DatasetTest, a_bit_flipped_anywhere_never_passes_for_other_data) {
  Scratch const scratch;
  std::string const path = scratch / "data.h5";
  DatasetInfo const original = write_victim(path);
  std::string const whole = test::read_bytes(path);
  // MOTLEY_TEST_FLIPS=all tries every byte: minutes.
  char const* const wanted = std::getenv("MOTLEY_TEST_FLIPS");
  bool const is_thorough = wanted != nullptr && std::string_view{wanted} == "all";
  std::size_t const step = is_thorough ? 1 : whole.size() / 80;
  std::int64_t found = 0;
  for (std::size_t at = 0; at < whole.size(); at += step) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    test::write_bytes(path, bytes);
    int const result = verify_apart(path, original);
    EXPECT_TRUE(result == 0 || result == 65) << "byte " << at << " ends with " << result;
    found += result == 65 ? 1 : 0;
  }
  EXPECT_GT(found, 10);  // most of a small file is empty space
}

}  // namespace
}  // namespace motley::io
