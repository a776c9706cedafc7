#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/arena.hpp"
#include "kernels/base/view.hpp"
#include "model/layers/layer_shape.hpp"
#include "model/spec/model_spec.hpp"

// Shapes: D model width, N query heads, H head width, F feed-forward width, R rows.

namespace motley::model {

/// Memory that layers use within one call and share: nothing in it outlives the call.
template <class T>
struct LayerScratch {
  View2<T> d_normed;     ///< [R, D]
  View2<T> d_attended;   ///< [R, N·H]
  View2<T> d_activated;  ///< [R, F], llama
  View1<Accumulator<T>> norm_workspace;
  View1<std::byte> attention_workspace;

  /// Memory of the forward only.
  [[nodiscard]] static LayerScratch make_forward(Arena& arena,
                                                 LayerShape const& shape,
                                                 std::int64_t batch,
                                                 std::int64_t tokens);
  /// Memory of forward and backward.
  [[nodiscard]] static LayerScratch make(Arena& arena,
                                         Family family,
                                         LayerShape const& shape,
                                         std::int64_t batch,
                                         std::int64_t tokens);
};

}  // namespace motley::model
