#pragma once

#include <cstdint>

#include "model/layers/linear.hpp"
#include "model/layers/norm.hpp"

// Shapes: D model width, V vocabulary, W vocabulary padded to full vectors, R rows (batch times
// tokens), C rows of a chunk.

namespace motley::model {

template <class T>
struct HeadParameters {
  VectorParameter<T> norm_weight;
  VectorParameter<T> norm_bias;
  MatrixParameter<T> weight;  ///< [W, D]; rows from V on are zero
};

/// Final norm, product with the vocabulary and cross-entropy.
///
/// Logits exist for one chunk of rows at a time, in A = Accumulator<T>; [R, V] is never stored.
/// The whole vocabulary is on one rank for now.
template <class T>
class Head final {
 public:
  using A = Accumulator<T>;

  /// Memory of one call.
  struct Buffers {
    NormSaved<T> norm;
    View2<T> normed;    ///< [R, D]
    View2<T> d_normed;  ///< [R, D]; empty without backward
    View1<A> losses;    ///< [R], in nats; 0 where the target does not count
    View2<A> logits;    ///< [C, W]
    View2<T> d_logits;  ///< [C, W], the same memory where T is A; empty without backward
  };

  /// `vocab` is V; `parameters.weight` may have more rows.
  Head(LayerContext const& context, ModelSpec const& spec, HeadParameters<T> const& parameters);

  enum class Mode { forward, forward_backward };
  [[nodiscard]] Buffers make_buffers(Arena& arena, std::int64_t rows, Mode mode) const;

  /// Rows of a chunk when `rows` rows are processed.
  [[nodiscard]] std::int64_t chunk_rows(std::int64_t rows) const noexcept;

  void pack(Exec const& exec);

  /// x [R, D] -> buffers.normed.
  void normalize(Exec const& exec, View2<T const> x, Buffers const& buffers);

  /// Losses of all rows, after normalize. targets [R] -> buffers.losses.
  void losses(Exec const& exec, View1<std::int32_t const> targets, Buffers const& buffers);

  /// Losses and the gradients of gradient_scale · Σ losses, after normalize: targets [R] ->
  /// buffers.losses, dx [R, D], and the gradients of the parameters.
  ///
  /// Comm     collective over the group
  void losses_and_gradients(Pass const& pass,
                            View2<T const> x,
                            View1<std::int32_t const> targets,
                            A gradient_scale,
                            Buffers const& buffers,
                            View1<A> norm_workspace,
                            View2<T> dx);

  /// Logits of some rows, after normalize, at most a chunk: -> buffers.logits [count, W].
  void logits(Exec const& exec, std::int64_t first, std::int64_t count, Buffers const& buffers);

 private:
  comm::Group group_;
  std::int64_t vocab_;
  std::int64_t hidden_;
  std::int64_t padded_vocab_;
  MatrixParameter<T> weight_;
  Norm<T> norm_;
  kernels::LinearOperator<T> product_;
};

}  // namespace motley::model
