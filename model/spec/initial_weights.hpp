#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/shape.hpp"
#include "model/spec/logical_tensors.hpp"

namespace motley::model {

/// Initial value of one element: a function of (seed, name of the tensor, element) alone, so that
/// every plan starts from the same weights.
///
/// Normal values come in fours from one Philox call: two Box–Muller pairs in double.
///
/// Source   Box, Muller: "A note on the generation of random normal deviates", 1958
[[nodiscard]] double initial_value(LogicalTensor const& tensor,
                                   std::uint64_t seed,
                                   std::int64_t element);

/// Initial values of some rows of a tensor, by all threads of the host.
///
/// Shapes   out [rows.size() · tensor.shape.row_count()]
/// Types    double rounded to T (float, double, BFloat16 by way of float)
/// Throws   Error{bug} if the size disagrees
template <class T>
void fill_initial(LogicalTensor const& tensor, std::uint64_t seed, Interval rows, std::span<T> out);

}  // namespace motley::model
