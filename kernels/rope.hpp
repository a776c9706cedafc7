#pragma once

#include <cstdint>

#include "kernels/attention.hpp"
#include "kernels/base/arena.hpp"
#include "kernels/base/view.hpp"

// B batch, T tokens, N query heads, G key/value heads, H head width, R = B T rows.

namespace motley::kernels {

/// Sizes of a table of rotations.
struct RopeSpec {
  double theta = 10000.0;       ///< base of the frequencies
  std::int64_t head_width = 0;  ///< even
  std::int64_t max_tokens = 0;
};

/// Cosines and sines of the rotary position embedding: entry (t, k) is of the angle
/// t theta^(-2k/H), computed in double.
template <class A>
struct RopeTable {
  View2<A const> cosine;  // [max_tokens, H/2]
  View2<A const> sine;    // [max_tokens, H/2]
};

/// Takes a table from the arena and fills it (fenced on return); on a counting arena only takes it.
///
/// Shapes   none  ->  cosine, sine [max_tokens, H/2]
/// Throws   Error{bug} if head_width is odd or a size is not positive
/// Source   Su et al. 2021, "RoFormer", section 3.4.2, eq. 15
template <class A>
[[nodiscard]] RopeTable<A> make_rope_table(Exec const& exec, Arena& arena, RopeSpec const& spec);

/// Rotates queries and keys in place by their position; values stay. Column k of a head pairs with
/// column k + H/2, as in Hugging Face's LLaMA (the paper pairs neighbours).
///
/// Shapes   table [>= T, H/2], qkv [R, (N + 2G) H]; row r is at position r mod T
/// Types    qkv of T; table and arithmetic in Accumulator<T>
/// Runs on  `exec`, asynchronous
/// Cost     6 R (N + G) H/2 flop; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   Su et al. 2021, "RoFormer", eq. 34; transformers, modeling_llama.py, rotate_half
template <class T>
void rope_forward(Exec const& exec,
                  AttentionShape const& shape,
                  RopeTable<Accumulator<T>> const& table,
                  View2<T> const& qkv);

/// Gradient of rope_forward, in place: the inverse rotation of the gradients of queries and keys.
///
/// Shapes   table [>= T, H/2], dqkv [R, (N + 2G) H]
/// Types, Runs on, Cost, Throws, Source   as rope_forward
template <class T>
void rope_backward(Exec const& exec,
                   AttentionShape const& shape,
                   RopeTable<Accumulator<T>> const& table,
                   View2<T> const& dqkv);

}  // namespace motley::kernels
