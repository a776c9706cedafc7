#include "io/tokenizer/detail/tokenizer_json.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "io/detail/pending_file.hpp"
#include "io/durable_file.hpp"
#include "io/json.hpp"
#include "io/tokenizer/detail/byte_alphabet.hpp"
#include "io/tokenizer/pretokenizer.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {
namespace {

// io::Json finds keys one by one, which a vocabulary of 100,000 cannot wait for; this one sorts.
using SortedJson = nlohmann::json;
using Ids = std::unordered_map<std::string, std::int32_t>;

/// The tokenizer.json being read, and what to say when it is refused.
struct Source {
  std::filesystem::path const& path;

  [[noreturn]] void refuse(std::string const& field, std::string const& why) const {
    MOTLEY_FAIL(data,
                "tokenizer file " << path << " cannot be used: \"" << field << "\" " << why
                                  << " (motley reads byte-level BPE with GPT-2's pattern); convert "
                                     "it, or train one with `motley tokenizer train`");
  }
  void require(bool ok, std::string const& field, std::string const& why) const {
    if (!ok) refuse(field, why);
  }
};

/// A member, or null where there is none.
SortedJson const& member(SortedJson const& object, char const* key) {
  static SortedJson const null;
  auto const found = object.find(key);
  return found == object.end() ? null : *found;
}

bool is_flag(SortedJson const& object, char const* key, bool otherwise) {
  SortedJson const& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

std::string type_of(SortedJson const& object) {
  SortedJson const& type = member(object, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

// --- tokens as characters of the byte alphabet ---------------------------------------------------

std::string to_characters(std::string_view bytes) {
  std::string text;
  for (char const byte : bytes) {
    unsigned const character = byte_alphabet.character_of[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {  // two bytes of UTF-8: the alphabet ends at U+0143
      text += static_cast<char>(0xC0U | (character >> 6U));
      text += static_cast<char>(0x80U | (character & 0x3FU));
    }
  }
  return text;
}

/// Bytes for which the characters stand; empty if one is not of the alphabet.
std::optional<std::string> to_bytes(std::string_view characters) {
  static std::array<std::int16_t, 0x144> const byte_of = [] {
    std::array<std::int16_t, 0x144> table{};
    table.fill(-1);
    for (std::size_t byte = 0; byte < 256; ++byte) {
      table[byte_alphabet.character_of[byte]] = static_cast<std::int16_t>(byte);
    }
    return table;
  }();
  std::string bytes;
  for (std::size_t at = 0; at < characters.size(); ++at) {
    auto character = static_cast<unsigned>(static_cast<unsigned char>(characters[at]));
    if (character >= 0x80) {
      if ((character & 0xE0U) != 0xC0U || ++at == characters.size()) return std::nullopt;
      character = ((character & 0x1FU) << 6U) |
                  (static_cast<unsigned>(static_cast<unsigned char>(characters[at])) & 0x3FU);
    }
    if (character >= byte_of.size() || byte_of[character] < 0) return std::nullopt;
    bytes += static_cast<char>(byte_of[character]);
  }
  return bytes;
}

// --- reading -------------------------------------------------------------------------------------

SortedJson parse(std::filesystem::path const& path) {
  try {
    return SortedJson::parse(read_whole_file(path));
  } catch (JsonError const& error) {
    MOTLEY_FAIL(data,
                "tokenizer file " << path << " is not JSON (" << error.what()
                                  << "); fetch or train it again");
  }
}

void check_byte_level(Source const& source, SortedJson const& step, bool has_pattern) {
  source.require(type_of(step) == "ByteLevel", "pre_tokenizer", "is not ByteLevel");
  source.require(
      !is_flag(step, "add_prefix_space", true), "pre_tokenizer.add_prefix_space", "is not false");
  source.require(is_flag(step, "use_regex", true) == has_pattern,
                 "pre_tokenizer.use_regex",
                 has_pattern ? "is false" : "is not false after a Split");
}

void check_split(Source const& source, SortedJson const& step) {
  source.require(type_of(step) == "Split", "pre_tokenizer", "is not Split, then ByteLevel");
  SortedJson const& regex = member(member(step, "pattern"), "Regex");
  source.require(regex.is_string() && regex.get<std::string>() == gpt2_pattern,
                 "pre_tokenizer.pattern",
                 "is not GPT-2's");
  source.require(member(step, "behavior") == "Isolated" && !is_flag(step, "invert", false),
                 "pre_tokenizer.behavior",
                 "is not Isolated");
}

void check_pretokenizer(Source const& source, SortedJson const& root) {
  SortedJson const& step = member(root, "pre_tokenizer");
  if (type_of(step) != "Sequence") return check_byte_level(source, step, true);
  SortedJson const& steps = member(step, "pretokenizers");
  source.require(steps.is_array() && steps.size() == 2,
                 "pre_tokenizer.pretokenizers",
                 "are not two: Split, ByteLevel");
  check_split(source, steps[0]);
  check_byte_level(source, steps[1], false);
}

void check_features(Source const& source, SortedJson const& root) {
  source.require(root.is_object(), "(root)", "is not an object");
  source.require(member(root, "normalizer").is_null(), "normalizer", "is not null");
  SortedJson const& post = member(root, "post_processor");
  source.require(post.is_null() || type_of(post) == "ByteLevel",
                 "post_processor",
                 "adds tokens to texts: it is neither null nor ByteLevel");
  SortedJson const& model = member(root, "model");
  source.require(model.is_object() && (type_of(model) == "BPE" || !model.contains("type")),
                 "model.type",
                 "is not BPE");
  for (char const* flag : {"byte_fallback", "ignore_merges"}) {
    source.require(!is_flag(model, flag, false), std::string{"model."} + flag, "is true");
  }
  source.require(member(model, "dropout").is_null(), "model.dropout", "is not null");
  for (char const* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    SortedJson const& value = member(model, affix);
    source.require(value.is_null() || value == "", std::string{"model."} + affix, "is not empty");
  }
  check_pretokenizer(source, root);
}

std::int32_t read_id(Source const& source, SortedJson const& value, std::string const& field) {
  constexpr std::int64_t largest = INT32_MAX - 1;
  bool const is_id = value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
                     value.get<std::int64_t>() <= largest;
  source.require(is_id, field, "is not an id between 0 and 2147483646");
  return value.get<std::int32_t>();
}

/// Text of each added token, by id.
std::unordered_map<std::int32_t, std::string> read_added_tokens(Source const& source,
                                                                SortedJson const& root) {
  std::unordered_map<std::int32_t, std::string> added;
  SortedJson const& list = member(root, "added_tokens");
  source.require(list.is_null() || list.is_array(), "added_tokens", "is not a list");
  for (SortedJson const& token : list) {
    SortedJson const& content = member(token, "content");
    source.require(content.is_string(), "added_tokens", "holds one without \"content\"");
    added[read_id(source, member(token, "id"), "added_tokens.id")] = content.get<std::string>();
  }
  return added;
}

Ids read_vocabulary(Source const& source, SortedJson const& model) {
  SortedJson const& vocabulary = member(model, "vocab");
  source.require(vocabulary.is_object(), "model.vocab", "is not an object");
  Ids ids;
  for (auto const& [characters, id] : vocabulary.items()) {
    ids[characters] = read_id(source, id, "model.vocab." + characters);
  }
  return ids;
}

void fill_tokens(Source const& source,
                 Ids const& ids,
                 std::unordered_map<std::int32_t, std::string> const& added,
                 BpeModel& model) {
  std::unordered_map<std::int32_t, std::string> bytes_of = added;
  for (auto const& [characters, id] : ids) {
    if (auto const found = added.find(id); found != added.end()) {
      source.require(
          found->second == characters, "model.vocab." + characters, "has the id of an added token");
      continue;
    }
    std::optional<std::string> bytes = to_bytes(characters);
    source.require(
        bytes.has_value(), "model.vocab." + characters, "is not written in GPT-2's byte alphabet");
    bool const is_new = bytes_of.emplace(id, std::move(*bytes)).second;
    source.require(is_new, "model.vocab." + characters, "has the id of another token");
  }
  model.tokens.resize(bytes_of.size());
  for (auto& [id, bytes] : bytes_of) {
    source.require(static_cast<std::size_t>(id) < model.tokens.size(),
                   "model.vocab",
                   "has " + std::to_string(bytes_of.size()) + " tokens, but an id " +
                       std::to_string(id) + ": ids must run without gaps");
    model.tokens[static_cast<std::size_t>(id)] = std::move(bytes);
  }
}

/// The two halves of a merge: ["a", "b"], or "a b" in older files.
std::array<std::string, 2> read_halves(Source const& source, SortedJson const& merge) {
  if (merge.is_string()) {
    auto const text = merge.get<std::string>();
    std::size_t const space = text.find(' ');
    source.require(
        space != std::string::npos, "model.merges", "holds \"" + text + "\", which is no pair");
    return {text.substr(0, space), text.substr(space + 1)};
  }
  source.require(
      merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string(),
      "model.merges",
      "holds an entry that is no pair of strings");
  return {merge[0].get<std::string>(), merge[1].get<std::string>()};
}

std::vector<Merge> read_merges(Source const& source, SortedJson const& model, Ids const& ids) {
  SortedJson const& list = member(model, "merges");
  source.require(list.is_array(), "model.merges", "is not a list");
  std::vector<Merge> merges;
  merges.reserve(list.size());
  for (SortedJson const& entry : list) {
    auto const [left, right] = read_halves(source, entry);
    auto const id_of = [&](std::string const& token) {
      auto const found = ids.find(token);
      source.require(found != ids.end(),
                     "model.merges",
                     "uses \"" + token + "\", which is not in the vocabulary");
      return found->second;
    };
    merges.push_back({id_of(left), id_of(right), id_of(left + right)});
  }
  return merges;
}

// --- writing -------------------------------------------------------------------------------------

Json byte_level_step(bool add_prefix_space) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", true}};
}

/// How a token is written: special ones as they are, others in the byte alphabet.
std::vector<std::string> written_tokens(BpeModel const& model) {
  std::vector<std::string> written;
  written.reserve(model.tokens.size());
  for (std::string const& bytes : model.tokens) written.push_back(to_characters(bytes));
  for (std::int32_t const id : model.special_ids) {
    written[static_cast<std::size_t>(id)] = model.tokens[static_cast<std::size_t>(id)];
  }
  return written;
}

Json added_tokens(BpeModel const& model) {
  Json list = Json::array();
  for (std::int32_t const id : model.special_ids) {
    list.push_back({{"id", id},
                    {"content", model.tokens[static_cast<std::size_t>(id)]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  }
  return list;
}

Json model_section(BpeModel const& model) {
  std::vector<std::string> const written = written_tokens(model);
  Json vocabulary = Json::object();
  // Appends without looking for the key, which is new.
  auto& entries = vocabulary.get_ref<Json::object_t&>();
  for (std::size_t id = 0; id < written.size(); ++id) entries.push_back({written[id], id});
  Json merges = Json::array();
  for (Merge const& merge : model.merges) {
    merges.push_back(written[static_cast<std::size_t>(merge.left)] + " " +
                     written[static_cast<std::size_t>(merge.right)]);
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

}  // namespace

BpeModel read_tokenizer_json(std::filesystem::path const& path) {
  Source const source{path};
  SortedJson const root = parse(path);
  check_features(source, root);
  std::unordered_map<std::int32_t, std::string> const added = read_added_tokens(source, root);
  Ids const ids = read_vocabulary(source, root["model"]);
  BpeModel model;
  fill_tokens(source, ids, added, model);
  model.merges = read_merges(source, root["model"], ids);
  model.end_of_text_id = -1;
  for (auto const& [id, text] : added) {
    model.special_ids.push_back(id);
    if (text == end_of_text) model.end_of_text_id = id;
  }
  std::sort(model.special_ids.begin(), model.special_ids.end());
  source.require(model.end_of_text_id >= 0,
                 "added_tokens",
                 "lacks \"" + std::string{end_of_text} + "\", which ends each document");
  return model;
}

void write_tokenizer_json(std::filesystem::path const& path, BpeModel const& model) {
  Json const root{{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", added_tokens(model)},
                  {"normalizer", nullptr},
                  {"pre_tokenizer", byte_level_step(false)},
                  {"post_processor", nullptr},
                  {"decoder", byte_level_step(true)},
                  {"model", model_section(model)}};
  PendingFile file{path};
  write_synced_file(file.temporary(), root.dump(1) + "\n");
  file.publish();
}

}  // namespace motley::io::detail
