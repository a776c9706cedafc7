#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/shape.hpp"
#include "model/spec/model_spec.hpp"

// Shapes: D model width, H head width, N heads, F feed-forward width, V vocabulary, L layers.

namespace motley::model {

/// How the elements of a tensor start.
enum class InitKind { normal, zeros, ones };

/// What each rank of a stage computes of the gradient of a tensor that is not split.
enum class GradientShare {
  partial,  ///< a summand: all ranks contribute
  equal,    ///< the whole: the first rank contributes
};

/// What the first dim of a tensor counts, that is: which shares of a stage cut it.
enum class Split {
  none,         ///< whole on every rank of the stage
  query_heads,  ///< N·H rows, cut between groups of query heads
  kv_heads,     ///< rows of key/value heads
  mlp_columns,  ///< F rows
  vocab_rows,   ///< V rows
};

/// Where a tensor is used.
enum class Place { embedding, layer, head };

/// One named parameter with its global shape, independent of any rank.
///
/// The split dim comes first: column-parallel weights are [out, in], row-parallel ones [in, out],
/// so that a shard is one flat range.
struct LogicalTensor {
  std::string name;  ///< e.g. "layers.3.attention.q.weight"
  Shape shape;       ///< order 1 or 2
  Place place = Place::layer;
  std::int64_t layer = -1;  ///< of Place::layer
  Split split = Split::none;
  /// One operator reads it together with the tensor before it (k and v behind q, up behind gate),
  /// so it follows that one in memory without a gap.
  bool joins_previous = false;
  InitKind init = InitKind::zeros;
  double init_std = 0.0;  ///< of InitKind::normal
  GradientShare gradient = GradientShare::equal;

  [[nodiscard]] bool is_split() const noexcept { return split != Split::none; }
  [[nodiscard]] bool is_matrix() const noexcept { return shape.order() == 2; }
  /// Weight decay is for matrices only.
  [[nodiscard]] bool decays() const noexcept { return is_matrix(); }
};

/// All parameters of a model in model order: embedding, layers, final norm, head.
///
/// A tied head has no tensor of its own.
[[nodiscard]] std::vector<LogicalTensor> logical_tensors(ModelSpec const& spec);

/// "layers.<layer>.<rest>"
[[nodiscard]] std::string layer_tensor_name(std::int64_t layer, std::string_view rest);

/// Number of parameters, a tied head counted once.
[[nodiscard]] std::int64_t parameter_count(ModelSpec const& spec);

}  // namespace motley::model
