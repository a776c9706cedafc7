#pragma once

#include <cstdint>

#include "model/layers/layer_shape.hpp"
#include "model/layers/linear.hpp"
#include "model/layers/norm.hpp"
#include "model/layers/scratch.hpp"

// Shapes: D model width, F feed-forward width of one rank, R rows (batch times tokens), U = F
// (gpt2) or 2 F (llama: gate | up).

namespace motley::model {

template <class T>
struct MlpParameters {
  VectorParameter<T> norm_weight;
  VectorParameter<T> norm_bias;
  MatrixParameter<T> up;  ///< with the gate before it in llama, [U, D]
  VectorParameter<T> up_bias;
  MatrixParameter<T> down;  ///< [F, D]
  VectorParameter<T> down_bias;
};

/// The feed-forward branch: y = x + dropout(activation(norm(x) W₁ + b₁) W₂ + b₂), the activation
/// GELU or SwiGLU.
template <class T>
class MlpBlock final {
 public:
  using A = Accumulator<T>;

  /// What the forward leaves for the backward.
  struct Saved {
    NormSaved<T> norm;
    View2<T> normed;     ///< [R, D]
    View2<T> up;         ///< [R, U], before the activation
    View2<T> activated;  ///< [R, F]
  };
  /// What backward_input leaves for backward_weight, beside its own input.
  struct Pending {
    View2<T> d_up;      ///< [R, U]
    View2<T> d_branch;  ///< [R, D], with dropout
  };

  MlpBlock(LayerContext const& context,
           ModelSpec const& spec,
           LayerShape const& shape,
           std::int64_t layer,
           MlpParameters<T> const& parameters);

  [[nodiscard]] Saved make_saved(Arena& arena, std::int64_t rows) const;
  [[nodiscard]] Pending make_pending(Arena& arena, std::int64_t rows) const;

  void pack(Exec const& exec);

  /// The forward as far as the backward needs it: x [R, D] -> `saved`.
  void activate(Pass const& pass, View2<T const> x, Saved const& saved);
  /// Its rest: x [R, D], saved.activated -> y [R, D].
  ///
  /// Comm     collective over the group
  void project(Pass const& pass, View2<T const> x, Saved const& saved, View2<T> y);

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
  [[nodiscard]] std::int64_t up_width() const noexcept {
    return family_ == Family::llama ? 2 * shape_.ffn : shape_.ffn;
  }

  Family family_;
  LayerShape shape_;
  bool has_dropout_;
  Norm<T> norm_;
  ColumnLinear<T> up_;
  ResidualOutput<T> down_;
};

}  // namespace motley::model
