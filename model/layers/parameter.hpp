#pragma once

#include <cstdint>

#include "comm/group.hpp"
#include "kernels/base/arena.hpp"
#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"
#include "kernels/linear.hpp"

namespace motley::model {

/// A weight matrix, or adjacent ones seen as one, with its gradient (empty without training).
template <class T>
struct MatrixParameter {
  View2<T const> value;
  View2<Accumulator<T>> gradient;
};

/// A vector of parameters with its gradient; empty where the model has none (biases of llama).
template <class T>
struct VectorParameter {
  View1<T const> value;
  View1<Accumulator<T>> gradient;

  [[nodiscard]] bool is_empty() const noexcept { return value.extent(0) == 0; }
};

/// What layers are built with: where products and memory come from, and the ranks of the stage.
struct LayerContext {
  kernels::MatmulEngine& engine;
  Arena& arena;
  comm::Group const& group;
  std::int64_t max_rows = 0;  ///< of a micro-batch
  bool needs_backward = true;
};

}  // namespace motley::model
