#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/philox.hpp"
#include "kernels/dropout.hpp"
#include "kernels/reference/matmul.hpp"

// Written to be read: one element at a time, in double.

namespace motley::kernels::reference {

/// Whether dropout keeps one element: the definition of the mask.
[[nodiscard]] inline bool dropout_keeps(DropoutKey const& key,
                                        std::uint64_t sample,
                                        std::uint64_t element,
                                        double rate) {
  Philox const random{mix_keys(mix_keys(key.seed, key.layer_site), key.step)};
  std::uint32_t const word = random(sample, element / 4).w[element % 4];
  return uniform_from(word) >= static_cast<float>(rate);
}

/// x [B · tokens, D] with some elements 0 and the others divided by 1 - rate.
[[nodiscard]] inline Matrix dropout(DropoutKey const& key,
                                    std::vector<std::uint64_t> const& samples,
                                    double rate,
                                    std::int64_t tokens,
                                    Matrix const& x) {
  Matrix y{x.rows, x.columns};
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t j = 0; j < x.columns; ++j) {
      std::uint64_t const sample = samples[static_cast<std::size_t>(i / tokens)];
      auto const element = static_cast<std::uint64_t>((i % tokens) * x.columns + j);
      if (dropout_keeps(key, sample, element, rate)) y(i, j) = x(i, j) / (1.0 - rate);
    }
  }
  return y;
}

}  // namespace motley::kernels::reference
