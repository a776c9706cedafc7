#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/plan/memory_meter.hpp"
#include "model/train/network.hpp"

// Shapes: B windows, T tokens, R = B T rows, D model width, L layers.

namespace motley::model {

/// What a run through the network keeps.
enum class Keep {
  everything,  ///< each layer all that its backward reads
  inputs,      ///< each layer its input; the rest is recomputed in memory that layers share
  nothing,     ///< no backward
};

/// The memory of one micro-batch: every tensor between its input and its gradients.
///
/// Made anew for each micro-batch, in the same place of the arena under an ArenaScope: that costs
/// pointer arithmetic only, and lets shapes change between calls.
template <class T>
struct Activations {
  using A = Accumulator<T>;
  using Layer = TransformerLayer<T>;

  Keep keep = Keep::everything;
  View1<std::int32_t> ids;       ///< [R]
  View1<std::int32_t> targets;   ///< [R]
  View1<std::uint64_t> samples;  ///< [B]
  View1<double> loss;            ///< [1], sum over the rows
  View1<double> reduce_workspace;
  std::vector<View2<T>>
      boundaries;  ///< L + 1 of [R, D]: the input of each layer, and the last output
  std::vector<typename Layer::Saved> saved;  ///< of each layer; the same memory unless everything
  typename Layer::Pending pending;           ///< of the layer in its backward
  std::array<View2<T>, 2> d_stream;  ///< [R, D], gradients at the ends of the layer in its backward
  LayerScratch<T> scratch;
  typename Head<T>::Buffers head;

  /// Takes all of it from the arena; keeps the capacity of the vectors. `meter` may be null.
  void make(Arena& arena,
            Network<T> const& network,
            std::int64_t batch,
            std::int64_t tokens,
            Keep what,
            MemoryMeter* meter = nullptr);

 private:
  void make_stream(Arena& arena,
                   Network<T> const& network,
                   std::int64_t batch,
                   std::int64_t tokens);
};

}  // namespace motley::model
