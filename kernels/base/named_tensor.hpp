#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/base/dtype.hpp"
#include "kernels/base/shape.hpp"

namespace motley {

/// A shard of a logical tensor as files see it: one flat, contiguous range of host memory.
///
/// `data` points at (interval.size() · shape.row_count()) elements of `dtype`; the owner of the
/// memory outlives this. What a checkpoint reads and writes is a span of these.
struct NamedTensor {
  std::string name;   ///< global name of the logical tensor, e.g. "layers.3.attention.q.weight"
  Shape shape;        ///< whole tensor, split dim first
  Interval interval;  ///< rows of dim 0 that are here; the whole dim for a tensor that is not split
  DType dtype = DType::fp32;
  void* data = nullptr;

  [[nodiscard]] std::int64_t count() const noexcept { return interval.size() * shape.row_count(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(count()) * size_bytes(dtype);
  }
};

}  // namespace motley
