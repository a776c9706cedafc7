#include "kernels/base/philox.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace motley {
namespace {

struct KnownAnswer {
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 4> words;
};

std::uint64_t join(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{low} | (std::uint64_t{high} << 32U);
}

TEST(PhiloxTest, gives_the_published_known_answers) {
  // Random123, file kat_vectors, the lines "philox4x32 10": zeros, ones, and digits of pi.
  constexpr KnownAnswer answers[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (KnownAnswer const& answer : answers) {
    Philox const random{join(answer.key[0], answer.key[1])};
    Philox::Words const words = random(join(answer.counter[2], answer.counter[3]),
                                       join(answer.counter[0], answer.counter[1]));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(words.w[i], answer.words[i]) << i;
  }
}

TEST(PhiloxTest, uniform_numbers_fill_the_half_open_interval_evenly) {
  EXPECT_EQ(uniform_from(0), 0.0F);
  EXPECT_EQ(uniform_from(0x80000000U), 0.5F);
  EXPECT_EQ(uniform_from(0xFFFFFFFFU), 1.0F - 0x1p-24F);
  constexpr int count = 100000;
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < count / 4; ++i) {
    for (std::uint32_t const word : Philox{99}(0, i).w) {
      double const u = uniform_from(word);
      sum += u;
      squares += u * u;
    }
  }
  // Mean 1/2 and mean square 1/3, within five standard deviations (variances 1/12 and 4/45).
  EXPECT_NEAR(sum / count, 0.5, 5 * std::sqrt(1.0 / 12 / count));
  EXPECT_NEAR(squares / count, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / count));
}

TEST(MixKeysTest, is_the_output_function_of_splitmix64) {
  // The first outputs of splitmix64 from the state 1234567, as published with several languages'
  // implementations of it.
  EXPECT_EQ(mix_keys(1234567, 0), 6457827717110365317ULL);
  EXPECT_EQ(mix_keys(1234567, 1), 3203168211198807973ULL);
  EXPECT_EQ(mix_keys(1234567, 2), 9817491932198370423ULL);
}

TEST(MixKeysTest, neighbouring_pairs_get_different_keys) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t a = 0; a < 100; ++a) {
    for (std::uint64_t b = 0; b < 100; ++b) keys.insert(mix_keys(a, b));
  }
  EXPECT_EQ(keys.size(), 10000U);
}

}  // namespace
}  // namespace motley
