#include "io/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "io/hash.hpp"
#include "io/tokenizer/detail/merge_table.hpp"
#include "io/tokenizer/detail/pretoken_cache.hpp"
#include "io/tokenizer/detail/tokenizer_json.hpp"
#include "io/tokenizer/pretokenizer.hpp"
#include "kernels/base/error.hpp"

namespace motley::io {
namespace {

// A longer pre-token (a MiB without a break is no natural text) is merged in parts of this size, so
// that the working memory has a bound.
constexpr std::size_t longest_merge_bytes = std::size_t{1} << 20U;

using ByteIds = std::array<std::int32_t, 256>;

bool is_id(BpeModel const& model, std::int32_t id) {
  return id >= 0 && static_cast<std::size_t>(id) < model.tokens.size();
}

std::string const& bytes_of(BpeModel const& model, std::int32_t id) {
  return model.tokens[static_cast<std::size_t>(id)];
}

bool is_special(BpeModel const& model, std::int32_t id) {
  return std::find(model.special_ids.begin(), model.special_ids.end(), id) !=
         model.special_ids.end();
}

void check_merges(BpeModel const& model) {
  for (std::size_t rank = 0; rank < model.merges.size(); ++rank) {
    auto const& [left, right, result] = model.merges[rank];
    bool const are_ids = is_id(model, left) && is_id(model, right) && is_id(model, result);
    MOTLEY_VALIDATE(
        data,
        are_ids && bytes_of(model, result) == bytes_of(model, left) + bytes_of(model, right),
        "merge " << rank << " of the tokenizer makes " << result << " of " << left << " and "
                 << right
                 << " (their bytes do not join to it, or an id is not in the "
                    "vocabulary); train or fetch the tokenizer again");
  }
}

void check_special_ids(BpeModel const& model) {
  for (std::int32_t const id : model.special_ids) {
    MOTLEY_VALIDATE(data,
                    is_id(model, id),
                    "special token " << id << " is not in the vocabulary (ids end at "
                                     << model.tokens.size()
                                     << "); train or fetch the tokenizer again");
  }
  MOTLEY_VALIDATE(data,
                  is_special(model, model.end_of_text_id),
                  "the tokenizer has no special token \""
                      << end_of_text
                      << "\" (it marks the end of each document); use a tokenizer that has it");
}

ByteIds find_byte_ids(BpeModel const& model) {
  ByteIds ids{};
  ids.fill(-1);
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    std::string const& bytes = model.tokens[id];
    if (bytes.size() != 1 || is_special(model, static_cast<std::int32_t>(id))) continue;
    ids[static_cast<unsigned char>(bytes[0])] = static_cast<std::int32_t>(id);
  }
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    MOTLEY_VALIDATE(data,
                    ids[byte] >= 0,
                    "the tokenizer has no token for byte "
                        << byte
                        << " (a byte-level tokenizer has all "
                           "256); use one trained at byte level");
  }
  return ids;
}

void add_number(Sha256& hash, std::size_t value) {
  std::array<char, 8> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFFU);
    value >>= 8U;
  }
  hash.update(std::string_view{bytes.data(), bytes.size()});
}

/// SHA-256 over counts and values as 64-bit little-endian numbers, tokens preceded by their length.
std::string fingerprint_of(BpeModel const& model) {
  Sha256 hash;
  hash.update(gpt2_pattern);
  add_number(hash, model.tokens.size());
  for (std::string const& token : model.tokens) {
    add_number(hash, token.size());
    hash.update(token);
  }
  add_number(hash, model.merges.size());
  for (Merge const& merge : model.merges) {
    add_number(hash, static_cast<std::size_t>(merge.left));
    add_number(hash, static_cast<std::size_t>(merge.right));
  }
  add_number(hash, model.special_ids.size());
  for (std::int32_t const id : model.special_ids) add_number(hash, static_cast<std::size_t>(id));
  add_number(hash, static_cast<std::size_t>(model.end_of_text_id));
  return to_hex(hash.finish());
}

}  // namespace

struct Tokenizer::State {
  explicit State(BpeModel given) : model{std::move(given)}, merge_table{model.merges} {
    check_special_ids(model);
    check_merges(model);
    byte_ids = find_byte_ids(model);
    fingerprint = fingerprint_of(model);
  }

  BpeModel model;
  detail::MergeTable merge_table;
  ByteIds byte_ids{};
  std::string fingerprint;
};

Tokenizer::Tokenizer(BpeModel model) : state_{std::make_shared<State const>(std::move(model))} {}

Tokenizer Tokenizer::load(std::filesystem::path const& path) {
  return Tokenizer{detail::read_tokenizer_json(path)};
}

void Tokenizer::save(std::filesystem::path const& path) const {
  detail::write_tokenizer_json(path, state_->model);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  Encoder{*this}.encode(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<std::int32_t const> ids) const {
  std::string text;
  for (std::size_t place = 0; place < ids.size(); ++place) {
    MOTLEY_VALIDATE(data,
                    is_id(state_->model, ids[place]),
                    "token " << ids[place] << " at place " << place
                             << " cannot be decoded (the vocabulary ends at " << vocab_size()
                             << "); use the tokenizer that made the tokens");
    text += bytes_of(state_->model, ids[place]);
  }
  return text;
}

std::int64_t Tokenizer::vocab_size() const noexcept {
  return static_cast<std::int64_t>(state_->model.tokens.size());
}
std::int32_t Tokenizer::end_of_text_id() const noexcept { return state_->model.end_of_text_id; }
std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  MOTLEY_EXPECT(is_id(state_->model, id));
  return bytes_of(state_->model, id);
}
std::string const& Tokenizer::fingerprint() const noexcept { return state_->fingerprint; }
BpeModel const& Tokenizer::model() const noexcept { return state_->model; }

struct Encoder::State {
  // A pre-token during merging: a list of symbols, linked by places.
  struct Symbol {
    std::int32_t id = 0;
    std::int32_t previous = 0;  // -1 before the first
    std::int32_t next = 0;      // the number of symbols after the last
  };

  explicit State(Tokenizer given) : tokenizer{std::move(given)} {}

  void append(std::string_view token, std::vector<std::int32_t>& ids);
  void append_merged(std::string_view token, std::vector<std::int32_t>& ids);
  void fill_symbols(std::string_view token);
  void push_candidate(std::int32_t left_place);
  void merge_at(std::int32_t place, Merge const& merge);

  Tokenizer tokenizer;
  PreTokenizer pretokenizer;
  detail::PretokenCache cache;
  std::vector<Symbol> symbols;
  // Merges that may be done, as rank · 2³² + place: a heap with the smallest first.
  std::vector<std::uint64_t> candidates;
};

void Encoder::State::append(std::string_view token, std::vector<std::int32_t>& ids) {
  detail::PretokenCache::Slot* const slot = cache.slot_of(token);
  if (slot != nullptr && slot->holds(token)) {
    ids.insert(ids.end(), slot->value().begin(), slot->value().end());
    return;
  }
  std::size_t const before = ids.size();
  for (std::size_t at = 0; at < token.size(); at += longest_merge_bytes) {
    append_merged(token.substr(at, longest_merge_bytes), ids);
  }
  if (slot != nullptr) slot->keep(token, std::span{ids}.subspan(before));
}

void Encoder::State::fill_symbols(std::string_view token) {
  ByteIds const& byte_ids = tokenizer.state_->byte_ids;
  symbols.resize(token.size());
  for (std::size_t i = 0; i < token.size(); ++i) {
    symbols[i] = {byte_ids[static_cast<unsigned char>(token[i])],
                  static_cast<std::int32_t>(i) - 1,
                  static_cast<std::int32_t>(i) + 1};
  }
}

void Encoder::State::push_candidate(std::int32_t left_place) {
  Symbol const& left = symbols[static_cast<std::size_t>(left_place)];
  if (static_cast<std::size_t>(left.next) == symbols.size()) return;
  std::int32_t const right_id = symbols[static_cast<std::size_t>(left.next)].id;
  std::int32_t const rank = tokenizer.state_->merge_table.rank(left.id, right_id);
  if (rank == detail::MergeTable::no_rank) return;
  candidates.push_back((static_cast<std::uint64_t>(rank) << 32U) |
                       static_cast<std::uint64_t>(left_place));
  std::push_heap(candidates.begin(), candidates.end(), std::greater<>{});
}

/// Does the merge at this place, unless one before has changed the pair that stood there.
void Encoder::State::merge_at(std::int32_t place, Merge const& merge) {
  constexpr std::int32_t gone = -1;
  Symbol& left = symbols[static_cast<std::size_t>(place)];
  if (left.id != merge.left || static_cast<std::size_t>(left.next) == symbols.size()) return;
  Symbol& right = symbols[static_cast<std::size_t>(left.next)];
  if (right.id != merge.right) return;
  left.id = merge.result;
  right.id = gone;
  left.next = right.next;
  if (static_cast<std::size_t>(left.next) < symbols.size()) {
    symbols[static_cast<std::size_t>(left.next)].previous = place;
  }
  if (left.previous >= 0) push_candidate(left.previous);
  push_candidate(place);
}

void Encoder::State::append_merged(std::string_view token, std::vector<std::int32_t>& ids) {
  std::vector<Merge> const& merges = tokenizer.state_->model.merges;
  fill_symbols(token);
  candidates.clear();
  for (std::size_t i = 0; i + 1 < token.size(); ++i) push_candidate(static_cast<std::int32_t>(i));
  while (!candidates.empty()) {
    std::uint64_t const best = candidates.front();
    std::pop_heap(candidates.begin(), candidates.end(), std::greater<>{});
    candidates.pop_back();
    merge_at(static_cast<std::int32_t>(best & 0xFFFFFFFFU), merges[best >> 32U]);
  }
  for (std::size_t i = 0; i < symbols.size(); i = static_cast<std::size_t>(symbols[i].next)) {
    ids.push_back(symbols[i].id);
  }
}

Encoder::Encoder(Tokenizer tokenizer) : state_{std::make_unique<State>(std::move(tokenizer))} {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

void Encoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
  state_->pretokenizer.start(text);
  std::string_view token;
  while (state_->pretokenizer.next(token)) state_->append(token, ids);
}

}  // namespace motley::io
