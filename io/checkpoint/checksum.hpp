#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/dtype.hpp"

namespace motley::io {

/// 128-bit checksum of a tensor: a sum over its elements, each contribution a function of (position
/// in the whole tensor, bits). So any partition of the tensor computes its parts, on any ranks and
/// threads, and the parts add up to the same value.
///
/// Any change of one element changes it for certain; swaps, zeroed ranges and other changes of
/// several elements escape with a chance of about 2⁻¹²⁰. It is no defence against forgery.
struct Checksum {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  Checksum& operator+=(Checksum const& part) noexcept {
    low += part.low;  // the two sums are independent: no carry between them
    high += part.high;
    return *this;
  }
  [[nodiscard]] friend Checksum operator+(Checksum a, Checksum const& b) noexcept { return a += b; }
  bool operator==(Checksum const&) const = default;
};

/// Contribution of `count` elements that stand at flat positions first, first + 1, … of the tensor.
///
/// Cost     one pass, one thread; vectorized
[[nodiscard]] Checksum checksum_part(DType dtype,
                                     void const* elements,
                                     std::int64_t first,
                                     std::int64_t count);

/// 32 lower-case hexadecimal digits, high half first.
[[nodiscard]] std::string to_hex(Checksum const& checksum);
[[nodiscard]] std::optional<Checksum> parse_checksum(std::string_view hex) noexcept;

}  // namespace motley::io
