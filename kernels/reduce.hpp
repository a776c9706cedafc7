#pragma once

#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

namespace motley::kernels {

/// Doubles of workspace that sum and square_sum of `count` elements need.
[[nodiscard]] std::int64_t reduce_workspace_size(std::int64_t count);

/// out[0] = Σ x in double: partial sums of fixed tiles, added in order.
///
/// Shapes   x [n]  ->  out [1], overwritten; workspace at least [reduce_workspace_size(n)]
/// Runs on  `exec`, asynchronous; same bits on any number of threads
/// Cost     one read of x; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   definition
template <class A>
void sum(Exec const& exec, View1<A const> x, View1<double> out, View1<double> workspace);

/// out[0] = Σ x² in double, as `sum`.
///
/// Shapes   x [n]  ->  out [1], overwritten; workspace at least [reduce_workspace_size(n)]
/// Runs on  `exec`, asynchronous; same bits on any number of threads
/// Cost     one read of x; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   definition
template <class A>
void square_sum(Exec const& exec, View1<A const> x, View1<double> out, View1<double> workspace);

/// Index of the first infinity or NaN of x, or -1.
///
/// Shapes   x [n]
/// Runs on  `exec`, and waits for it
/// Cost     one read of x
/// Source   definition
template <class T>
[[nodiscard]] std::int64_t first_non_finite(Exec const& exec, View1<T const> x);

/// Adds the column sums of dy: dbias[c] += Σᵣ dy[r, c].
///
/// Shapes   dy [R, C]  ->  dbias [C]
/// Types    dy of T; dbias and sums in Accumulator<T>
/// Runs on  `exec`, asynchronous; same bits on any number of threads
/// Cost     one read of dy; no allocation
/// Throws   Error{bug} if extents disagree
/// Source   definition
template <class T>
void column_sum(Exec const& exec, View2<T const> dy, View1<Accumulator<T>> dbias);

}  // namespace motley::kernels
