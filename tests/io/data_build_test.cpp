#include "io/data_build.hpp"

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "io/dataset_format.hpp"
#include "io/dataset_writer.hpp"
#include "io/hash.hpp"
#include "io/hdf5/file.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/compressed.hpp"
#include "tests/io/text_fixture.hpp"

namespace motley::io {
namespace {

using test::Scratch;
using test::write_file;
using Strings = std::vector<std::string>;

constexpr std::int32_t end_id = 256;  // of the tokenizer below

/// A tokenizer whose ids beyond the bytes are a few merges.
Tokenizer small_tokenizer() {
  BpeModel model = test::bytes_model();
  test::add_merge(model, "l", "o");
  test::add_merge(model, " ", "t");
  test::add_merge(model, "lo", "w");
  test::add_merge(model, " ", " ");
  return Tokenizer{std::move(model)};
}

/// A data set as any HDF5 program reads it.
struct Stored {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> offsets;
  std::map<std::string, std::string> strings;
  double entropy = 0.0;
  std::int64_t vocab = 0;

  explicit Stored(std::string const& path) {
    hdf5::File const file = hdf5::File::open_to_read(path);
    tokens = file.open_dataset("/tokens").read_all<std::int32_t>();
    offsets = file.open_dataset("/doc_offsets").read_all<std::uint64_t>();
    hdf5::Attributes const attributes = file.attributes();
    for (char const* name : {"format", "tokenizer_hash", "content_hash", "sources"}) {
      strings[name] = attributes.get_string(name);
    }
    entropy = attributes.get_double("unigram_entropy_nats");
    vocab = attributes.get_i64("vocab");
  }

  /// Text of each document; also checks the offsets and the ends of documents.
  [[nodiscard]] Strings documents(Tokenizer const& tokenizer) const {
    Strings texts;
    EXPECT_EQ(offsets.front(), 0U);
    EXPECT_EQ(offsets.back(), tokens.size());
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      std::vector<std::int32_t> const ids(
          tokens.begin() + static_cast<std::ptrdiff_t>(offsets[i]),
          tokens.begin() + static_cast<std::ptrdiff_t>(offsets[i + 1]));
      EXPECT_EQ(ids.back(), end_id);
      texts.push_back(tokenizer.decode(std::span{ids}.first(ids.size() - 1)));
    }
    return texts;
  }
};

BuildOptions options_for(Scratch const& folder, std::string const& name) {
  BuildOptions options;
  options.files = {folder / name};
  options.output = folder / "train.h5";
  return options;
}

ErrorKind kind_of_failure(BuildOptions const& options, std::string* message = nullptr) {
  try {
    static_cast<void>(build_dataset(options, small_tokenizer()));
  } catch (Error const& error) {
    if (message != nullptr) *message = error.what();
    return error.kind();
  }
  return ErrorKind::bug;
}

Strings many_documents(int count) {
  std::mt19937 random{31};
  Strings documents;
  for (int i = 0; i < count; ++i) documents.push_back("doc " + std::to_string(random()));
  return documents;
}

std::string json_lines(Strings const& documents) {
  std::string lines;
  for (std::string const& text : documents)
    lines.append("{\"text\": \"").append(text).append("\"}\n");
  return lines;
}

TEST(DataBuildTest, documents_come_in_order_each_with_its_end) {
  Scratch const folder;
  Tokenizer const tokenizer = small_tokenizer();
  Strings const documents = many_documents(300);
  write_file(folder / "a.jsonl", json_lines(documents));
  write_file(folder / "b.txt", "low \xff\xfe <|endoftext|>\r\n");
  BuildOptions options = options_for(folder, "a.jsonl");
  options.files.emplace_back(folder / "b.txt");
  options.text.piece_bytes = 1000;
  BuildResult const result = build_dataset(options, tokenizer);

  Stored const stored{folder / "train.h5"};
  Strings expected = documents;
  expected.emplace_back("low \xff\xfe <|endoftext|>\r\n");
  EXPECT_EQ(stored.documents(tokenizer), expected);
  std::vector<std::int32_t> ids;
  for (std::string const& text : expected) {
    for (std::int32_t const id : tokenizer.encode(text)) ids.push_back(id);
    ids.push_back(end_id);
  }
  EXPECT_EQ(stored.tokens, ids);
  EXPECT_FALSE(result.valid.has_value());
  EXPECT_EQ(result.train.documents, 301);
  EXPECT_EQ(result.train.tokens, static_cast<std::int64_t>(ids.size()));
  EXPECT_EQ(
      result.train.text_bytes,
      std::accumulate(expected.begin(), expected.end(), std::int64_t{0}, [](auto sum, auto& text) {
        return sum + static_cast<std::int64_t>(text.size());
      }));
}

TEST(DataBuildTest, attributes_say_what_is_in_it) {
  Scratch const folder;
  Tokenizer const tokenizer = small_tokenizer();
  write_file(folder / "a.txt", "aabb");
  BuildResult const result = build_dataset(options_for(folder, "a.txt"), tokenizer);
  Stored const stored{folder / "train.h5"};
  EXPECT_EQ(stored.strings.at("format"), "motley.dataset.v1");
  EXPECT_EQ(stored.strings.at("tokenizer_hash"), tokenizer.fingerprint());
  EXPECT_EQ(stored.strings.at("sources"), R"([{"name":"a.txt","bytes":4}])");
  EXPECT_EQ(stored.vocab, tokenizer.vocab_size());
  // a, a, b, b, end: twice 2/5 and once 1/5.
  double const entropy = -(2 * 0.4 * std::log(0.4) + 0.2 * std::log(0.2));
  EXPECT_NEAR(stored.entropy, entropy, 1e-15);
  EXPECT_NEAR(result.train.unigram_entropy_nats, entropy, 1e-15);
  // By its definition, from the bytes: 'a' is id 64 ('!' is 0), the end 256; offsets 0 and 5.
  std::string const tokens{"\x40\0\x40\0\x41\0\x41\0\0\x01", 10};
  std::string const offsets{"\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0", 16};
  Sha256 both;
  for (std::string const& bytes : {tokens, offsets}) {
    Sha256 hash;
    hash.update(bytes);
    Digest const digest = hash.finish();
    both.update(std::as_bytes(std::span{digest}));
  }
  EXPECT_EQ(stored.strings.at("content_hash"), to_hex(both.finish()));
  EXPECT_EQ(result.train.content_hash, stored.strings.at("content_hash"));
}

TEST(DataBuildTest, threads_and_compression_change_no_byte) {
  Scratch const folder;
  std::mt19937 random{37};
  std::string const text = test::random_text(random, 60000);
  write_file(folder / "a.txt", text);
  BuildOptions options = options_for(folder, "a.txt");
  options.text.piece_bytes = 4096;
  std::string const hash = build_dataset(options, small_tokenizer()).train.content_hash;
  std::string const bytes = test::read_file(options.output);
  EXPECT_EQ(Stored{options.output.string()}.documents(small_tokenizer()), Strings{text});
  options.overwrite = true;
  for (int const threads : {2, 5}) {
    options.threads = threads;
    static_cast<void>(build_dataset(options, small_tokenizer()));
    EXPECT_TRUE(test::read_file(options.output) == bytes) << threads;
  }
  for (auto const& [name, packed] :
       {std::pair{"a.gz", test::gzip(text)}, std::pair{"a.zst", test::zstd(text)}}) {
    write_file(folder / name, packed);
    options.files = {folder / name};
    EXPECT_EQ(build_dataset(options, small_tokenizer()).train.content_hash, hash) << name;
  }
}

TEST(DataBuildTest, a_large_vocabulary_is_stored_in_32_bits) {
  Scratch const folder;
  BpeModel model = test::bytes_model();
  for (std::int32_t left = 0; left < 256; ++left) {
    for (std::int32_t right = 0; right < 256; ++right) {
      model.merges.push_back({left, right, static_cast<std::int32_t>(model.tokens.size())});
      model.tokens.push_back(model.tokens[static_cast<std::size_t>(left)] +
                             model.tokens[static_cast<std::size_t>(right)]);
    }
  }
  Tokenizer const tokenizer{std::move(model)};
  ASSERT_GT(tokenizer.vocab_size(), 65536);
  // Its bytes are F0 9F AD AD; the last two are the last byte of the alphabet: the last merge.
  write_file(folder / "a.txt", "\U0001fb6d");
  static_cast<void>(build_dataset(options_for(folder, "a.txt"), tokenizer));
  hdf5::File const file = hdf5::File::open_to_read(folder / "train.h5");
  EXPECT_EQ(file.open_dataset("/tokens").element(), hdf5::Element::u32);
  std::vector<std::int32_t> const tokens = Stored{folder / "train.h5"}.tokens;
  EXPECT_EQ(tokens.at(1), 65792);
  EXPECT_EQ(tokenizer.decode(std::span{tokens}.first(tokens.size() - 1)), "\U0001fb6d");
}

TEST(DataBuildTest, the_tail_of_one_document_becomes_the_validation_set) {
  Scratch const folder;
  std::mt19937 random{41};
  std::string const text = test::random_text(random, 20000);
  write_file(folder / "a.txt", text);
  for (std::int64_t const piece_bytes : {512, 1 << 20}) {
    BuildOptions options = options_for(folder, "a.txt");
    options.text.piece_bytes = piece_bytes;
    options.valid_output = folder / "valid.h5";
    options.valid_fraction = 0.2;
    options.overwrite = true;
    BuildResult const result = build_dataset(options, small_tokenizer());
    Strings const head = Stored{folder / "train.h5"}.documents(small_tokenizer());
    Strings const tail = Stored{folder / "valid.h5"}.documents(small_tokenizer());
    ASSERT_EQ(head.size(), 1U);
    ASSERT_EQ(tail.size(), 1U);
    EXPECT_EQ(head[0] + tail[0], text);
    EXPECT_NEAR(static_cast<double>(tail[0].size()), 0.2 * static_cast<double>(text.size()), 200);
    EXPECT_EQ(result.valid.value().text_bytes, static_cast<std::int64_t>(tail[0].size()));
  }
}

TEST(DataBuildTest, the_tail_of_many_documents_is_whole_documents) {
  Scratch const folder;
  Strings const documents = many_documents(1000);
  write_file(folder / "a.jsonl", json_lines(documents));
  BuildOptions options = options_for(folder, "a.jsonl");
  options.valid_output = folder / "valid.h5";
  options.valid_fraction = 0.25;
  static_cast<void>(build_dataset(options, small_tokenizer()));
  Strings both = Stored{folder / "train.h5"}.documents(small_tokenizer());
  EXPECT_NEAR(static_cast<double>(both.size()), 750.0, 10.0);
  for (std::string& text : Stored{folder / "valid.h5"}.documents(small_tokenizer())) {
    both.push_back(std::move(text));
  }
  EXPECT_EQ(both, documents);
}

TEST(DataBuildTest, drawn_documents_keep_copies_together) {
  Scratch const folder;
  Strings documents = many_documents(2000);
  Strings const copies{documents.begin(), documents.begin() + 500};
  documents.insert(documents.end(), copies.begin(), copies.end());
  write_file(folder / "a.jsonl", json_lines(documents));
  BuildOptions options = options_for(folder, "a.jsonl");
  options.valid_output = folder / "valid.h5";
  options.valid_fraction = 0.1;
  options.valid_split = ValidSplit::documents;
  static_cast<void>(build_dataset(options, small_tokenizer()));
  std::map<std::string, int> seen;
  for (std::string const& text : Stored{folder / "train.h5"}.documents(small_tokenizer())) {
    seen[text] |= 1;
  }
  Strings const valid = Stored{folder / "valid.h5"}.documents(small_tokenizer());
  for (std::string const& text : valid) seen[text] |= 2;
  EXPECT_EQ(seen.size(), 2000U);
  for (auto const& [text, sides] : seen) EXPECT_NE(sides, 3) << text;
  // Binomial of 2000 at 0.1, five standard deviations; copies add up to a quarter.
  EXPECT_GT(valid.size(), 133U);
  EXPECT_LT(valid.size(), 334U);
}

TEST(DataBuildTest, a_validation_set_without_documents_is_refused) {
  Scratch const folder;
  write_file(folder / "a.txt", "one document");
  BuildOptions options = options_for(folder, "a.txt");
  options.valid_output = folder / "valid.h5";
  options.valid_fraction = 0.5;
  options.valid_split = ValidSplit::documents;
  std::string message;
  EXPECT_EQ(kind_of_failure(options, &message), ErrorKind::data);
  EXPECT_NE(message.find("would be empty"), std::string::npos) << message;
  EXPECT_EQ(test::names_in(folder.path()), Strings{"a.txt"});
}

TEST(DataBuildTest, what_exists_is_not_replaced_unasked) {
  Scratch const folder;
  write_file(folder / "a.txt", "text");
  write_file(folder / "train.h5", "precious");
  BuildOptions options = options_for(folder, "a.txt");
  std::string message;
  EXPECT_EQ(kind_of_failure(options, &message), ErrorKind::usage);
  EXPECT_NE(message.find("train.h5"), std::string::npos);
  EXPECT_EQ(test::read_file(folder / "train.h5"), "precious");
  options.overwrite = true;
  static_cast<void>(build_dataset(options, small_tokenizer()));
  EXPECT_EQ(Stored{folder / "train.h5"}.documents(small_tokenizer()), Strings{"text"});
  options.output = folder / "a.txt";  // not even then
  EXPECT_EQ(kind_of_failure(options), ErrorKind::usage);
}

TEST(DataBuildTest, bad_input_leaves_no_file) {
  Scratch const folder;
  std::string const good = json_lines(many_documents(3000));
  write_file(folder / "bad.jsonl", good + "{\"text\": 1}\n" + good);
  std::string const packed = test::gzip(good);
  write_file(folder / "cut.jsonl.gz", packed.substr(0, packed.size() - 20));
  Strings const before = test::names_in(folder.path());
  for (auto const& [name, naming] : {std::pair{"bad.jsonl", "line 3001"},
                                     std::pair{"cut.jsonl.gz", "cut short"},
                                     std::pair{"none.txt", "none.txt"}}) {
    BuildOptions options = options_for(folder, name);
    options.threads = 2;
    options.text.piece_bytes = 2000;
    std::string message;
    EXPECT_EQ(kind_of_failure(options, &message), ErrorKind::data);
    EXPECT_NE(message.find(naming), std::string::npos) << message;
    EXPECT_EQ(test::names_in(folder.path()), before);
  }
}

TEST(DataBuildTest, options_that_cannot_work_are_usage_errors) {
  Scratch const folder;
  write_file(folder / "a.txt", "text");
  std::vector<BuildOptions> cases(6, options_for(folder, "a.txt"));
  cases[0].threads = 0;
  cases[1].valid_fraction = 1.0;
  cases[2].valid_fraction = 0.1;  // and no path
  cases[3].valid_output = folder / "valid.h5";
  cases[4].output.clear();
  cases[5].files.clear();
  for (BuildOptions const& options : cases) EXPECT_EQ(kind_of_failure(options), ErrorKind::usage);
  BuildOptions no_folder = options_for(folder, "a.txt");
  no_folder.output = folder / "no/train.h5";
  EXPECT_EQ(kind_of_failure(no_folder), ErrorKind::write);
}

TEST(DataBuildTest, progress_ends_with_all_bytes) {
  Scratch const folder;
  write_file(folder / "a.txt", std::string(5000, 'x') + " y");
  BuildOptions options = options_for(folder, "a.txt");
  options.text.piece_bytes = 100;
  BuildProgress last;
  std::int64_t calls = 0;
  BuildResult const result =
      build_dataset(options, small_tokenizer(), [&](BuildProgress const& progress) {
        EXPECT_GE(progress.tokens, last.tokens);
        last = progress;
        ++calls;
      });
  EXPECT_GT(calls, 10);
  EXPECT_EQ(last.bytes_done, 5002);
  EXPECT_EQ(last.bytes_total, 5002);
  EXPECT_EQ(last.tokens, result.train.tokens);
}

/// Lets files grow no further than this while it lives: what a full disk does.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(FileSizeLimit const&) = delete;
  FileSizeLimit& operator=(FileSizeLimit const&) = delete;
  FileSizeLimit(FileSizeLimit&&) = delete;
  FileSizeLimit& operator=(FileSizeLimit&&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(DataBuildTest, a_full_disk_is_a_write_error_and_leaves_no_file) {
  Scratch const folder;
  std::mt19937 random{43};
  write_file(folder / "a.txt", test::random_bytes(random, 2'000'000));
  ErrorKind kind = ErrorKind::bug;
  {
    FileSizeLimit const limit{500'000};
    kind = kind_of_failure(options_for(folder, "a.txt"));
  }
  EXPECT_EQ(kind, ErrorKind::write);
  EXPECT_EQ(test::names_in(folder.path()), Strings{"a.txt"});
}

TEST(DatasetWriterTest, sets_of_many_chunks_are_whole) {
  Scratch const folder;
  // Beyond two chunks of u16 tokens (524,288 in each) and one of offsets (131,072).
  constexpr std::int32_t documents = 140'000;
  constexpr std::int32_t length = 8;
  {
    DatasetWriter writer{folder / "a.h5", {1000, 999, "t", "[]"}};
    std::vector<std::int32_t> ids(length);
    for (std::int32_t i = 0; i < documents; ++i) {
      for (std::int32_t k = 0; k < length; ++k)
        ids[static_cast<std::size_t>(k)] = (i * length + k) % 1000;
      writer.append(ids);
      writer.end_document();
    }
    DatasetSummary const summary = writer.finish();
    EXPECT_EQ(summary.tokens, documents * length);
    EXPECT_EQ(summary.documents, documents);
    EXPECT_NEAR(summary.unigram_entropy_nats, std::log(1000.0), 1e-12);  // all alike
  }
  Stored const stored{folder / "a.h5"};
  ASSERT_EQ(stored.tokens.size(), std::size_t{documents} * length);
  ASSERT_EQ(stored.offsets.size(), std::size_t{documents} + 1);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < stored.tokens.size(); ++i) {
    wrong += stored.tokens[i] != static_cast<std::int32_t>(i % 1000) ? 1 : 0;
  }
  for (std::size_t i = 0; i < stored.offsets.size(); ++i)
    wrong += stored.offsets[i] != i * length ? 1 : 0;
  EXPECT_EQ(wrong, 0);
}

TEST(DatasetWriterTest, a_token_beyond_the_vocabulary_is_a_bug) {
  Scratch const folder;
  DatasetWriter writer{folder / "a.h5", {10, 9, "t", "[]"}};
  EXPECT_THROW(writer.append(std::vector{3, 10}), Error);
  EXPECT_THROW(writer.append(std::vector{-1}), Error);
}

}  // namespace
}  // namespace motley::io
