#pragma once

#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

/// Elementwise operations on flat arrays.
namespace motley::kernels {

/// y = x in another type, rounded to nearest where it is narrower.
///
/// Shapes   x [n]  ->  y [n]
/// Types    any pair of float, BFloat16 and double
/// Layout   y may be x where the types are the same size
/// Runs on  `exec`, asynchronous
/// Throws   Error{bug} if extents disagree
/// Source   IEEE 754-2019, section 4.3.1; bfloat16 as in kernels/base/dtype.hpp
template <class To, class From>
void cast(Exec const& exec, View1<From const> x, View1<To> y);

/// x = value.
///
/// Shapes   x [n]
/// Runs on  `exec`, asynchronous
/// Source   definition
template <class T>
void fill(Exec const& exec, T value, View1<T> x);

/// x = factor x.
///
/// Shapes   x [n]
/// Runs on  `exec`, asynchronous
/// Source   definition
template <class T>
void scale(Exec const& exec, Accumulator<T> factor, View1<T> x);

/// y = factor x + y.
///
/// Shapes   x [n]  ->  y [n]
/// Runs on  `exec`, asynchronous
/// Throws   Error{bug} if extents disagree
/// Source   definition
template <class T>
void axpy(Exec const& exec, Accumulator<T> factor, View1<T const> x, View1<T> y);

}  // namespace motley::kernels
