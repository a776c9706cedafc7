#pragma once

#include <string>

#include "model/train/activations.hpp"
#include "model/train/model_state.hpp"

namespace motley::model {

/// The first output of the network that holds an infinity or NaN, in the order of the forward, and
/// the parameters of that place that do, in words; empty if everything is finite.
///
/// Call it while the activations of the forward are there. Waits for `exec`.
template <class T>
[[nodiscard]] std::string first_non_finite_output(Exec const& exec,
                                                  Activations<T> const& activations,
                                                  ModelState<T> const& state);

/// The first gradient that holds an infinity or NaN, in the order of the backward (the last tensor
/// of the model first), in words; empty if everything is finite.
template <class T>
[[nodiscard]] std::string first_non_finite_gradient(Exec const& exec, ModelState<T> const& state);

}  // namespace motley::model
