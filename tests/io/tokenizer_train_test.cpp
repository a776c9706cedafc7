#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "io/tokenizer/pretokenizer.hpp"
#include "io/tokenizer/train.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/compressed.hpp"
#include "tests/io/text_fixture.hpp"

namespace motley::io {
namespace {

using test::Scratch;
using test::write_file;
using Strings = std::vector<std::string>;

TokenizerTrainOptions options_for(std::filesystem::path const& file, std::int64_t vocab_size) {
  TokenizerTrainOptions options;
  options.files = {file};
  options.vocab_size = vocab_size;
  return options;
}

Strings merged_tokens(Tokenizer const& tokenizer) {
  Strings tokens;
  for (Merge const& merge : tokenizer.model().merges) {
    tokens.emplace_back(tokenizer.token_bytes(merge.result));
  }
  return tokens;
}

/// Sennrich et al. 2016, algorithm 1: low 5, lower 2, newest 6, widest 3 times.
std::string sennrich_text() {
  std::string text;
  for (auto const& [word, count] :
       std::map<std::string, int>{{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}}) {
    for (int i = 0; i < count; ++i) text += word + "\n";
  }
  return text;
}

/// The merges by their definition: all pairs counted anew before each. Returns the tokens made.
Strings train_naively(std::string const& text, std::size_t merges, std::int64_t min_count) {
  std::vector<std::vector<std::string>> words;
  PreTokenizer pretokenizer;
  pretokenizer.start(text);
  for (std::string_view token; pretokenizer.next(token);) {
    words.emplace_back();
    for (char const byte : token) words.back().emplace_back(1, byte);
  }
  BpeModel const bytes = test::bytes_model();
  std::map<std::string, std::size_t> id_of;
  for (std::size_t id = 0; id < 256; ++id) id_of[bytes.tokens[id]] = id;
  Strings made;
  while (made.size() < merges) {
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> counts;
    for (auto const& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        ++counts[{id_of[word[i]], id_of[word[i + 1]]}];
    }
    auto best = counts.begin();
    for (auto each = counts.begin(); each != counts.end(); ++each) {
      if (each->second > best->second) best = each;  // the first of equals has the smaller ids
    }
    if (best == counts.end() || best->second < min_count) break;
    std::string left, right;
    for (auto const& [token, id] : id_of) {
      if (id == best->first.first) left = token;
      if (id == best->first.second) right = token;
    }
    made.push_back(left + right);
    id_of.emplace(left + right, id_of.size());
    for (auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != left || word[i + 1] != right) continue;
        word[i] = left + right;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return made;
}

TEST(TokenizerTrainTest, finds_the_merges_of_sennrich_2016) {
  Scratch const folder;
  write_file(folder / "words.txt", sennrich_text());
  // The first four are the paper's (without its sign for the end of a word); the others follow by
  // hand: ew, then new, then newest, each 6 times.
  Tokenizer const tokenizer = train_tokenizer(options_for(folder / "words.txt", 257 + 7));
  EXPECT_EQ(merged_tokens(tokenizer), (Strings{"es", "est", "lo", "low", "ew", "new", "newest"}));
  EXPECT_EQ(tokenizer.vocab_size(), 264);
  EXPECT_EQ(tokenizer.end_of_text_id(), 263);
}

TEST(TokenizerTrainTest, rare_pairs_are_not_merged) {
  Scratch const folder;
  write_file(folder / "words.txt", sennrich_text());
  TokenizerTrainOptions options = options_for(folder / "words.txt", 10000);
  options.min_pair_count = 7;
  EXPECT_EQ(merged_tokens(train_tokenizer(options)), (Strings{"es", "est", "lo", "low"}));
}

TEST(TokenizerTrainTest, merges_equal_those_by_definition) {
  Scratch const folder;
  std::mt19937 random{23};
  for (int round = 0; round < 5; ++round) {
    std::string const text = test::random_text(random, 1500) + "aaaa aaaaa aaa aaaaaaa";
    write_file(folder / "a.txt", text);
    Tokenizer const tokenizer = train_tokenizer(options_for(folder / "a.txt", 257 + 60));
    EXPECT_EQ(merged_tokens(tokenizer), train_naively(text, 60, 2));
  }
}

TEST(TokenizerTrainTest, threads_pieces_and_compression_change_nothing) {
  Scratch const folder;
  std::mt19937 random{29};
  std::string const text = test::random_text(random, 30000);
  write_file(folder / "a.txt", text);
  write_file(folder / "a.gz", test::gzip(text));
  std::string const expected = train_tokenizer(options_for(folder / "a.txt", 500)).fingerprint();
  for (int const threads : {1, 2, 5}) {
    TokenizerTrainOptions options = options_for(folder / "a.gz", 500);
    options.threads = threads;
    options.text.piece_bytes = 300 * threads;
    EXPECT_EQ(train_tokenizer(options).fingerprint(), expected) << threads;
  }
}

TEST(TokenizerTrainTest, the_sample_bounds_what_is_read) {
  Scratch const folder;
  std::string front;  // of words of one byte, which make no pair
  for (int i = 0; i < 2000; ++i) front += "1\n";
  write_file(folder / "a.txt", "ab ab ab\n" + front + "\ncd cd cd cd cd cd\n");
  TokenizerTrainOptions options = options_for(folder / "a.txt", 258);
  options.text.piece_bytes = 16;
  EXPECT_EQ(merged_tokens(train_tokenizer(options)), Strings{"cd"});
  options.sample_bytes = 100;
  EXPECT_EQ(merged_tokens(train_tokenizer(options)), Strings{"ab"});
}

TEST(TokenizerTrainTest, progress_ends_at_its_total) {
  Scratch const folder;
  write_file(folder / "words.txt", sennrich_text());
  std::int64_t done = -1;
  std::int64_t total = 0;
  static_cast<void>(train_tokenizer(options_for(folder / "words.txt", 258),
                                    [&](TokenizerTrainProgress const& progress) {
                                      if (progress.phase != TokenizerTrainProgress::Phase::count)
                                        return;
                                      done = progress.done;
                                      total = progress.total;
                                    }));
  EXPECT_EQ(done, static_cast<std::int64_t>(sennrich_text().size()));
  EXPECT_EQ(done, total);
}

TEST(TokenizerTrainTest, options_and_files_that_cannot_work_are_refused) {
  Scratch const folder;
  write_file(folder / "a.txt", "text");
  write_file(folder / "bad.jsonl", "{");
  auto const kind_of = [](TokenizerTrainOptions const& options) {
    try {
      static_cast<void>(train_tokenizer(options));
    } catch (Error const& error) {
      return error.kind();
    }
    return ErrorKind::bug;
  };
  TokenizerTrainOptions no_threads = options_for(folder / "a.txt", 300);
  no_threads.threads = 0;
  EXPECT_EQ(kind_of(no_threads), ErrorKind::usage);
  EXPECT_EQ(kind_of(options_for(folder / "a.txt", 256)), ErrorKind::usage);
  EXPECT_EQ(kind_of(TokenizerTrainOptions{}), ErrorKind::usage);
  EXPECT_EQ(kind_of(options_for(folder / "none.txt", 300)), ErrorKind::data);
  EXPECT_EQ(kind_of(options_for(folder / "bad.jsonl", 300)), ErrorKind::data);
}

}  // namespace
}  // namespace motley::io
