#include "io/checkpoint/checksum.hpp"

#include <bit>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace motley::io {
namespace {

std::vector<std::uint32_t> random_words(std::size_t count, unsigned seed) {
  std::mt19937 random{seed};
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  return words;
}

Checksum checksum_of(std::vector<std::uint32_t> const& words) {
  return checksum_part(DType::fp32, words.data(), 0, static_cast<std::int64_t>(words.size()));
}

TEST(ChecksumTest, golden_values_come_from_a_python_version) {
  // The formula of checksum.cpp, with Python's whole numbers: a file of today is read tomorrow.
  std::vector<float> const singles{1.0F, -2.5F, 0.0F, 3e-40F, 1e30F};
  std::vector<BFloat16> const halves{BFloat16{1.0}, BFloat16{-2.5}, BFloat16{0.0}};
  std::vector<double> const doubles{1.0, -1e-300};
  EXPECT_EQ(to_hex(checksum_part(DType::fp32, singles.data(), 0, 5)),
            "192bcc26a4ed029a89f4111dc3fb05d5");
  EXPECT_EQ(to_hex(checksum_part(DType::fp32, singles.data(), (std::int64_t{1} << 32) - 2, 5)),
            "5b3149668c02f2d2de347ed91051a573");
  EXPECT_EQ(to_hex(checksum_part(DType::bf16, halves.data(), 7, 3)),
            "31bf9129c6dc8e275533117f6d4da2d0");
  EXPECT_EQ(to_hex(checksum_part(DType::fp64, doubles.data(), 3, 2)),
            "2aedd55085b8182b7d55ea9976efd9f1");
}

TEST(ChecksumTest, parts_of_any_partition_add_up) {
  std::vector<std::uint32_t> const words = random_words(3000, 1);
  std::mt19937 random{2};
  for (DType const dtype : {DType::fp32, DType::bf16, DType::fp16, DType::fp64}) {
    auto const bytes = static_cast<std::int64_t>(size_bytes(dtype));
    std::int64_t const count = 4 * 3000 / bytes;
    auto const part = [&](std::int64_t begin, std::int64_t end) {
      auto const* data = reinterpret_cast<std::byte const*>(words.data()) + begin * bytes;
      return checksum_part(dtype, data, begin, end - begin);
    };
    Checksum const whole = part(0, count);
    for (int trial = 0; trial < 50; ++trial) {
      std::set<std::int64_t> cuts{0, count};
      while (cuts.size() < 2 + static_cast<std::size_t>(trial)) {
        cuts.insert(static_cast<std::int64_t>(random() % static_cast<unsigned>(count)));
      }
      Checksum sum;
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
        sum += part(*cut, *std::next(cut));
      }
      EXPECT_EQ(sum, whole) << to_string(dtype) << " in " << cuts.size() - 1 << " parts";
    }
  }
}

TEST(ChecksumTest, every_single_flipped_bit_changes_it) {
  std::vector<std::uint32_t> words = random_words(96, 3);
  for (DType const dtype : {DType::fp32, DType::bf16, DType::fp64}) {
    auto const count = static_cast<std::int64_t>(96 * 4 / size_bytes(dtype));
    std::set<std::string> seen{to_hex(checksum_part(dtype, words.data(), 0, count))};
    for (std::size_t bit = 0; bit < 96 * 32; ++bit) {
      words[bit / 32] ^= 1U << (bit % 32);
      seen.insert(to_hex(checksum_part(dtype, words.data(), 0, count)));
      words[bit / 32] ^= 1U << (bit % 32);
    }
    EXPECT_EQ(seen.size(), 96U * 32U + 1U) << to_string(dtype);
  }
}

TEST(ChecksumTest, swaps_of_any_two_elements_change_it) {
  std::vector<std::uint32_t> words = random_words(64, 4);
  Checksum const whole = checksum_of(words);
  for (std::size_t a = 0; a < words.size(); ++a) {
    for (std::size_t b = a + 1; b < words.size(); ++b) {
      std::swap(words[a], words[b]);
      EXPECT_NE(checksum_of(words), whole) << a << " and " << b;
      std::swap(words[a], words[b]);
    }
  }
}

TEST(ChecksumTest, the_same_bit_flipped_in_two_elements_changes_it) {
  // A plain sum of bits times a constant would not see +2^k here and -2^k there.
  std::vector<std::uint32_t> words(256, 0);
  std::set<std::string> seen;
  for (unsigned const bit : {0U, 15U, 31U}) {
    for (std::size_t a = 0; a < words.size(); ++a) {
      for (std::size_t b = a + 1; b < words.size(); ++b) {
        words[a] ^= 1U << bit;
        words[b] ^= 1U << bit;
        seen.insert(to_hex(checksum_of(words)));
        words[a] ^= 1U << bit;
        words[b] ^= 1U << bit;
      }
    }
  }
  EXPECT_EQ(seen.size(), 3U * 256U * 255U / 2U);
}

TEST(ChecksumTest, zeroed_and_shifted_ranges_change_it) {
  std::vector<std::uint32_t> const words = random_words(2048, 5);
  Checksum const whole = checksum_of(words);
  for (std::size_t length = 1; length <= 1024; length *= 2) {
    for (std::size_t begin = 0; begin + length <= words.size(); begin += 111) {
      std::vector<std::uint32_t> zeroed = words;
      std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(begin), length, 0U);
      EXPECT_NE(checksum_of(zeroed), whole) << length << " at " << begin;
    }
  }
  std::vector<std::uint32_t> shifted = words;
  std::rotate(shifted.begin(), shifted.begin() + 1, shifted.end());
  EXPECT_NE(checksum_of(shifted), whole);
}

TEST(ChecksumTest, a_tensor_of_zeros_has_a_checksum_that_knows_its_length) {
  std::vector<std::uint32_t> const zeros(1000, 0);
  std::set<std::string> seen;
  for (std::int64_t count = 0; count <= 1000; ++count) {
    seen.insert(to_hex(checksum_part(DType::fp32, zeros.data(), 0, count)));
  }
  EXPECT_EQ(seen.size(), 1001U);
}

TEST(ChecksumTest, hexadecimal_digits_come_back) {
  Checksum const checksum{0x0123456789ABCDEFULL, 0xFEDCBA9876543210ULL};
  EXPECT_EQ(to_hex(checksum), "fedcba98765432100123456789abcdef");
  EXPECT_EQ(parse_checksum(to_hex(checksum)), checksum);
  EXPECT_FALSE(parse_checksum("fedcba98765432100123456789abcde"));
  EXPECT_FALSE(parse_checksum("fedcba98765432100123456789abcdeg"));
  EXPECT_FALSE(parse_checksum("FEDCBA98765432100123456789ABCDEF"));
}

}  // namespace
}  // namespace motley::io
