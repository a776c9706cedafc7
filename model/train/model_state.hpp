#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/arena.hpp"
#include "kernels/base/named_tensor.hpp"
#include "kernels/base/view.hpp"
#include "model/layers/parameter.hpp"
#include "model/plan/memory_meter.hpp"
#include "model/train/state_layout.hpp"
#include "model/train/train_config.hpp"
#include "model/train/trainer.hpp"

// Shapes: P elements of a StateLayout.

namespace motley::model {

/// Parameters of a rank with their gradients and optimizer state, each one flat buffer in the order
/// of the layout.
template <class T>
class ModelState final {
 public:
  using A = Accumulator<T>;

  /// Takes the buffers from the arena: parameters alone for Purpose::evaluate.
  ModelState(StateLayout layout, Purpose purpose, Arena& arena, MemoryMeter& meter);

  [[nodiscard]] StateLayout const& layout() const noexcept { return layout_; }
  [[nodiscard]] View1<T> const& parameters() const noexcept { return parameters_; }
  [[nodiscard]] View1<A> const& gradients() const noexcept { return gradients_; }
  /// Parameters in A: the parameters themselves where T is A.
  [[nodiscard]] View1<A> const& masters() const noexcept { return masters_; }
  [[nodiscard]] View1<A> const& adam_m() const noexcept { return adam_m_; }
  [[nodiscard]] View1<A> const& adam_v() const noexcept { return adam_v_; }

  /// The tensors from `first` to `last`, adjacent, as one matrix with all their rows.
  [[nodiscard]] MatrixParameter<T> matrix(std::string_view first, std::string_view last) const;
  [[nodiscard]] MatrixParameter<T> matrix(std::string_view name) const {
    return matrix(name, name);
  }
  /// The same of vectors; empty if the model has no tensor of these names.
  [[nodiscard]] VectorParameter<T> vector(std::string_view first, std::string_view last) const;
  [[nodiscard]] VectorParameter<T> vector(std::string_view name) const {
    return vector(name, name);
  }

  /// Sets parameters and masters to their initial values and moments to zero.
  void initialize(Exec const& exec, std::uint64_t seed);
  /// Masters follow the parameters, moments become zero.
  void restart_from_parameters(Exec const& exec);

  /// The local rows of every tensor, in model order; empty for a kind that is not kept.
  [[nodiscard]] std::vector<NamedTensor> tensors(StateKind kind) const;

 private:
  [[nodiscard]] bool has_own_masters() const noexcept;

  StateLayout layout_;
  Purpose purpose_;
  View1<T> parameters_;
  View1<A> gradients_;
  View1<A> masters_;
  View1<A> adam_m_;
  View1<A> adam_v_;
};

}  // namespace motley::model
