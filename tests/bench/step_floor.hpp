#pragma once

#include <cstdint>
#include <memory>

#include "model/spec/model_spec.hpp"

namespace motley::bench {

/// What a training step cannot do without, at the rate of this machine.
struct Floor {
  double products_s = 0.0;   ///< matrix products of forward and backward: oneDNN, weights packed
  double attention_s = 0.0;  ///< products of attention, causal half, at the rate of the others
  double update_s = 0.0;     ///< 28 bytes per parameter at the rate of a triad
  double flop_per_s = 0.0;   ///< of the products
  double triad_gb_per_s = 0.0;

  [[nodiscard]] double total_s() const noexcept { return products_s + attention_s + update_s; }
};

/// Measures the floor of a step of `rows` tokens in windows of `tokens`.
///
/// The products are those of all layers and of the head in turn, each with weights of its own, as
/// one after the other in a step; the head is done in chunks of 1024 rows. Not counted: packing,
/// norms, activations, softmax, embedding, biases.
class FloorMeter final {
 public:
  FloorMeter(model::ModelSpec const& spec, std::int64_t rows, std::int64_t tokens);
  FloorMeter(FloorMeter const&) = delete;
  FloorMeter& operator=(FloorMeter const&) = delete;
  FloorMeter(FloorMeter&&) = delete;
  FloorMeter& operator=(FloorMeter&&) = delete;
  ~FloorMeter();

  /// One measurement: all products of a step once, and a triad.
  [[nodiscard]] Floor measure();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::bench
