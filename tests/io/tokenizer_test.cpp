#include "io/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "io/tokenizer/pretokenizer.hpp"
#include "kernels/base/error.hpp"
#include "tests/io/text_fixture.hpp"

namespace motley::io {
namespace {

using test::add_merge;
using test::bytes_model;
using test::random_bytes;
using test::random_text;
using test::Scratch;
using test::write_file;

/// The first merges of Sennrich et al. 2016, algorithm 1, without its sign for the end of a word.
BpeModel sennrich_model() {
  BpeModel model = bytes_model();
  add_merge(model, "e", "s");
  add_merge(model, "es", "t");
  add_merge(model, "l", "o");
  add_merge(model, "lo", "w");
  return model;
}

std::vector<std::string> pieces_of(Tokenizer const& tokenizer, std::string_view text) {
  std::vector<std::string> pieces;
  for (std::int32_t const id : tokenizer.encode(text)) {
    pieces.emplace_back(tokenizer.token_bytes(id));
  }
  return pieces;
}

std::vector<std::string> pretokens_of(std::string_view text) {
  PreTokenizer pretokenizer;
  pretokenizer.start(text);
  std::vector<std::string> tokens;
  for (std::string_view token; pretokenizer.next(token);) tokens.emplace_back(token);
  return tokens;
}

/// Merging as it is defined, in quadratic time: again and again the first merge that applies
/// anywhere, at its leftmost place.
std::vector<std::int32_t> encode_naively(BpeModel const& model, std::string_view text) {
  std::vector<std::int32_t> all;
  for (std::string const& token : pretokens_of(text)) {
    std::vector<std::int32_t> ids;
    for (char const byte : token) {
      for (std::size_t id = 0; id < 256; ++id) {
        if (model.tokens[id][0] == byte) ids.push_back(static_cast<std::int32_t>(id));
      }
    }
    for (std::size_t rank = 0; rank < model.merges.size();) {
      Merge const& merge = model.merges[rank];
      std::size_t place = 0;
      while (place + 1 < ids.size() &&
             (ids[place] != merge.left || ids[place + 1] != merge.right)) {
        ++place;
      }
      if (place + 1 >= ids.size()) {
        ++rank;
        continue;
      }
      ids[place] = merge.result;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
      rank = 0;
    }
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

TEST(PreTokenizerTest, cuts_as_gpt2_does) {
  // By hand from the pattern of openai/gpt-2, src/encoder.py.
  EXPECT_EQ(
      pretokens_of("I've  got 12 dogs!?\n\n  Ok"),
      (std::vector<std::string>{"I", "'ve", " ", " got", " 12", " dogs", "!?", "\n\n ", " Ok"}));
  EXPECT_EQ(pretokens_of("a  "), (std::vector<std::string>{"a", "  "}));
  EXPECT_EQ(pretokens_of("x\r\ny"), (std::vector<std::string>{"x", "\r", "\n", "y"}));
  EXPECT_EQ(pretokens_of("na\u00efve\u00a0\u4e2d\u6587\u3002"),
            (std::vector<std::string>{"na\u00efve", "\u00a0", "\u4e2d\u6587", "\u3002"}));
  // U+180E is no white space (Unicode 6.3 and later), so it joins the signs after the space.
  EXPECT_EQ(pretokens_of("a \u180e!"), (std::vector<std::string>{"a", " \u180e!"}));
  EXPECT_TRUE(pretokens_of("").empty());
}

TEST(PreTokenizerTest, bytes_outside_utf8_stand_alone) {
  EXPECT_EQ(pretokens_of("ab\xff\xfe"
                         "cd \xe4\xb8"),
            (std::vector<std::string>{"ab", "\xff", "\xfe", "cd", " ", "\xe4", "\xb8"}));
  // A surrogate and an overlong form are no UTF-8 either.
  EXPECT_EQ(pretokens_of("\xed\xa0\x80"), (std::vector<std::string>{"\xed", "\xa0", "\x80"}));
  EXPECT_EQ(pretokens_of("\xc0\xaf"), (std::vector<std::string>{"\xc0", "\xaf"}));
}

TEST(PreTokenizerTest, safe_cuts_change_no_pretoken) {
  std::mt19937 random{11};
  PreTokenizer pretokenizer;
  int cuts = 0;
  for (int i = 0; i < 500; ++i) {
    std::string const text = random_text(random, 60);
    std::size_t const cut = pretokenizer.last_safe_cut(text);
    if (cut == 0) continue;
    ++cuts;
    std::vector<std::string> parts = pretokens_of(text.substr(0, cut));
    for (std::string& token : pretokens_of(text.substr(cut))) parts.push_back(std::move(token));
    ASSERT_EQ(parts, pretokens_of(text));
  }
  EXPECT_GT(cuts, 300);
}

TEST(PreTokenizerTest, there_is_a_cut_between_characters_where_none_is_safe) {
  PreTokenizer pretokenizer;
  EXPECT_EQ(pretokenizer.last_safe_cut("\u4e2d\u6587\u4e2d"), 0U);
  EXPECT_EQ(pretokenizer.last_cut("\u4e2d\u6587\u4e2d"), 6U);
  EXPECT_EQ(pretokenizer.last_safe_cut("ab cd  "), 2U);
  EXPECT_EQ(pretokenizer.last_cut("\x80\x80\x80\x80\x80\x80"), 2U);
}

TEST(TokenizerTest, merges_as_in_sennrich_2016) {
  Tokenizer const tokenizer{sennrich_model()};
  EXPECT_EQ(pieces_of(tokenizer, "lowest"), (std::vector<std::string>{"low", "est"}));
  EXPECT_EQ(pieces_of(tokenizer, "newest widest"),
            (std::vector<std::string>{"n", "e", "w", "est", " ", "w", "i", "d", "est"}));
  EXPECT_EQ(pieces_of(tokenizer, "slow"), (std::vector<std::string>{"s", "low"}));
}

TEST(TokenizerTest, any_bytes_round_trip) {
  Tokenizer const tokenizer{sennrich_model()};
  std::mt19937 random{3};
  for (int size : {0, 1, 2, 17, 1000, 100000}) {
    std::string const bytes = random_bytes(random, size);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
  }
  std::string const long_word(3 << 20, 'e');  // longer than what is merged in one go
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(long_word)), long_word);
}

TEST(TokenizerTest, ids_equal_those_of_the_naive_encoder) {
  // Merges that compete and overlap, in an order that no training would give.
  BpeModel model = bytes_model();
  for (auto const& [left, right] : std::vector<std::array<std::string, 2>>{{"a", "a"},
                                                                           {"b", "a"},
                                                                           {"aa", "ba"},
                                                                           {"a", "b"},
                                                                           {" ", "a"},
                                                                           {" a", "b"},
                                                                           {"aa", "aa"},
                                                                           {"b", "b"},
                                                                           {" a", "aa"}}) {
    add_merge(model, left, right);
  }
  Tokenizer const tokenizer{model};
  std::mt19937 random{5};
  std::uniform_int_distribution<int> draw{0, 9};
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int k = 0; k < 80; ++k) text += "aaaabbb  \n"[draw(random)];
    ASSERT_EQ(tokenizer.encode(text), encode_naively(model, text)) << text;
  }
}

TEST(TokenizerTest, end_of_text_in_a_text_is_ordinary_text) {
  Tokenizer const tokenizer{sennrich_model()};
  std::vector<std::int32_t> const ids = tokenizer.encode(end_of_text);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer.end_of_text_id()), 0);
  EXPECT_EQ(tokenizer.decode(ids), end_of_text);
  EXPECT_EQ(tokenizer.decode(std::vector{tokenizer.end_of_text_id()}), end_of_text);
}

TEST(TokenizerTest, an_id_beyond_the_vocabulary_is_refused) {
  Tokenizer const tokenizer{sennrich_model()};
  for (std::int32_t const bad :
       {std::int32_t{-1}, static_cast<std::int32_t>(tokenizer.vocab_size())}) {
    try {
      static_cast<void>(tokenizer.decode(std::vector{0, bad}));
      ADD_FAILURE() << bad << " was decoded";
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_NE(std::string{error.what()}.find(std::to_string(bad)), std::string::npos);
    }
  }
}

TEST(TokenizerTest, a_model_that_contradicts_itself_is_refused) {
  BpeModel wrong_merge = sennrich_model();
  wrong_merge.merges[0].result = 0;
  EXPECT_THROW(Tokenizer{wrong_merge}, Error);
  BpeModel no_end = sennrich_model();
  no_end.special_ids.clear();
  EXPECT_THROW(Tokenizer{no_end}, Error);
  BpeModel no_byte = sennrich_model();
  no_byte.tokens[0] = "zz";
  EXPECT_THROW(Tokenizer{no_byte}, Error);
}

TEST(TokenizerTest, fingerprint_follows_the_content) {
  Tokenizer const one{sennrich_model()};
  EXPECT_EQ(one.fingerprint(), Tokenizer{sennrich_model()}.fingerprint());
  BpeModel other = sennrich_model();
  std::swap(other.merges[2], other.merges[0]);
  std::swap(other.merges[0], other.merges[2]);
  EXPECT_EQ(one.fingerprint(), Tokenizer{other}.fingerprint());
  add_merge(other, "low", "est");
  EXPECT_NE(one.fingerprint(), Tokenizer{other}.fingerprint());
}

TEST(TokenizerFileTest, saved_and_loaded_it_is_the_same) {
  Scratch const folder;
  BpeModel model = sennrich_model();
  add_merge(model, "\xff", std::string(1, '\0'));
  Tokenizer const tokenizer{model};
  tokenizer.save(folder / "tokenizer.json");
  Tokenizer const loaded = Tokenizer::load(folder / "tokenizer.json");
  EXPECT_EQ(loaded.fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(loaded.model().tokens, model.tokens);
  EXPECT_EQ(loaded.model().merges, model.merges);
  EXPECT_EQ(loaded.end_of_text_id(), tokenizer.end_of_text_id());
  EXPECT_EQ(test::names_in(folder.path()), std::vector<std::string>{"tokenizer.json"});
}

/// A small file as Hugging Face's library writes it, with its merges as lists; "\u0120" is a space.
std::string hugging_face_file(std::string const& pretokenizer) {
  std::string text =
      R"({"version":"1.0","added_tokens":[{"id":259,"content":"<|endoftext|>","special":true}],)"
      R"("normalizer":null,"pre_tokenizer":)";
  text += pretokenizer;
  text += R"(,"model":{"type":"BPE","vocab":{)";
  BpeModel const model = bytes_model();
  constexpr int printing = 188;  // bytes that stand for themselves; the others follow from U+0100
  for (int id = 0; id < 256; ++id) {
    auto const byte = static_cast<unsigned char>(model.tokens[static_cast<std::size_t>(id)][0]);
    int const character = id < printing ? byte : 0x100 + id - printing;
    std::array<char, 24> entry{};
    std::snprintf(entry.data(), entry.size(), "\"\\u%04x\":%d,", character, id);
    text += entry.data();
  }
  text += R"("he":256,"\u0120he":257,"hehe":258,"<|endoftext|>":259},)";
  text += R"("merges":[["h","e"],["\u0120","he"],["he","he"]]}})";
  return text;
}

constexpr char const* byte_level = R"({"type":"ByteLevel","add_prefix_space":false})";

TEST(TokenizerFileTest, reads_both_forms_of_the_pattern) {
  Scratch const folder;
  std::string const split =
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
      R"("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},)"
      R"("behavior":"Isolated","invert":false},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  for (std::string const& pretokenizer : {std::string{byte_level}, split}) {
    write_file(folder / "t.json", hugging_face_file(pretokenizer));
    Tokenizer const tokenizer = Tokenizer::load(folder / "t.json");
    EXPECT_EQ(tokenizer.encode("hehe he"), (std::vector<std::int32_t>{258, 257}));
    EXPECT_EQ(tokenizer.end_of_text_id(), 259);
    EXPECT_EQ(tokenizer.vocab_size(), 260);
  }
}

void expect_refused(std::filesystem::path const& file, std::string const& naming) {
  try {
    static_cast<void>(Tokenizer::load(file));
    ADD_FAILURE() << "loaded, where " << naming << " should be refused";
  } catch (Error const& error) {
    std::string const text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::data) << text;
    EXPECT_NE(text.find(file.filename().string()), std::string::npos) << text;
    EXPECT_NE(text.find(naming), std::string::npos) << text;
  }
}

TEST(TokenizerFileTest, what_it_does_not_know_is_refused_by_name) {
  Scratch const folder;
  struct Case {
    std::string from, to, naming;
  };
  std::vector<Case> const cases{
      {"\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}", "normalizer"},
      {"\"BPE\"", "\"Unigram\"", "model.type"},
      {"\"vocab\"", "\"byte_fallback\":true,\"vocab\"", "byte_fallback"},
      {"\"vocab\"", "\"ignore_merges\":true,\"vocab\"", "ignore_merges"},
      {"\"vocab\"", "\"dropout\":0.1,\"vocab\"", "dropout"},
      {"\"vocab\"", "\"end_of_word_suffix\":\"</w>\",\"vocab\"", "end_of_word_suffix"},
      {"\"add_prefix_space\":false", "\"add_prefix_space\":true", "add_prefix_space"},
      {"\"ByteLevel\"", "\"Whitespace\"", "pre_tokenizer"},
      {"\"normalizer\"",
       "\"post_processor\":{\"type\":\"TemplateProcessing\"},\"normalizer\"",
       "post_processor"},
      {"\"hehe\":258", "\"hehe\":300", "without gaps"},
      {"\"hehe\":258", "\"hehe\":257", "another token"},
      {"\"hehe\":258", "\"hehe\":-3", "is not an id"},
      {"\"hehe\":258", "\"中\":258", "alphabet"},
      {"[\"h\",\"e\"]", "[\"h\",\"q\"]", "hq"},
      {"[\"h\",\"e\"]", "\"he\"", "no pair"},
      {"<|endoftext|>\",\"special", "<|end|>\",\"special", "added token"},
  };
  for (Case const& bad : cases) {
    std::string text = hugging_face_file(byte_level);
    std::size_t const place = text.find(bad.from);
    ASSERT_NE(place, std::string::npos) << bad.from;
    write_file(folder / "bad.json", text.replace(place, bad.from.size(), bad.to));
    expect_refused(folder / "bad.json", bad.naming);
  }
}

TEST(TokenizerFileTest, damaged_and_missing_files_are_refused) {
  Scratch const folder;
  std::string const whole = hugging_face_file(byte_level);
  write_file(folder / "cut.json", whole.substr(0, whole.size() / 2));
  expect_refused(folder / "cut.json", "not JSON");
  write_file(folder / "list.json", "[1, 2]");
  expect_refused(folder / "list.json", "object");
  write_file(folder / "empty.json", "{}");
  expect_refused(folder / "empty.json", "model");
  expect_refused(folder / "none.json", "none.json");
}

TEST(TokenizerFileTest, a_folder_that_does_not_exist_is_a_write_error) {
  Scratch const folder;
  try {
    Tokenizer{sennrich_model()}.save(folder / "no/t.json");
    ADD_FAILURE() << "saved";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::write);
  }
}

}  // namespace
}  // namespace motley::io
