#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/reference/matmul.hpp"

// Written to be read: one row at a time, in double.

namespace motley::kernels::reference {

struct CrossEntropyResult {
  std::vector<double> losses;  ///< [R]
  Matrix dlogits;              ///< [R, W]
};

/// loss = log Σ exp(x) - x_target over the first `vocab` columns; rows of target -1 and the columns
/// from `vocab` on get 0.
///
/// Source   Bishop: "Pattern recognition and machine learning", 2006, eq. 4.108 and 4.109
inline CrossEntropyResult softmax_cross_entropy(Matrix const& logits,
                                                std::int64_t vocab,
                                                std::vector<std::int32_t> const& targets,
                                                double gradient_scale) {
  CrossEntropyResult result{std::vector<double>(targets.size()), {logits.rows, logits.columns}};
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    std::int32_t const target = targets[static_cast<std::size_t>(i)];
    if (target < 0) continue;
    double top = logits(i, 0);
    for (std::int64_t j = 0; j < vocab; ++j) top = std::max(top, logits(i, j));
    double sum = 0.0;
    for (std::int64_t j = 0; j < vocab; ++j) sum += std::exp(logits(i, j) - top);
    result.losses[static_cast<std::size_t>(i)] = std::log(sum) + top - logits(i, target);
    for (std::int64_t j = 0; j < vocab; ++j) {
      double const probability = std::exp(logits(i, j) - top) / sum;
      result.dlogits(i, j) = gradient_scale * (probability - (j == target ? 1.0 : 0.0));
    }
  }
  return result;
}

}  // namespace motley::kernels::reference
