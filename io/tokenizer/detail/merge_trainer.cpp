#include "io/tokenizer/detail/merge_trainer.hpp"

#include <array>
#include <tuple>
#include <utility>

#include "io/tokenizer/detail/byte_alphabet.hpp"
#include "kernels/base/error.hpp"

namespace motley::io::detail {

std::size_t MergeTrainer::PairHash::operator()(Pair pair) const noexcept {
  std::uint64_t const key = (std::uint64_t{static_cast<std::uint32_t>(pair.left)} << 32U) |
                            static_cast<std::uint32_t>(pair.right);
  // Fibonacci hashing: Knuth, The Art of Computer Programming 3, section 6.4.
  return (key * 0x9E3779B97F4A7C15U) >> 16U;
}

bool MergeTrainer::Candidate::operator<(Candidate const& other) const noexcept {
  return std::tie(count, other.pair.left, other.pair.right) <
         std::tie(other.count, pair.left, pair.right);
}

MergeTrainer::MergeTrainer() {
  for (std::uint8_t const byte : byte_alphabet.byte_at) {
    std::string const token(1, static_cast<char>(byte));
    ids_[token] = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back(token);
  }
}

void MergeTrainer::add_word(std::string_view word, std::int64_t count) {
  MOTLEY_EXPECT(!is_started_ && word.size() > 1 && words_.size() < UINT32_MAX);
  static std::array<std::int32_t, 256> const id_of_byte = [] {
    std::array<std::int32_t, 256> ids{};
    for (std::size_t id = 0; id < ids.size(); ++id) {
      ids[byte_alphabet.byte_at[id]] = static_cast<std::int32_t>(id);
    }
    return ids;
  }();
  auto const index = static_cast<std::uint32_t>(words_.size());
  words_.push_back({symbols_.size(), static_cast<std::uint32_t>(word.size()), count});
  for (char const byte : word) symbols_.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
  std::size_t const begin = words_.back().begin;
  for (std::size_t i = begin; i + 1 < symbols_.size(); ++i) {
    add_pair({symbols_[i], symbols_[i + 1]}, index);
  }
}

void MergeTrainer::add_pair(Pair pair, std::uint32_t word) {
  PairState& state = pairs_[pair];
  state.count += words_[word].count;
  if (state.words.empty() || state.words.back() != word) state.words.push_back(word);
  if (std::exchange(state.is_queued, true)) return;
  grown_.push_back(pair);
}

void MergeTrainer::remove_pair(Pair pair, std::uint32_t word) {
  pairs_[pair].count -= words_[word].count;
}

/// Gives the heap the pairs that became more frequent. Those that became less so are in it with a
/// count too high, which best_pair puts right.
void MergeTrainer::queue_all() {
  for (Pair const pair : grown_) {
    PairState& state = pairs_[pair];
    state.is_queued = false;
    queue_.push({state.count, pair});
  }
  grown_.clear();
}

std::optional<MergeTrainer::Pair> MergeTrainer::best_pair(std::int64_t min_count) {
  while (!queue_.empty() && queue_.top().count >= min_count) {
    Candidate const best = queue_.top();
    queue_.pop();
    std::int64_t const count = pairs_[best.pair].count;
    if (count == best.count) return best.pair;
    if (count >= min_count) queue_.push({count, best.pair});
  }
  return std::nullopt;
}

/// Id of the joined token. Two pairs may join to the same bytes: then it is there already.
std::int32_t MergeTrainer::token_of(Pair pair) {
  std::string joined =
      tokens_[static_cast<std::size_t>(pair.left)] + tokens_[static_cast<std::size_t>(pair.right)];
  auto const [entry, is_new] = ids_.emplace(joined, static_cast<std::int32_t>(tokens_.size()));
  if (is_new) tokens_.push_back(std::move(joined));
  return entry->second;
}

bool MergeTrainer::merge_best(std::int64_t min_count) {
  is_started_ = true;
  queue_all();
  std::optional<Pair> const best = best_pair(min_count);
  if (!best) return false;
  Merge const merge{best->left, best->right, token_of(*best)};
  PairState& state = pairs_[*best];
  // A pair may come back if another merge makes one of its tokens anew; its rule is there then.
  if (!std::exchange(state.is_merged, true)) merges_.push_back(merge);
  std::vector<std::uint32_t> const words = std::exchange(state.words, {});
  for (std::uint32_t const word : words) merge_in_word(word, merge);
  return true;
}

void MergeTrainer::merge_in_word(std::uint32_t index, Merge const& merge) {
  Word& word = words_[index];
  std::int32_t* const symbols = symbols_.data() + word.begin;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < word.size; ++i) {
    bool const is_pair =
        i + 1 < word.size && symbols[i] == merge.left && symbols[i + 1] == merge.right;
    if (!is_pair) {
      symbols[kept++] = symbols[i];
      continue;
    }
    remove_pair({merge.left, merge.right}, index);
    if (kept > 0) {
      remove_pair({symbols[kept - 1], merge.left}, index);
      add_pair({symbols[kept - 1], merge.result}, index);
    }
    if (i + 2 < word.size) {
      remove_pair({merge.right, symbols[i + 2]}, index);
      add_pair({merge.result, symbols[i + 2]}, index);
    }
    symbols[kept++] = merge.result;
    ++i;  // the right symbol is gone
  }
  word.size = kept;
}

}  // namespace motley::io::detail
