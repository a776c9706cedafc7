#pragma once

#include "kernels/base/view.hpp"

/// Shapes: R rows (batch times tokens), F feed-forward width.
namespace motley::kernels {

/// y = gelu(x) in the tanh form of GPT-2 ("gelu_new").
///
/// Shapes   x [R, F]  ->  y [R, F]
/// Layout   y may be x
/// Runs on  `exec`, asynchronous
/// Cost     one read and one write of [R, F]; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   Hendrycks, Gimpel: "Gaussian error linear units", 2016, section 2
template <class T>
void gelu_forward(Exec const& exec, View2<T const> x, View2<T> y);

/// dx = gelu'(x) dy.
///
/// Shapes   x, dy [R, F]  ->  dx [R, F]
/// Layout   dx may be dy or x
/// Runs on  `exec`, asynchronous
/// Cost     two reads and one write of [R, F]; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   the derivative of Hendrycks, Gimpel 2016, section 2
template <class T>
void gelu_backward(Exec const& exec, View2<T const> x, View2<T const> dy, View2<T> dx);

/// y = silu(gate) up, where a row of gate_up is (gate | up) and silu(g) = g / (1 + e⁻ᵍ).
///
/// Shapes   gate_up [R, 2 F]  ->  y [R, F]
/// Runs on  `exec`, asynchronous
/// Cost     one read of [R, 2 F] and one write of [R, F]; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   Shazeer: "GLU variants improve transformer", 2020, eq. 5
template <class T>
void swiglu_forward(Exec const& exec, View2<T const> gate_up, View2<T> y);

/// Gradient of swiglu_forward.
///
/// Shapes   gate_up [R, 2 F], dy [R, F]  ->  d_gate_up [R, 2 F]
/// Layout   d_gate_up may be gate_up
/// Runs on  `exec`, asynchronous
/// Cost     one read of [R, 3 F] and one write of [R, 2 F]; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   the derivative of Shazeer 2020, eq. 5
template <class T>
void swiglu_backward(Exec const& exec,
                     View2<T const> gate_up,
                     View2<T const> dy,
                     View2<T> d_gate_up);

}  // namespace motley::kernels
