#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/tokenizer/tokenizer.hpp"

namespace motley::io::detail {

/// The rank of each merge, found by its pair of ids: open addressing in one flat array.
class MergeTable {
 public:
  static constexpr std::int32_t no_rank = INT32_MAX;

  /// Of two merges with one pair the first counts.
  explicit MergeTable(std::vector<Merge> const& merges)
      : slots_(std::bit_ceil(2 * merges.size() + 1)), shift_{64 - std::countr_zero(slots_.size())} {
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      Slot& slot = slots_[find(key_of(merges[rank].left, merges[rank].right))];
      if (slot.rank != no_rank) continue;
      slot = {key_of(merges[rank].left, merges[rank].right), static_cast<std::int32_t>(rank)};
    }
  }

  /// Rank of the merge of `left` and `right`, or no_rank.
  [[nodiscard]] std::int32_t rank(std::int32_t left, std::int32_t right) const {
    return slots_[find(key_of(left, right))].rank;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t rank = no_rank;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32U) |
           static_cast<std::uint32_t>(right);
  }

  /// Slot of the key, or the free one where it belongs. At most half of the slots are taken.
  std::size_t find(std::uint64_t key) const {
    // Fibonacci hashing: Knuth, The Art of Computer Programming 3, section 6.4.
    std::size_t at = slots_.size() == 1 ? 0 : (key * 0x9E3779B97F4A7C15U) >> shift_;
    while (slots_[at].rank != no_rank && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace motley::io::detail
