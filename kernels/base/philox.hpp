#pragma once

#include <cstdint>

#include "kernels/base/dtype.hpp"

namespace motley {

/// Counter-based random numbers: four 32-bit words, a pure function of (key, counter).
///
/// Whoever needs randomness names it (seed, tensor or layer, step, sample, element), so that any
/// rank computes the same number for the same element under any plan.
///
/// Source   Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
///          Philox4x32-10; constants from its table 2
struct Philox {
  struct Words {
    std::uint32_t w[4];
  };

  std::uint64_t key = 0;

  [[nodiscard]] MOTLEY_FUNCTION Words operator()(std::uint64_t high, std::uint64_t low) const {
    auto c0 = static_cast<std::uint32_t>(low);
    auto c1 = static_cast<std::uint32_t>(low >> 32U);
    auto c2 = static_cast<std::uint32_t>(high);
    auto c3 = static_cast<std::uint32_t>(high >> 32U);
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32U);
    for (int round = 0; round < 10; ++round) {
      std::uint64_t const p0 = 0xD2511F53ULL * c0;
      std::uint64_t const p1 = 0xCD9E8D57ULL * c2;
      c0 = static_cast<std::uint32_t>(p1 >> 32U) ^ c1 ^ k0;
      c1 = static_cast<std::uint32_t>(p1);
      c2 = static_cast<std::uint32_t>(p0 >> 32U) ^ c3 ^ k1;
      c3 = static_cast<std::uint32_t>(p0);
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    return {{c0, c1, c2, c3}};
  }
};

/// Uniform in [0, 1) with 24 bits from one word.
[[nodiscard]] MOTLEY_FUNCTION float uniform_from(std::uint32_t word) {
  return static_cast<float>(word >> 8U) * 0x1p-24F;
}

/// 64-bit mix of two values into a key (the finalizer of splitmix64).
///
/// Source   Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014
[[nodiscard]] MOTLEY_FUNCTION std::uint64_t mix_keys(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15ULL * (b + 1);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

}  // namespace motley
