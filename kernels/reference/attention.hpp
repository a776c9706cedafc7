#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/reference/matmul.hpp"

// Written to be read: one head at a time, with all its T x T probabilities, in double.
//
// B batch, T tokens, N query heads, G key/value heads, H head width, R = B T rows.

namespace motley::kernels::reference {

/// Where one head of one window lies: its first row, and its columns in qkv and out.
struct AttentionHead {
  std::int64_t row;
  std::int64_t query;
  std::int64_t key;
  std::int64_t value;
  std::int64_t out;
};

inline AttentionHead attention_head(AttentionShape const& s,
                                    std::int64_t window,
                                    std::int64_t head) {
  std::int64_t const kv_head = head / (s.heads / s.kv_heads);
  return {window * s.tokens,
          head * s.head_width,
          (s.heads + kv_head) * s.head_width,
          (s.heads + s.kv_heads + kv_head) * s.head_width,
          head * s.head_width};
}

/// Σ_d a[i, p + d] b[j, q + d] over `width` columns.
inline double row_dot(Matrix const& a,
                      std::int64_t i,
                      std::int64_t p,
                      Matrix const& b,
                      std::int64_t j,
                      std::int64_t q,
                      std::int64_t width) {
  double sum = 0.0;
  for (std::int64_t d = 0; d < width; ++d) sum += a(i, p + d) * b(j, q + d);
  return sum;
}

/// Causal probabilities [T, T] of one head, and the log of each row's sum of exponentials.
struct HeadProbabilities {
  Matrix probability;
  std::vector<double> lse;
};

inline HeadProbabilities head_probabilities(AttentionShape const& s,
                                            AttentionHead const& head,
                                            Matrix const& qkv) {
  double const scale = 1.0 / std::sqrt(static_cast<double>(s.head_width));
  HeadProbabilities result{{s.tokens, s.tokens}, {}};
  for (std::int64_t i = 0; i < s.tokens; ++i) {
    std::vector<double> scores;
    for (std::int64_t j = 0; j <= i; ++j) {
      scores.push_back(
          scale *
          row_dot(qkv, head.row + i, head.query, qkv, head.row + j, head.key, s.head_width));
    }
    double const top = *std::max_element(scores.begin(), scores.end());
    double sum = 0.0;
    for (double const score : scores) sum += std::exp(score - top);
    result.lse.push_back(top + std::log(sum));
    for (std::int64_t j = 0; j <= i; ++j) {
      result.probability(i, j) = std::exp(scores[static_cast<std::size_t>(j)] - top) / sum;
    }
  }
  return result;
}

struct AttentionResult {
  Matrix out;               ///< [R, N H]
  std::vector<double> lse;  ///< [B, N, T]
};

/// out = softmax(q kᵀ / √H) v, causal.
///
/// Shapes   qkv [R, (N + 2G) H]  ->  out [R, N H], lse [B, N, T]
/// Throws   nothing
/// Source   Vaswani et al. 2017, section 3.2.1, eq. 1
inline AttentionResult attention_forward(AttentionShape const& s, Matrix const& qkv) {
  AttentionResult result{{s.batch * s.tokens, s.heads * s.head_width}, {}};
  for (std::int64_t index = 0; index < s.batch * s.heads; ++index) {
    AttentionHead const head = attention_head(s, index / s.heads, index % s.heads);
    auto const [probability, lse] = head_probabilities(s, head, qkv);
    result.lse.insert(result.lse.end(), lse.begin(), lse.end());
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        for (std::int64_t d = 0; d < s.head_width; ++d) {
          result.out(head.row + i, head.out + d) +=
              probability(i, j) * qkv(head.row + j, head.value + d);
        }
      }
    }
  }
  return result;
}

/// Adds the gradients of query i of a head, given its row of probabilities.
inline void add_query_gradient(AttentionShape const& s,
                               AttentionHead const& head,
                               std::int64_t i,
                               Matrix const& probability,
                               Matrix const& qkv,
                               Matrix const& dout,
                               Matrix& dqkv) {
  double const scale = 1.0 / std::sqrt(static_cast<double>(s.head_width));
  std::int64_t const query_row = head.row + i;
  std::vector<double> dp;
  double mean = 0.0;
  for (std::int64_t j = 0; j <= i; ++j) {
    dp.push_back(row_dot(dout, query_row, head.out, qkv, head.row + j, head.value, s.head_width));
    mean += probability(i, j) * dp.back();
  }
  for (std::int64_t j = 0; j <= i; ++j) {
    std::int64_t const key_row = head.row + j;
    double const p = probability(i, j);
    double const ds = p * (dp[static_cast<std::size_t>(j)] - mean) * scale;
    for (std::int64_t d = 0; d < s.head_width; ++d) {
      dqkv(key_row, head.value + d) += p * dout(query_row, head.out + d);
      dqkv(key_row, head.key + d) += ds * qkv(query_row, head.query + d);
      dqkv(query_row, head.query + d) += ds * qkv(key_row, head.key + d);
    }
  }
}

/// Gradient of attention_forward by the chain rule: ds = p (dp − Σ_j p dp).
///
/// Shapes   qkv [R, (N + 2G) H], dout [R, N H]  ->  dqkv [R, (N + 2G) H]
/// Throws   nothing
/// Source   Dao et al. 2022, "FlashAttention", appendix B.2
inline Matrix attention_backward(AttentionShape const& s, Matrix const& qkv, Matrix const& dout) {
  Matrix dqkv{qkv.rows, qkv.columns};
  for (std::int64_t index = 0; index < s.batch * s.heads; ++index) {
    AttentionHead const head = attention_head(s, index / s.heads, index % s.heads);
    Matrix const probability = head_probabilities(s, head, qkv).probability;
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      add_query_gradient(s, head, i, probability, qkv, dout, dqkv);
    }
  }
  return dqkv;
}

}  // namespace motley::kernels::reference
