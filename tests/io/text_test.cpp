#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "io/text/byte_source.hpp"
#include "io/text/document_stream.hpp"
#include "io/tokenizer/tokenizer.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/compressed.hpp"
#include "tests/io/text_fixture.hpp"

namespace motley::io {
namespace {

using test::gzip;
using test::Scratch;
using test::write_file;
using test::zstd;
using Strings = std::vector<std::string>;

std::vector<Piece> pieces_of(std::vector<std::filesystem::path> const& files,
                             TextOptions const& options = {}) {
  DocumentStream stream{files, options};
  std::vector<Piece> pieces;
  for (Piece piece; stream.next(piece);) {
    extract_document(piece, files, options);
    pieces.push_back(piece);
  }
  EXPECT_EQ(stream.bytes_done(), stream.bytes_total());
  return pieces;
}

/// Documents, their pieces joined.
Strings documents_of(std::vector<std::filesystem::path> const& files,
                     TextOptions const& options = {}) {
  Strings documents;
  bool is_open = false;
  for (Piece const& piece : pieces_of(files, options)) {
    EXPECT_EQ(piece.starts_document, !is_open);
    if (piece.starts_document) documents.emplace_back();
    documents.back() += piece.bytes;
    is_open = !piece.ends_document;
  }
  EXPECT_FALSE(is_open);
  return documents;
}

void expect_data_error(std::vector<std::filesystem::path> const& files,
                       Strings const& naming,
                       TextOptions const& options = {}) {
  try {
    static_cast<void>(pieces_of(files, options));
    ADD_FAILURE() << "read, where " << naming.front() << " should be refused";
  } catch (Error const& error) {
    std::string const text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::data) << text;
    for (std::string const& name : naming) {
      EXPECT_NE(text.find(name), std::string::npos) << name << " is not in: " << text;
    }
  }
}

std::string long_text() {
  std::mt19937 random{17};
  return test::random_text(random, 60000);
}

TEST(ByteSourceTest, compressed_files_give_the_plain_bytes) {
  Scratch const folder;
  std::string const text = long_text();
  std::string const front = text.substr(0, text.size() / 3);
  std::string const back = text.substr(front.size());
  write_file(folder / "a.txt", text);
  write_file(folder / "a.txt.gz", gzip(text));
  write_file(folder / "members.gz", gzip(front) + gzip(back));
  write_file(folder / "a.dict.dz", gzip(text));
  write_file(folder / "a.zst", zstd(text));
  write_file(folder / "frames.zst", zstd(front) + zstd(back));
  write_file(folder / "gzip_by_its_bytes.txt", gzip(text));
  for (char const* name : {"a.txt",
                           "a.txt.gz",
                           "members.gz",
                           "a.dict.dz",
                           "a.zst",
                           "frames.zst",
                           "gzip_by_its_bytes.txt"}) {
    EXPECT_EQ(documents_of({folder / name}), Strings{text}) << name;
  }
}

TEST(ByteSourceTest, short_reads_happen_at_the_end_alone) {
  Scratch const folder;
  std::string const text = long_text();
  write_file(folder / "a.zst", zstd(text));
  write_file(folder / "a.gz", gzip(text));
  for (char const* name : {"a.zst", "a.gz"}) {
    auto const source = open_byte_source(folder / name);
    std::string whole;
    std::vector<char> buffer(777);
    std::size_t count = buffer.size();
    while (count == buffer.size()) {
      count = source->read(buffer);
      whole.append(buffer.data(), count);
    }
    EXPECT_EQ(source->read(buffer), 0U);
    EXPECT_EQ(whole, text);
    EXPECT_EQ(source->file_position(),
              static_cast<std::int64_t>(std::filesystem::file_size(folder / name)));
  }
}

TEST(ByteSourceTest, damaged_files_are_refused_by_name) {
  Scratch const folder;
  std::string const text = long_text();
  std::string const packed_gzip = gzip(text);
  std::string const packed_zstd = zstd(text);
  for (std::size_t const left : {packed_gzip.size() - 1, packed_gzip.size() / 2}) {
    write_file(folder / "cut.gz", packed_gzip.substr(0, left));
    expect_data_error({folder / "cut.gz"}, {"cut.gz", "cut short"});
  }
  for (std::size_t const left : {packed_zstd.size() - 1, packed_zstd.size() / 2, std::size_t{5}}) {
    write_file(folder / "cut.zst", packed_zstd.substr(0, left));
    expect_data_error({folder / "cut.zst"}, {"cut.zst", "cut short"});
  }
  std::string flipped = packed_gzip;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x10);
  write_file(folder / "flipped.gz", flipped);
  expect_data_error({folder / "flipped.gz"}, {"flipped.gz", "cannot be read"});
  write_file(folder / "noise.zst", packed_zstd.substr(0, 9) + std::string(200, '\xff'));
  expect_data_error({folder / "noise.zst"}, {"noise.zst", "cannot be read"});
}

TEST(ByteSourceTest, files_that_are_not_what_they_seem_are_refused_by_name) {
  Scratch const folder;
  write_file(folder / "empty.txt", "");
  write_file(folder / "empty.gz", gzip(""));
  write_file(folder / "plain.gz", "text");
  write_file(folder / "plain.zst", "text");
  std::filesystem::create_directory(folder / "folder");
  expect_data_error({folder / "empty.txt"}, {"empty.txt", "empty"});
  expect_data_error({folder / "empty.gz"}, {"empty.gz", "empty"});
  expect_data_error({folder / "plain.gz"}, {"plain.gz", "not what its name says"});
  expect_data_error({folder / "plain.zst"}, {"plain.zst", "not what its name says"});
  expect_data_error({folder / "folder"}, {"folder", "is a folder"});
  expect_data_error({folder / "none.txt"}, {"none.txt", "No such file"});
}

TEST(DocumentStreamTest, a_bad_file_is_found_before_others_are_read) {
  Scratch const folder;
  write_file(folder / "good.txt", "text");
  EXPECT_THROW((DocumentStream{{folder / "good.txt", folder / "none.txt"}, {}}), Error);
}

TEST(DocumentStreamTest, a_file_is_one_document_with_its_bytes_as_they_are) {
  Scratch const folder;
  write_file(folder / "a.txt", "one\r\n\r\ntwo\xff");
  write_file(folder / "b.txt", "three\n");
  EXPECT_EQ(documents_of({folder / "a.txt", folder / "b.txt"}),
            (Strings{"one\r\n\r\ntwo\xff", "three\n"}));
}

TEST(DocumentStreamTest, blank_lines_separate_documents_where_asked) {
  Scratch const folder;
  write_file(folder / "a.txt", "\n\none\nmore\n\n\r\n\ntwo\r\n \nstill two\n\nthree");
  TextOptions options;
  options.split = DocumentSplit::blank_line;
  EXPECT_EQ(documents_of({folder / "a.txt"}, options),
            (Strings{"one\nmore\n", "two\r\n \nstill two\n", "three"}));
}

TEST(DocumentStreamTest, a_given_line_separates_documents_where_asked) {
  Scratch const folder;
  write_file(folder / "a.txt", "=====\none\n\n=====\r\n=====\ntwo =====\n===== \nx\n=====");
  TextOptions options;
  options.split = DocumentSplit::separator_line;
  options.separator_line = "=====";
  EXPECT_EQ(documents_of({folder / "a.txt"}, options),
            (Strings{"one\n\n", "two =====\n===== \nx\n"}));
}

TEST(DocumentStreamTest, pieces_give_the_ids_of_the_whole_document) {
  Scratch const folder;
  std::string const text = long_text();
  write_file(folder / "a.txt", text);
  BpeModel model = test::bytes_model();
  test::add_merge(model, " ", " ");
  test::add_merge(model, "l", "o");
  test::add_merge(model, "\n", "\n");
  test::add_merge(model, " ", "lo");
  Tokenizer const tokenizer{model};
  TextOptions options;
  options.piece_bytes = 512;
  std::vector<std::int32_t> ids;
  Encoder encoder{tokenizer};
  std::vector<Piece> const pieces = pieces_of({folder / "a.txt"}, options);
  EXPECT_GT(pieces.size(), 100U);
  for (Piece const& piece : pieces) {
    EXPECT_LT(piece.bytes.size(), 1024U);
    encoder.encode(piece.bytes, ids);
  }
  EXPECT_EQ(ids, tokenizer.encode(text));
  EXPECT_EQ(documents_of({folder / "a.txt"}, options), Strings{text});
}

TEST(DocumentStreamTest, a_text_without_white_space_is_cut_between_characters) {
  Scratch const folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\u4e2d";
  write_file(folder / "a.txt", text);
  TextOptions options;
  options.piece_bytes = 100;
  std::vector<Piece> const pieces = pieces_of({folder / "a.txt"}, options);
  EXPECT_GT(pieces.size(), 20U);
  for (Piece const& piece : pieces) EXPECT_EQ(piece.bytes.size() % 3, 0U);
  EXPECT_EQ(documents_of({folder / "a.txt"}, options), Strings{text});
}

TEST(DocumentStreamTest, long_lines_are_no_separators) {
  Scratch const folder;
  // The second read of the long line begins with what would separate documents.
  std::string const line = "aaaaaaaaaaaaaaaa=====";
  write_file(folder / "a.txt", line + "\nx\n");
  TextOptions options;
  options.piece_bytes = 16;
  options.split = DocumentSplit::separator_line;
  options.separator_line = "=====";
  EXPECT_EQ(documents_of({folder / "a.txt"}, options), Strings{line + "\nx\n"});
}

TEST(JsonLinesTest, each_line_is_a_document) {
  Scratch const folder;
  std::string const lines =
      "{\"text\": \"one\\ntwo\"}\n\n  \r\n{\"id\": 7, \"text\": \"\\u00e9 \\ud83d\\ude00\"}\r\n"
      "{\"text\": \"\"}";
  Strings const expected{"one\ntwo", "\u00e9 \U0001f600", ""};
  write_file(folder / "a.jsonl", lines);
  write_file(folder / "a.jsonl.gz", gzip(lines));
  write_file(folder / "a.ndjson.zst", zstd(lines));
  for (char const* name : {"a.jsonl", "a.jsonl.gz", "a.ndjson.zst"}) {
    EXPECT_EQ(documents_of({folder / name}), expected) << name;
  }
  write_file(folder / "a.txt", "{\"body\": \"x\"}\n");
  TextOptions options;
  options.format = TextFormat::jsonl;
  options.json_key = "body";
  EXPECT_EQ(documents_of({folder / "a.txt"}, options), Strings{"x"});
}

TEST(JsonLinesTest, bad_lines_are_refused_by_file_line_and_column) {
  Scratch const folder;
  std::string const good = "{\"text\": \"a\"}\n";
  std::vector<std::pair<std::string, std::string>> const cases{
      {"{\"text\": \"a\", }", "column 15"},  // where a key should be
      {"{\"text\": \"a", "column 12"},
      {"{\"text\": \"\xff\"}", "column 11"},
      {"{\"txt\": \"a\"}", "no key \"text\""},
      {"{\"text\": 3}", "number under the key \"text\""},
      {"[\"text\"]", "but array"},
  };
  for (auto const& [line, naming] : cases) {
    write_file(folder / "bad.jsonl", good + "\n" + line + "\n" + good);
    expect_data_error({folder / "bad.jsonl"}, {"bad.jsonl", "line 3", naming});
  }
}

TEST(JsonLinesTest, lines_beyond_the_limit_and_files_of_blank_lines_are_refused) {
  Scratch const folder;
  write_file(folder / "long.jsonl", "{\"text\": \"a\"}\n{\"text\": \"aaaaaaaaaaaaaaaaaaaaaaa\"}\n");
  TextOptions options;
  options.max_line_bytes = 20;
  expect_data_error({folder / "long.jsonl"}, {"long.jsonl", "line 2", "20 bytes"}, options);
  write_file(folder / "blank.jsonl", "\n \n");
  expect_data_error({folder / "blank.jsonl"}, {"blank.jsonl", "no document"});
}

TEST(DocumentStreamTest, options_that_cannot_work_are_usage_errors) {
  Scratch const folder;
  write_file(folder / "a.txt", "text");
  TextOptions tiny;
  tiny.piece_bytes = 1;
  TextOptions two_lines;
  two_lines.separator_line = "a\nb";
  std::vector<std::pair<std::vector<std::filesystem::path>, TextOptions>> const cases{
      {{}, {}}, {{folder / "a.txt"}, tiny}, {{folder / "a.txt"}, two_lines}};
  for (auto const& [files, options] : cases) {
    try {
      DocumentStream const stream{files, options};
      ADD_FAILURE() << "accepted";
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
    }
  }
}

}  // namespace
}  // namespace motley::io
