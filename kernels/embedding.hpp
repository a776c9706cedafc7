#pragma once

#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

/// Shapes: R rows (batch times tokens), D model width, V rows of the table that are here, P
/// positions.
namespace motley::kernels {

/// Which rows of the whole table the views hold, and how rows follow each other in a window.
struct EmbeddingSpec {
  std::int64_t tokens_per_window = 0;  ///< row r is at position r mod tokens_per_window
  std::int64_t first_row = 0;          ///< id of row 0 of the table's shard
};

/// y = table[ids] + positions. A token of another shard of the table contributes 0, so that the sum
/// over the shards is the embedding; then only one rank gives the positions.
///
/// Shapes   ids [R], table [V, D], positions [P, D] or empty  ->  y [R, D]
/// Runs on  `exec`, asynchronous
/// Cost     two reads and one write of [R, D]; no allocation
/// Throws   Error{bug} if extents disagree or P < tokens_per_window
/// Source   Vaswani et al. 2017, section 3.4 (without the scale); positions as in Radford et al.
///          2018, section 3.1
template <class T>
void embedding_forward(Exec const& exec,
                       EmbeddingSpec const& spec,
                       View1<std::int32_t const> ids,
                       View2<T const> table,
                       View2<T const> positions,
                       View2<T> y);

/// Gradients of embedding_forward: d_table[ids] += dy, d_positions += dy of each position.
///
/// Each row of a gradient has one owner, who adds what belongs to it in the order of the rows of
/// dy: no atomics, same bits on any number of threads.
///
/// Shapes   ids [R], dy [R, D]  ->  d_table [V, D], d_positions [P, D] or empty
/// Types    dy of T; gradients and sums in Accumulator<T>
/// Runs on  `exec`, asynchronous
/// Cost     one read of [R, D] (two with positions), one read and write of the rows met; no
///          allocation
/// Throws   Error{bug} if extents disagree or P < tokens_per_window
/// Source   the transpose of embedding_forward
template <class T>
void embedding_backward(Exec const& exec,
                        EmbeddingSpec const& spec,
                        View1<std::int32_t const> ids,
                        View2<T const> dy,
                        View2<Accumulator<T>> d_table,
                        View2<Accumulator<T>> d_positions);

}  // namespace motley::kernels
