#pragma once

#include <cstdint>

#include "model/layers/attention_block.hpp"
#include "model/layers/mlp_block.hpp"

// Shapes: D model width, R rows (batch times tokens).

namespace motley::model {

template <class T>
struct LayerParameters {
  AttentionParameters<T> attention;
  MlpParameters<T> mlp;
};

/// One transformer layer: attention branch, then feed-forward branch.
template <class T>
class TransformerLayer final {
 public:
  using A = Accumulator<T>;

  /// What the forward leaves for the backward, beside the layer's input.
  struct Saved {
    typename AttentionBlock<T>::Saved attention;
    View2<T> middle;  ///< [R, D], between the branches
    typename MlpBlock<T>::Saved mlp;
  };
  /// What backward_input leaves for backward_weight, beside its own input.
  struct Pending {
    typename AttentionBlock<T>::Pending attention;
    View2<T> d_middle;  ///< [R, D]
    typename MlpBlock<T>::Pending mlp;
  };

  TransformerLayer(LayerContext const& context,
                   ModelSpec const& spec,
                   LayerShape const& shape,
                   std::int64_t layer,
                   LayerParameters<T> const& parameters,
                   kernels::RopeTable<A> const& rope);

  [[nodiscard]] Saved make_saved(Arena& arena, std::int64_t batch, std::int64_t tokens) const;
  [[nodiscard]] Pending make_pending(Arena& arena, std::int64_t rows) const;

  /// Call after each change of the weights.
  void pack(Exec const& exec);

  /// x [R, D] -> y [R, D] and `saved`.
  ///
  /// Comm     collective over the group
  void forward(Pass const& pass,
               View2<T const> x,
               Saved const& saved,
               LayerScratch<T> const& scratch,
               View2<T> y);

  /// Fills `saved` again from the layer's input, to the bit as `forward` did.
  ///
  /// Comm     collective over the group
  void recompute(Pass const& pass,
                 View2<T const> x,
                 Saved const& saved,
                 LayerScratch<T> const& scratch);

  /// dy [R, D] -> dx [R, D], which must not be dy; dy, `saved` and `pending` stay until
  /// backward_weight.
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
  std::int64_t hidden_;
  AttentionBlock<T> attention_;
  MlpBlock<T> mlp_;
};

}  // namespace motley::model
