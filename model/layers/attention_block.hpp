#pragma once

#include <cstdint>

#include "kernels/rope.hpp"
#include "model/layers/layer_shape.hpp"
#include "model/layers/linear.hpp"
#include "model/layers/norm.hpp"
#include "model/layers/scratch.hpp"

// Shapes: D model width, H head width, N query heads, G key/value heads, all of one rank; B
// windows, T tokens, R = B T rows, Q = (N + 2 G) H.

namespace motley::model {

template <class T>
struct AttentionParameters {
  VectorParameter<T> norm_weight;
  VectorParameter<T> norm_bias;
  MatrixParameter<T> qkv;  ///< q, k and v as one, [Q, D]
  VectorParameter<T> qkv_bias;
  MatrixParameter<T> output;  ///< [N·H, D]
  VectorParameter<T> output_bias;
};

/// The attention branch: y = x + dropout(attention(norm(x)) W + b), causal, with rotary positions
/// in llama. There is no dropout on the attention probabilities.
template <class T>
class AttentionBlock final {
 public:
  using A = Accumulator<T>;

  /// What the forward leaves for the backward.
  struct Saved {
    NormSaved<T> norm;
    View2<T> normed;    ///< [R, D]
    View2<T> qkv;       ///< [R, Q], rotated
    View2<T> attended;  ///< [R, N·H]
    View3<A> lse;       ///< [B, N, T]
  };
  /// What backward_input leaves for backward_weight, beside its own input.
  struct Pending {
    View2<T> d_qkv;     ///< [R, Q]
    View2<T> d_branch;  ///< [R, D], with dropout
  };

  /// `rope` is read in llama only and outlives this.
  AttentionBlock(LayerContext const& context,
                 ModelSpec const& spec,
                 LayerShape const& shape,
                 std::int64_t layer,
                 AttentionParameters<T> const& parameters,
                 kernels::RopeTable<A> rope);

  [[nodiscard]] Saved make_saved(Arena& arena, std::int64_t batch, std::int64_t tokens) const;
  [[nodiscard]] Pending make_pending(Arena& arena, std::int64_t rows) const;

  void pack(Exec const& exec);

  /// x [R, D] -> y [R, D].
  ///
  /// Comm     collective over the group
  void forward(Pass const& pass,
               View2<T const> x,
               Saved const& saved,
               LayerScratch<T> const& scratch,
               View2<T> y);

  /// dy [R, D] -> dx [R, D]; dy, `saved` and `pending` stay until backward_weight.
  ///
  /// Comm     collective over the group
  void backward_input(Pass const& pass,
                      View2<T const> x,
                      Saved const& saved,
                      View2<T const> dy,
                      Pending const& pending,
                      LayerScratch<T> const& scratch,
                      View2<T> dx);

  void backward_weight(Pass const& pass,
                       Saved const& saved,
                       View2<T const> dy,
                       Pending const& pending);

 private:
  Family family_;
  LayerShape shape_;
  bool has_dropout_;
  kernels::RopeTable<A> rope_;
  Norm<T> norm_;
  ColumnLinear<T> qkv_;
  ResidualOutput<T> output_;
};

}  // namespace motley::model
