#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/plan/stage_shard.hpp"
#include "model/spec/logical_tensors.hpp"

namespace motley::model {

/// Where a rank keeps its rows of a logical tensor, in elements of each flat buffer.
struct LocalTensor {
  LogicalTensor tensor;
  Interval rows;                 ///< of dim 0
  std::int64_t padded_rows = 0;  ///< rows kept; those beyond rows.size() are zero
  std::int64_t offset = 0;       ///< first element

  [[nodiscard]] std::int64_t row_count() const noexcept { return tensor.shape.row_count(); }
  [[nodiscard]] std::int64_t count() const noexcept { return rows.size() * row_count(); }
  [[nodiscard]] std::int64_t padded_count() const noexcept { return padded_rows * row_count(); }
};

/// Order of all local tensors in one flat buffer, the same for parameters, gradients, masters and
/// moments.
///
/// Matrices come first, then vectors, each in model order: AdamW is one call for what decays and
/// one for what does not, the norm one for both. Tensors that one operator reads together are
/// adjacent; every other tensor starts at a multiple of `alignment` elements. Rows of vocabulary
/// are padded to a multiple of `vocab_unit`. Gaps and padding are zero and stay zero.
class StateLayout {
 public:
  static constexpr std::int64_t alignment = 64;   // elements: at least a cache line of any type
  static constexpr std::int64_t vocab_unit = 64;  // rows: full vectors in the head's products

  StateLayout(ModelSpec const& spec, StageShard const& shard);

  [[nodiscard]] std::vector<LocalTensor> const& tensors() const noexcept { return tensors_; }
  /// Throws Error{bug} if there is none of that name.
  [[nodiscard]] LocalTensor const& find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const noexcept;
  /// Elements of a buffer, and of the part that holds matrices.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t matrix_count() const noexcept { return matrix_count_; }

 private:
  void place(bool matrices);

  std::vector<LocalTensor> tensors_;  // in model order
  std::int64_t matrix_count_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace motley::model
