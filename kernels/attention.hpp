#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

// B batch, T tokens, N query heads, G key/value heads, H head width, R = B T rows.

namespace motley::kernels {

/// Sizes of one attention. Query head n uses key/value head n / (heads / kv_heads).
///
/// The columns of a `qkv` row are N query heads, then G key heads, then G value heads, each H wide,
/// as one fused linear operator makes them.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;

  [[nodiscard]] MOTLEY_FUNCTION std::int64_t rows() const { return batch * tokens; }
  [[nodiscard]] MOTLEY_FUNCTION std::int64_t group() const { return heads / kv_heads; }
  [[nodiscard]] MOTLEY_FUNCTION std::int64_t qkv_columns() const {
    return (heads + 2 * kv_heads) * head_width;
  }
  [[nodiscard]] MOTLEY_FUNCTION std::int64_t query_column(std::int64_t head) const {
    return head * head_width;
  }
  [[nodiscard]] MOTLEY_FUNCTION std::int64_t key_column(std::int64_t kv_head) const {
    return (heads + kv_head) * head_width;
  }
  [[nodiscard]] MOTLEY_FUNCTION std::int64_t value_column(std::int64_t kv_head) const {
    return (heads + kv_heads + kv_head) * head_width;
  }
};

/// What the forward pass leaves for the backward pass: its input and its two outputs.
template <class T>
struct AttentionSaved {
  View2<T const> qkv;               // [R, (N + 2G) H]
  View2<T const> out;               // [R, N H]
  View3<Accumulator<T> const> lse;  // [B, N, T]
};

/// Bytes of workspace that forward and backward need at this shape; nothing in it is kept between
/// calls.
///
/// Shapes   none
/// Throws   Error{bug} if the heads do not divide into groups or an extent is not positive
/// Source   ours
template <class T>
[[nodiscard]] std::size_t attention_workspace_bytes(AttentionShape const& shape);

/// Causal self-attention with grouped key/value heads: out = softmax(q kᵀ / √H) v per head, where
/// token i attends to the tokens 0 … i of its window.
///
/// Shapes   qkv [R, (N + 2G) H]  ->  out [R, N H], lse [B, N, T]
/// Types    qkv, out of T; lse, softmax and sums in Accumulator<T>
/// Layout   LayoutRight; out must not overlap qkv
/// Runs on  `exec`, asynchronous; deterministic, the bits do not depend on the number of threads
/// Cost     2 B N T² H flop (the causal half), O(T) memory; no allocation
/// Throws   Error{bug} if extents disagree or the workspace is too small
/// Source   Dao 2023, "FlashAttention-2", algorithm 1; lse is its L: log Σ exp of the scaled scores
template <class T>
void attention_forward(Exec const& exec,
                       AttentionShape const& shape,
                       View2<T const> const& qkv,
                       View2<T> const& out,
                       View3<Accumulator<T>> const& lse,
                       View1<std::byte> const& workspace);

/// Gradient of attention_forward; recomputes the probabilities from the saved log-sum-exp.
///
/// Shapes   saved {qkv [R, (N + 2G) H], out [R, N H], lse [B, N, T]}, dout [R, N H]
///          ->  dqkv [R, (N + 2G) H], all of it overwritten
/// Types    as attention_forward
/// Layout   LayoutRight; dqkv must not overlap any input
/// Runs on  `exec`, asynchronous; deterministic, the bits do not depend on the number of threads
/// Cost     5 B N T² H flop (the causal half); no allocation
/// Throws   Error{bug} if extents disagree or the workspace is too small
/// Source   Dao 2023, "FlashAttention-2", algorithm 2
template <class T>
void attention_backward(Exec const& exec,
                        AttentionShape const& shape,
                        AttentionSaved<T> const& saved,
                        View2<T const> const& dout,
                        View2<T> const& dqkv,
                        View1<std::byte> const& workspace);

}  // namespace motley::kernels
