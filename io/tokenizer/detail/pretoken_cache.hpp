#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace motley::io::detail {

/// Remembers the ids of short pre-tokens: text repeats itself, merging is dear.
///
/// Direct-mapped: a pre-token displaces whatever else falls on its slot, so the size is fixed. A
/// slot is one cache line; what does not fit into it is not kept.
class PretokenCache {
 public:
  static constexpr std::size_t max_key = 26;
  static constexpr std::size_t max_ids = 9;

  struct alignas(64) Slot {
    std::array<std::int32_t, max_ids> ids{};
    std::array<char, max_key> key{};
    std::uint8_t key_size = 0;
    std::uint8_t ids_size = 0;

    [[nodiscard]] bool holds(std::string_view token) const {
      return std::string_view{key.data(), key_size} == token;
    }
    [[nodiscard]] std::span<std::int32_t const> value() const { return {ids.data(), ids_size}; }
    void keep(std::string_view token, std::span<std::int32_t const> value) {
      if (value.size() > max_ids) return;
      std::copy(token.begin(), token.end(), key.begin());
      std::copy(value.begin(), value.end(), ids.begin());
      key_size = static_cast<std::uint8_t>(token.size());
      ids_size = static_cast<std::uint8_t>(value.size());
    }
  };

  PretokenCache() : slots_(std::size_t{1} << 15U) {}

  /// The slot of a pre-token that is not empty; null if it is too long to be kept.
  [[nodiscard]] Slot* slot_of(std::string_view token) {
    if (token.size() > max_key) return nullptr;
    return &slots_[std::hash<std::string_view>{}(token) & (slots_.size() - 1)];
  }

 private:
  std::vector<Slot> slots_;
};

}  // namespace motley::io::detail
