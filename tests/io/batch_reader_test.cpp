#include "io/batch_reader.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/base/error.hpp"
#include "tests/io/dataset_file.hpp"
#include "tests/io/scratch.hpp"

namespace motley::io {
namespace {

using hdf5::Element;
using test::DatasetParts;
using test::make_tokens;
using test::Scratch;

/// A window as the reader delivers it.
struct Row {
  std::uint64_t sample = 0;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  bool operator==(Row const&) const = default;
};

std::vector<Row> rows_of(Block const& block) {
  std::vector<Row> rows;
  for (Batch const& batch : block.batches) {
    auto const tokens = static_cast<std::size_t>(batch.tokens);
    for (std::size_t b = 0; b < static_cast<std::size_t>(batch.batch); ++b) {
      auto const inputs = batch.inputs.subspan(b * tokens, tokens);
      auto const targets = batch.targets.subspan(b * tokens, tokens);
      rows.push_back(
          {batch.samples[b], {inputs.begin(), inputs.end()}, {targets.begin(), targets.end()}});
    }
  }
  return rows;
}

std::vector<Row> read_rows(BatchReader& reader, BlockSequence const& sequence, int blocks) {
  reader.start(sequence);
  std::vector<Row> rows;
  for (int i = 0; i < blocks; ++i) {
    std::vector<Row> const block = rows_of(reader.next());
    rows.insert(rows.end(), block.begin(), block.end());
  }
  return rows;
}

/// The window that sample `g` is, straight from the values of the data set.
Row expected_row(DatasetParts const& parts, std::uint64_t g, std::int64_t seq_length) {
  Row row{g, {}, {}};
  for (std::int64_t i = 0; i < seq_length; ++i) {
    auto const at = static_cast<std::size_t>(static_cast<std::int64_t>(g) * seq_length + i);
    bool const counts = parts.loss_mask.empty() || parts.loss_mask[at + 1] != 0;
    row.inputs.push_back(static_cast<std::int32_t>(parts.tokens[at]));
    row.targets.push_back(counts ? static_cast<std::int32_t>(parts.tokens[at + 1]) : -1);
  }
  return row;
}

struct BatchReaderTest : testing::Test {
  DatasetParts write(std::int64_t tokens, std::int64_t chunk = 64) {
    DatasetParts parts;
    parts.tokens = make_tokens(tokens);
    parts.chunk = chunk;
    test::write_dataset(path, parts);
    return parts;
  }
  [[nodiscard]] BatchReader open(ReaderOptions const& options) const {
    return BatchReader{Dataset{path}, options};
  }

  Scratch scratch;
  std::string path = scratch / "data.h5";
};

TEST_F(BatchReaderTest, windows_hold_the_tokens_of_their_sample) {
  DatasetParts const parts = write(1003);
  BatchReader reader = open({.seq_length = 10, .micro_batch = 4});
  EXPECT_EQ(reader.samples_per_epoch(), 100);
  std::vector<Row> const rows = read_rows(reader, {0, 10, 10}, 10);
  std::set<std::uint64_t> samples;
  for (Row const& row : rows) {
    EXPECT_EQ(row, expected_row(parts, row.sample, 10));
    samples.insert(row.sample);
  }
  EXPECT_EQ(samples.size(), 100U);  // one epoch: each sample once
}

TEST_F(BatchReaderTest, the_order_is_that_of_sample_order) {
  write(500);
  BatchReader reader = open({.seq_length = 7, .micro_batch = 3, .seed = 5});
  DataIdentity const identity = reader.info().identity();
  EXPECT_EQ(reader.fingerprint(), data_fingerprint(std::span{&identity, 1}, 7, "train"));
  SampleOrder const order{5, reader.fingerprint(), 71};
  std::vector<Row> const rows = read_rows(reader, {50, 6, 6}, 20);  // over the end of the epoch
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(std::int64_t(rows[i].sample), order.sample(50 + i)) << i;
  }
}

TEST_F(BatchReaderTest, blocks_come_in_micro_batches_of_which_the_last_may_be_smaller) {
  write(1000);
  BatchReader reader = open({.seq_length = 10, .micro_batch = 4});
  reader.start({7, 10, 12});
  for (std::uint64_t k = 0; k < 3; ++k) {
    Block const block = reader.next();
    EXPECT_EQ(block.first, 7 + 12 * k);
    EXPECT_EQ(block.valid_tokens, 100);
    ASSERT_EQ(block.batches.size(), 3U);
    EXPECT_EQ(block.batches[0].batch, 4);
    EXPECT_EQ(block.batches[2].batch, 2);
    EXPECT_EQ(block.batches[2].tokens, 10);
    EXPECT_EQ(block.batches[2].inputs.size(), 20U);
  }
}

TEST_F(BatchReaderTest, shares_of_a_step_put_together_are_the_step) {
  write(3000);
  ReaderOptions const options{.seq_length = 10, .micro_batch = 2};
  BatchReader whole = open(options);
  BatchReader first = open(options);
  BatchReader second = open(options);
  whole.start({0, 7, 7});
  first.start({0, 4, 7});
  second.start({4, 3, 7});
  for (int step = 0; step < 50; ++step) {  // more than one epoch of 299
    std::vector<Row> together = rows_of(first.next());
    std::vector<Row> const rest = rows_of(second.next());
    together.insert(together.end(), rest.begin(), rest.end());
    ASSERT_EQ(together, rows_of(whole.next())) << step;
  }
}

TEST_F(BatchReaderTest, threads_cache_and_prefetch_do_not_change_what_is_delivered) {
  write(5000);
  auto const read = [&](int threads, std::int64_t prefetch, std::size_t cache_bytes) {
    BatchReader reader = open({.seq_length = 33,
                               .micro_batch = 4,
                               .threads = threads,
                               .prefetch_blocks = prefetch,
                               .cache_bytes = cache_bytes});
    return read_rows(reader, {3, 8, 9}, 40);
  };
  std::vector<Row> const expected = read(1, 1, 1 << 20);
  EXPECT_EQ(read(2, 2, 1 << 20), expected);
  EXPECT_EQ(read(7, 3, 1 << 20), expected);
  EXPECT_EQ(read(3, 5, 0), expected);  // a cache of one chunk per thread
  EXPECT_EQ(read(1, 1, 1000), expected);
}

TEST_F(BatchReaderTest, a_restart_anywhere_continues_the_same_order) {
  write(1000);
  ReaderOptions const options{.seq_length = 9, .micro_batch = 4};
  BatchReader reader = open(options);
  std::vector<Row> const all = read_rows(reader, {0, 4, 4}, 60);
  for (std::uint64_t const step : {1, 7, 28, 59}) {
    BatchReader other = open(options);
    std::vector<Row> const later = read_rows(other, {4 * step, 4, 4}, int(60 - step));
    EXPECT_TRUE(std::equal(later.begin(), later.end(), all.begin() + std::int64_t(4 * step)));
    EXPECT_EQ(read_rows(reader, {4 * step, 4, 4}, 1), rows_of([&] {
                other.start({4 * step, 4, 4});
                return other.next();
              }()));
  }
}

TEST_F(BatchReaderTest, validation_reads_in_file_order) {
  DatasetParts const parts = write(100);
  BatchReader reader =
      open({.seq_length = 10, .micro_batch = 4, .order = ReadOrder::in_file, .split = "valid"});
  std::vector<Row> const rows = read_rows(reader, {0, 4, 4}, 3);
  ASSERT_EQ(rows.size(), 12U);
  for (std::uint64_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i], expected_row(parts, i % 9, 10)) << i;
  }
}

TEST_F(BatchReaderTest, masked_targets_are_ignored_and_counted_before_reading) {
  for (std::int64_t const chunk : {0, 64}) {
    DatasetParts parts = write(2000, chunk);
    parts.loss_mask.resize(2000);
    for (std::size_t i = 0; i < 2000; ++i) parts.loss_mask[i] = i % 3 == 0 || i > 1500 ? 1 : 0;
    parts.element = Element::u32;
    test::write_dataset(path, parts);
    BatchReader reader = open({.seq_length = 16, .micro_batch = 4, .cache_bytes = 500});
    reader.start({0, 10, 10});
    for (std::uint64_t k = 0; k < 30; ++k) {
      std::int64_t const announced = reader.valid_tokens(10 * k, 10);
      Block const block = reader.next();
      std::int64_t valid = 0;
      for (Row const& row : rows_of(block)) {
        ASSERT_EQ(row, expected_row(parts, row.sample, 16));
        valid += std::count_if(row.targets.begin(), row.targets.end(), [](std::int32_t target) {
          return target != Batch::ignored_target;
        });
      }
      EXPECT_EQ(block.valid_tokens, valid);
      EXPECT_EQ(announced, valid);
    }
  }
}

TEST_F(BatchReaderTest, without_a_mask_all_targets_count) {
  write(1000);
  BatchReader reader = open({.seq_length = 10});
  EXPECT_EQ(reader.valid_tokens(12345, 7), 70);
}

TEST_F(BatchReaderTest, the_shortest_data_set_is_one_window) {
  DatasetParts const parts = write(11);
  BatchReader reader = open({.seq_length = 10, .micro_batch = 2});
  EXPECT_EQ(reader.samples_per_epoch(), 1);
  EXPECT_EQ(read_rows(reader, {0, 3, 3}, 1), std::vector<Row>(3, expected_row(parts, 0, 10)));
  try {
    static_cast<void>(open({.seq_length = 11}));
    FAIL() << "a window of 12 of 11 tokens";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string_view{error.what()}.find("11 tokens"), std::string_view::npos);
    EXPECT_NE(std::string_view{error.what()}.find("12"), std::string_view::npos);
  }
}

TEST_F(BatchReaderTest, options_and_sequences_out_of_range_are_refused) {
  write(100);
  for (ReaderOptions const& options : {ReaderOptions{.seq_length = 0},
                                       ReaderOptions{.seq_length = 5, .micro_batch = 0},
                                       ReaderOptions{.seq_length = 5, .threads = 0},
                                       ReaderOptions{.seq_length = 5, .prefetch_blocks = 0}}) {
    try {
      static_cast<void>(open(options));
      ADD_FAILURE() << "nothing was thrown";
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
    }
  }
  BatchReader reader = open({.seq_length = 5});
  EXPECT_THROW(static_cast<void>(reader.next()), Error);
  EXPECT_THROW(reader.start({0, 0, 0}), Error);
  EXPECT_THROW(reader.start({0, 4, 3}), Error);
}

TEST_F(BatchReaderTest, what_is_delivered_stays_until_the_next_call) {
  write(3000);
  BatchReader reader = open({.seq_length = 10, .micro_batch = 4, .prefetch_blocks = 1});
  reader.start({0, 8, 8});
  for (int i = 0; i < 20; ++i) {
    Block const block = reader.next();
    std::vector<Row> const before = rows_of(block);
    std::this_thread::sleep_for(std::chrono::milliseconds{1});  // time for threads to go on
    ASSERT_EQ(rows_of(block), before);
  }
}

/// What `next` throws, after how many blocks.
struct Outcome {
  int blocks = 0;
  std::string message;
};

Outcome read_until_error(BatchReader& reader, int most_blocks) {
  Outcome outcome;
  try {
    for (; outcome.blocks < most_blocks; ++outcome.blocks) static_cast<void>(reader.next());
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    outcome.message = error.what();
  }
  return outcome;
}

TEST_F(BatchReaderTest, a_damaged_chunk_is_an_error_of_the_block_that_needs_it) {
  write(10'000);
  hdf5::ChunkPlace const place = [&] {
    hdf5::File const file = hdf5::File::open_to_read(path);
    return file.open_dataset("/tokens").chunk(100);  // tokens 6400 to 6463
  }();
  std::string bytes = test::read_bytes(path);
  bytes[place.offset] = static_cast<char>(bytes[place.offset] ^ 1);
  test::write_bytes(path, bytes);
  for (int const threads : {1, 4}) {
    BatchReader reader =
        open({.seq_length = 16, .micro_batch = 4, .order = ReadOrder::in_file, .threads = threads});
    reader.start({0, 8, 8});
    Outcome const outcome = read_until_error(reader, 100);
    EXPECT_EQ(outcome.blocks, 49);  // window 399 = tokens 6384 to 6400 touches it, in block 49
    EXPECT_NE(outcome.message.find(path), std::string::npos) << outcome.message;
    EXPECT_NE(outcome.message.find("chunk 100"), std::string::npos) << outcome.message;
    EXPECT_NE(outcome.message.find("offset " + std::to_string(place.offset)), std::string::npos);
    EXPECT_EQ(read_until_error(reader, 1).message, outcome.message);  // it does not go away
    reader.start({500, 8, 8});                                        // beyond it
    EXPECT_EQ(read_until_error(reader, 10).blocks, 10);
  }
}

TEST_F(BatchReaderTest, an_id_beyond_the_vocabulary_is_named_with_its_place) {
  DatasetParts parts;
  parts.tokens = make_tokens(1000, 300);
  parts.vocab = 300;
  parts.tokens[567] = 300;
  test::write_dataset(path, parts);
  BatchReader reader = open({.seq_length = 10});
  reader.start({0, 50, 50});
  Outcome const outcome = read_until_error(reader, 2);
  EXPECT_LT(outcome.blocks, 2);
  EXPECT_NE(outcome.message.find("value 300"), std::string::npos) << outcome.message;
  EXPECT_NE(outcome.message.find("element 567"), std::string::npos) << outcome.message;
}

TEST_F(BatchReaderTest, a_file_cut_short_while_it_is_read_is_an_error) {
  write(100'000);
  BatchReader reader = open({.seq_length = 16, .order = ReadOrder::in_file, .cache_bytes = 0});
  reader.start({0, 8, 8});
  static_cast<void>(reader.next());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  Outcome const outcome = read_until_error(reader, 1000);
  EXPECT_LT(outcome.blocks, 1000);
  EXPECT_NE(outcome.message.find("the file ends before it"), std::string::npos) << outcome.message;
}

/// The descriptor through which the open data set of this process is read.
int descriptor_of(std::string const& path) {
  for (auto const& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == path) {
      return std::stoi(entry.path().filename());
    }
  }
  return -1;
}

TEST_F(BatchReaderTest, a_read_error_that_passes_is_not_noticed_and_one_that_stays_is_told) {
  write(100'000);
  BatchReader reader = open({.seq_length = 16, .order = ReadOrder::in_file, .cache_bytes = 0});
  int const descriptor = descriptor_of(path);
  ASSERT_GE(descriptor, 0);
  int const working = dup(descriptor);
  int const broken = ::open("/dev/null", O_WRONLY);  // cannot be read: EBADF
  ASSERT_EQ(dup2(broken, descriptor), descriptor);
  std::thread repair{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    dup2(working, descriptor);
  }};
  reader.start({0, 8, 8});
  EXPECT_EQ(read_until_error(reader, 20).blocks, 20);
  repair.join();

  ASSERT_EQ(dup2(broken, descriptor), descriptor);
  Outcome const outcome = read_until_error(reader, 1000);
  EXPECT_LT(outcome.blocks, 1000);
  EXPECT_NE(outcome.message.find("Bad file descriptor, 4 times"), std::string::npos)
      << outcome.message;
  ::close(broken);
  ::close(working);
}

TEST_F(BatchReaderTest, it_ends_at_any_moment) {
  write(100'000);
  for (int i = 0; i < 30; ++i) {
    BatchReader reader = open({.seq_length = 100, .threads = 3, .cache_bytes = 1000});
    if (i % 3 != 0) reader.start({0, 50, 50});
    if (i % 3 == 2) static_cast<void>(reader.next());
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds{50 * i});
  }
}

TEST_F(BatchReaderTest, waiting_is_counted_and_memory_does_not_grow) {
  write(100'000);
  BatchReader reader = open({.seq_length = 100, .threads = 1, .cache_bytes = 0});
  reader.start({0, 64, 64});
  std::size_t const memory = reader.memory_bytes();
  // 3 blocks of 64 windows of 100 inputs and targets, and 64 samples; chunks of 128 bytes.
  EXPECT_EQ(memory, 3U * 64U * (100U * 8U + 8U) + 2U * 128U);
  double waited_s = 0;
  for (int i = 0; i < 20; ++i) static_cast<void>(reader.next());
  waited_s += reader.take_wait_s();
  EXPECT_GT(waited_s, 0.0);  // nothing is used here, so the reader is the slower one
  EXPECT_EQ(reader.take_wait_s(), 0.0);
  EXPECT_EQ(reader.memory_bytes(), memory);
}

}  // namespace
}  // namespace motley::io
