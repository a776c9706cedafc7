#include "io/checkpoint/checksum.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "kernels/base/error.hpp"
#include "kernels/base/philox.hpp"

namespace motley::io {
namespace {

// Files are little endian, as all our machines are.
static_assert(std::endian::native == std::endian::little);

/// Keys of the 2³² words whose positions share their upper half.
struct BlockKeys {
  std::uint32_t first;
  std::uint32_t second;

  explicit BlockKeys(std::uint64_t upper_half) {
    std::uint64_t const key = mix_keys(0x6D6F746C65792D63ULL, upper_half);
    first = static_cast<std::uint32_t>(key);
    second = static_cast<std::uint32_t>(key >> 32U);
  }
};

/// Sums over words at positions first … first + count - 1 that share their upper half.
///
/// A word w at position j is made a pseudo-random v by bijections keyed by j, and multiplied by odd
/// numbers keyed by j into 64 bits without overflow: so two words never contribute the same at one
/// position. All operations are 32-bit or 32 × 32 → 64, which every vector unit has.
///
/// Source   ours; the odd constants and shifts are those of xxHash32 (Collet) and of murmur3's
///          finalizer (Appleby)
template <class Word>
Checksum sum_of_words(Word const* words, std::uint64_t first, std::int64_t count) {
  BlockKeys const keys{first >> 32U};
  auto const start = static_cast<std::uint32_t>(first);
  std::uint64_t low = 0;
  std::uint64_t high = 0;
#pragma omp simd reduction(+ : low, high)
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t key = ((start + static_cast<std::uint32_t>(i)) ^ keys.first) * 0x9E3779B1U;
    key = (key ^ (key >> 15U)) * 0x85EBCA77U;
    key ^= key >> 13U;
    std::uint32_t const other_key = (key ^ keys.second) * 0xC2B2AE3DU;
    std::uint32_t value = (static_cast<std::uint32_t>(words[i]) ^ key) * 0x85EBCA6BU;
    value ^= value >> 16U;
    std::uint32_t const other_value = std::rotl(value, 11) ^ other_key;
    low += static_cast<std::uint64_t>(value) * (other_key | 1U);
    high += static_cast<std::uint64_t>(other_value) * (key | 1U);
  }
  return {low, high};
}

/// Cuts at positions whose upper half changes.
template <class Word>
Checksum checksum_words(void const* data, std::int64_t first, std::int64_t count) {
  auto const* words = static_cast<Word const*>(data);
  constexpr std::int64_t block = std::int64_t{1} << 32;
  Checksum sum;
  while (count > 0) {
    std::int64_t const part = std::min(count, block - first % block);
    sum += sum_of_words(words, static_cast<std::uint64_t>(first), part);
    words += part;
    first += part;
    count -= part;
  }
  return sum;
}

}  // namespace

Checksum checksum_part(DType dtype, void const* elements, std::int64_t first, std::int64_t count) {
  MOTLEY_EXPECT(first >= 0 && count >= 0);
  switch (size_bytes(dtype)) {
    case 2:
      return checksum_words<std::uint16_t>(elements, first, count);
    case 4:
      return checksum_words<std::uint32_t>(elements, first, count);
    default:
      return checksum_words<std::uint32_t>(elements, 2 * first, 2 * count);
  }
}

std::string to_hex(Checksum const& checksum) {
  constexpr char digits[] = "0123456789abcdef";
  std::string hex(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    hex[15 - i] = digits[(checksum.high >> (4 * i)) & 15U];
    hex[31 - i] = digits[(checksum.low >> (4 * i)) & 15U];
  }
  return hex;
}

std::optional<Checksum> parse_checksum(std::string_view hex) noexcept {
  if (hex.size() != 32) return std::nullopt;
  Checksum checksum;
  char const* const middle = hex.data() + 16;
  char const* const end = hex.data() + 32;
  auto const high = std::from_chars(hex.data(), middle, checksum.high, 16);
  auto const low = std::from_chars(middle, end, checksum.low, 16);
  if (high.ptr != middle || low.ptr != end || to_hex(checksum) != hex) return std::nullopt;
  return checksum;
}

}  // namespace motley::io
