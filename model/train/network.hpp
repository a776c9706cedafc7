#pragma once

#include <cstdint>
#include <vector>

#include "model/layers/embedding.hpp"
#include "model/layers/head.hpp"
#include "model/layers/transformer_layer.hpp"
#include "model/plan/stage_shard.hpp"
#include "model/train/model_state.hpp"

namespace motley::model {

/// The layers of a rank over the parameters of its state.
template <class T>
struct Network final {
  using A = Accumulator<T>;

  /// Takes packed weights and tables from the arena of the context.
  Network(LayerContext const& context,
          ModelSpec const& spec,
          StageShard const& shard,
          ModelState<T> const& state);

  /// Call after each change of the parameters.
  void pack(Exec const& exec);

  Family family;
  LayerShape shape;
  Embedding<T> embedding;
  std::vector<TransformerLayer<T>> layers;
  Head<T> head;
};

}  // namespace motley::model
