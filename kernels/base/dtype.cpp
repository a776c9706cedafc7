#include "kernels/base/dtype.hpp"

#include <array>

namespace motley {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
  double epsilon;
};

// Indexed by the enumerator's value.
constexpr std::array<DTypeRow, 4> dtype_table{{
    {DType::fp32, "fp32", 4, 0x1p-23},
    {DType::bf16, "bf16", 2, 0x1p-7},
    {DType::fp16, "fp16", 2, 0x1p-10},
    {DType::fp64, "fp64", 8, 0x1p-52},
}};

DTypeRow const& row_of(DType dtype) noexcept {
  return dtype_table[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::size_t size_bytes(DType dtype) noexcept { return row_of(dtype).bytes; }

std::string_view to_string(DType dtype) noexcept { return row_of(dtype).name; }

double epsilon(DType dtype) noexcept { return row_of(dtype).epsilon; }

std::optional<DType> parse_dtype(std::string_view name) noexcept {
  for (DTypeRow const& row : dtype_table) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace motley
