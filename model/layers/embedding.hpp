#pragma once

#include <cstdint>

#include "model/layers/parameter.hpp"
#include "model/layers/pass.hpp"

// Shapes: D model width, V rows of the table here, P positions, R rows (batch times tokens).

namespace motley::model {

template <class T>
struct EmbeddingParameters {
  MatrixParameter<T> tokens;     ///< [V, D]
  MatrixParameter<T> positions;  ///< [P, D], gpt2
};

/// Token embedding, cut by vocabulary rows among the ranks of the stage, and learned positions in
/// gpt2, with dropout. Its backward has only the weight part.
template <class T>
class Embedding final {
 public:
  /// `first_row` is the token id of the table's first row.
  Embedding(comm::Group const& group, EmbeddingParameters<T> parameters, std::int64_t first_row);

  /// ids [R] -> y [R, D].
  ///
  /// Comm     collective over the group
  void forward(Pass const& pass, View1<std::int32_t const> ids, View2<T> y) const;

  /// Adds to the gradients; dy [R, D] is overwritten where dropout applies.
  void backward_weight(Pass const& pass, View1<std::int32_t const> ids, View2<T> dy) const;

 private:
  comm::Group group_;
  EmbeddingParameters<T> parameters_;
  std::int64_t first_row_;
};

}  // namespace motley::model
