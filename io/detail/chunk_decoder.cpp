#include "io/detail/chunk_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <libdeflate.h>

namespace motley::io::detail {
namespace {

/// Sums of a block of words: of the words, and of the words each times its distance to the end.
struct Sums {
  std::uint64_t plain = 0;
  std::uint64_t weighted = 0;
};

std::uint64_t word_at(std::byte const* bytes) noexcept {
  return (std::to_integer<std::uint64_t>(bytes[0]) << 8U) |
         std::to_integer<std::uint64_t>(bytes[1]);
}

/// Adds `count` words; `count` below 2²² keeps all sums within 64 bits.
void add_words(Sums& sums, std::byte const* bytes, std::size_t count) noexcept {
  std::uint64_t plain = 0;
  std::uint64_t weighted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t const word = word_at(bytes + 2 * i);
    plain += word;
    weighted += word * (count - i);
  }
  sums.weighted += sums.plain * count + weighted;
  sums.plain += plain;
}

/// A sum modulo 65535 in ones' complement: 65535 stands for a multiple of it other than 0.
std::uint64_t reduce(std::uint64_t sum) noexcept {
  while (sum > 0xFFFFU) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return sum;
}

/// Puts the bytes of elements together again: all first bytes come first, then all second ones.
template <std::size_t Width>
void unshuffle(std::byte const* from, std::byte* to, std::size_t elements) noexcept {
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t b = 0; b < Width; ++b) to[i * Width + b] = from[b * elements + i];
  }
}

std::span<std::byte> unshuffle(std::span<std::byte> from,
                               std::span<std::byte> to,
                               std::int64_t element_bytes) {
  std::size_t const elements = from.size() / static_cast<std::size_t>(element_bytes);
  switch (element_bytes) {
    case 1:
      return from;
    case 2:
      unshuffle<2>(from.data(), to.data(), elements);
      break;
    case 4:
      unshuffle<4>(from.data(), to.data(), elements);
      break;
    default:
      unshuffle<8>(from.data(), to.data(), elements);
      break;
  }
  // What is left over is not shuffled.
  std::size_t const done = elements * static_cast<std::size_t>(element_bytes);
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(done),
            from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(done));
  return to.first(from.size());
}

/// Checks and cuts off a checksum at the end; false if it is wrong.
bool cut_checksum(std::span<std::byte>& bytes) noexcept {
  if (bytes.size() < 4) return false;
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - 4, 4);  // little-endian, as we are
  bytes = bytes.first(bytes.size() - 4);
  return stored == fletcher32(bytes);
}

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

std::uint32_t fletcher32(std::span<std::byte const> bytes) noexcept {
  constexpr std::size_t block_words = std::size_t{1} << 19U;
  Sums sums;
  std::size_t const words = bytes.size() / 2;
  for (std::size_t at = 0; at < words; at += block_words) {
    add_words(sums, bytes.data() + 2 * at, std::min(block_words, words - at));
    sums = {reduce(sums.plain), reduce(sums.weighted)};
  }
  if (bytes.size() % 2 != 0) {
    sums.plain += std::to_integer<std::uint64_t>(bytes.back()) << 8U;
    sums.weighted += sums.plain;
  }
  return static_cast<std::uint32_t>((reduce(sums.weighted) << 16U) | reduce(sums.plain));
}

void ChunkDecoder::FreeDecompressor::operator()(
    libdeflate_decompressor* decompressor) const noexcept {
  libdeflate_free_decompressor(decompressor);
}

ChunkDecoder::ChunkDecoder(std::int64_t chunk_bytes, std::int64_t element_bytes)
    : element_bytes_{element_bytes},
      stored_(size(largest_stored_bytes(chunk_bytes))),
      inflated_(size(largest_stored_bytes(chunk_bytes))),
      unshuffled_(size(largest_stored_bytes(chunk_bytes))),
      decompressor_{libdeflate_alloc_decompressor()} {
  if (decompressor_ == nullptr) throw std::bad_alloc{};
}

std::int64_t ChunkDecoder::largest_stored_bytes(std::int64_t chunk_bytes) {
  // What does not compress grows by 5 bytes per stored block, which are at least 16 KiB long; head
  // and end take 18 bytes. A checksum may come before and after.
  return chunk_bytes + chunk_bytes / 1024 + 64;
}

std::span<std::byte> ChunkDecoder::inflate(std::span<std::byte const> from) {
  std::size_t bytes = 0;
  libdeflate_result const result = libdeflate_zlib_decompress(
      decompressor_.get(), from.data(), from.size(), inflated_.data(), inflated_.size(), &bytes);
  return std::span{inflated_}.first(result == LIBDEFLATE_SUCCESS ? bytes : 0);
}

std::string ChunkDecoder::decode(std::size_t stored_bytes,
                                 std::span<Filter const> filters,
                                 std::uint32_t mask,
                                 std::span<std::byte> out) {
  std::span<std::byte> bytes = std::span{stored_}.first(stored_bytes);
  for (std::size_t i = filters.size(); i-- > 0;) {
    if ((mask >> i & 1U) != 0) continue;
    switch (filters[i]) {
      case Filter::fletcher32:
        if (!cut_checksum(bytes)) return "its checksum does not match";
        break;
      case Filter::deflate:
        bytes = inflate(bytes);
        if (bytes.empty()) return "it cannot be decompressed";
        break;
      case Filter::shuffle:
        bytes = unshuffle(bytes, unshuffled_, element_bytes_);
        break;
    }
  }
  if (bytes.size() != out.size()) {
    return "it has " + std::to_string(bytes.size()) + " bytes instead of " +
           std::to_string(out.size());
  }
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return {};
}

}  // namespace motley::io::detail
