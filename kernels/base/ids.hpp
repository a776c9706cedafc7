#pragma once

#include <compare>
#include <cstdint>

namespace motley {

/// An integer that cannot be mistaken for another one.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::int64_t value) : value_{value} {}
  [[nodiscard]] constexpr std::int64_t get() const { return value_; }
  constexpr auto operator<=>(Id const&) const = default;

 private:
  std::int64_t value_ = 0;
};

using StageId = Id<struct StageTag>;
using MicrobatchId = Id<struct MicrobatchTag>;
using LayerId = Id<struct LayerTag>;
using WorldRank = Id<struct WorldRankTag>;
using GroupRank = Id<struct GroupRankTag>;

}  // namespace motley
