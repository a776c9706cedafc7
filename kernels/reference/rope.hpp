#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/attention.hpp"
#include "kernels/reference/matmul.hpp"

namespace motley::kernels::reference {

/// Rotates every query and key head of qkv [R, (N + 2G) H]: columns k and k + H/2 of token t by
/// the angle direction · t · theta^(-2k/H).
///
/// Source   transformers, modeling_llama.py, apply_rotary_pos_emb
[[nodiscard]] inline Matrix rotate(AttentionShape const& s,
                                   double theta,
                                   double direction,
                                   Matrix qkv) {
  std::int64_t const half = s.head_width / 2;
  for (std::int64_t row = 0; row < qkv.rows; ++row) {
    for (std::int64_t head = 0; head < s.heads + s.kv_heads; ++head) {
      for (std::int64_t k = 0; k < half; ++k) {
        double const exponent = -2.0 * static_cast<double>(k) / static_cast<double>(s.head_width);
        double const angle =
            direction * static_cast<double>(row % s.tokens) * std::pow(theta, exponent);
        double& first = qkv(row, head * s.head_width + k);
        double& second = qkv(row, head * s.head_width + half + k);
        double const x = first;
        double const y = second;
        first = x * std::cos(angle) - y * std::sin(angle);
        second = y * std::cos(angle) + x * std::sin(angle);
      }
    }
  }
  return qkv;
}

}  // namespace motley::kernels::reference
