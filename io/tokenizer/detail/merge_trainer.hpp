#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/tokenizer/tokenizer.hpp"

namespace motley::io::detail {

/// Finds the merges of a byte-pair encoding, most frequent pair first, from counted words.
///
/// Counts of pairs are kept up to date as words change, with the words each pair stands in; the
/// best pair comes from a heap whose outdated entries are put right when they surface. Of equally
/// frequent pairs the one of smaller ids comes first, so that the order of words does not matter.
///
/// Cost     memory: 4 bytes per symbol of the words, and 4 per pair and word
/// Source   Sennrich et al. 2016, section 3.2
class MergeTrainer {
 public:
  /// Starts with the 256 bytes as tokens, in GPT-2's order.
  MergeTrainer();

  /// Adds a word of two bytes or more that occurs `count` times. Before the first merge only.
  void add_word(std::string_view word, std::int64_t count);

  /// Merges the most frequent pair everywhere; false, and nothing is done, if it occurs less than
  /// `min_count` times or there is none.
  [[nodiscard]] bool merge_best(std::int64_t min_count);

  [[nodiscard]] std::vector<std::string> const& tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::vector<Merge> const& merges() const noexcept { return merges_; }

 private:
  struct Pair {
    std::int32_t left = 0;
    std::int32_t right = 0;
    bool operator==(Pair const&) const = default;
  };
  struct PairHash {
    std::size_t operator()(Pair pair) const noexcept;
  };
  struct PairState {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // in which it stands, or stood
    bool is_merged = false;
    bool is_queued = false;  // during a merge: among the pairs that became more frequent
  };
  struct Candidate {
    std::int64_t count = 0;
    Pair pair;
    // The queue puts its largest first.
    bool operator<(Candidate const& other) const noexcept;
  };
  struct Word {
    std::size_t begin = 0;  // in symbols_
    std::uint32_t size = 0;
    std::int64_t count = 0;
  };

  void queue_all();
  [[nodiscard]] std::optional<Pair> best_pair(std::int64_t min_count);
  [[nodiscard]] std::int32_t token_of(Pair pair);
  void merge_in_word(std::uint32_t index, Merge const& merge);
  void add_pair(Pair pair, std::uint32_t word);
  void remove_pair(Pair pair, std::uint32_t word);

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<Merge> merges_;
  std::vector<std::int32_t> symbols_;
  std::vector<Word> words_;
  std::unordered_map<Pair, PairState, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> grown_;  // pairs that became more frequent during this merge
  bool is_started_ = false;
};

}  // namespace motley::io::detail
