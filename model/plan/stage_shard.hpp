#pragma once

#include <cstdint>

#include "kernels/base/shape.hpp"
#include "model/spec/logical_tensors.hpp"
#include "model/spec/model_spec.hpp"

namespace motley::model {

/// What one rank holds of the model: layers of its stage, and its shares of heads, MLP columns and
/// vocabulary inside the stage.
struct StageShard {
  Interval layers;
  bool has_embedding = true;
  bool has_head = true;
  Interval kv_heads;     ///< with the query heads that use them
  Interval mlp_columns;  ///< of F
  Interval vocab_rows;   ///< of V

  /// The shard of the only rank of a plan.
  [[nodiscard]] static StageShard whole(ModelSpec const& spec) noexcept;
  bool operator==(StageShard const&) const = default;
};

/// Whether the rank has any of the tensor (a tied embedding is also with the head).
[[nodiscard]] bool holds(ModelSpec const& spec,
                         StageShard const& shard,
                         LogicalTensor const& tensor);

/// Rows of dim 0 that the rank has of a tensor it holds.
[[nodiscard]] Interval local_rows(ModelSpec const& spec,
                                  StageShard const& shard,
                                  LogicalTensor const& tensor);

}  // namespace motley::model
