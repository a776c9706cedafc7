#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#if defined(__CUDACC__)
#define MOTLEY_FUNCTION __host__ __device__ inline
#else
/// Marks inline functions that kernels call: host code here, host and device code under a CUDA
/// compiler.
#define MOTLEY_FUNCTION inline
#endif

namespace motley {

/// Element types of parameters, activations and files.
enum class DType { fp32, bf16, fp16, fp64 };

[[nodiscard]] std::size_t size_bytes(DType dtype) noexcept;
[[nodiscard]] std::string_view to_string(DType dtype) noexcept;
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view name) noexcept;

/// Machine epsilon: the distance from 1 to the next larger number (2⁻²³, 2⁻⁷, 2⁻¹⁰, 2⁻⁵²).
[[nodiscard]] double epsilon(DType dtype) noexcept;

/// bfloat16: the upper half of an IEEE binary32. Storage only; arithmetic is done in float.
///
/// Source   Intel, "BFLOAT16 – Hardware Numerics Definition", 338302-001, 2018 (denormals are kept
/// here)
class BFloat16 {
 public:
  BFloat16() = default;
  MOTLEY_FUNCTION explicit BFloat16(float value) : bits_{round(value)} {}
  MOTLEY_FUNCTION explicit BFloat16(double value) : BFloat16(static_cast<float>(value)) {}

  MOTLEY_FUNCTION static BFloat16 from_bits(std::uint16_t bits) {
    BFloat16 result;
    result.bits_ = bits;
    return result;
  }
  [[nodiscard]] MOTLEY_FUNCTION std::uint16_t bits() const { return bits_; }

  // Widening loses nothing, so it may be implicit.
  MOTLEY_FUNCTION operator float() const {  // NOLINT(google-explicit-constructor)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16U);
  }

 private:
  /// Round to nearest, ties to even; NaN stays NaN (quiet). Branch-free, so that loops vectorize.
  MOTLEY_FUNCTION static std::uint16_t round(float value) {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    std::uint32_t const rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
    std::uint32_t const quiet = bits | 0x00400000U;
    bool const is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    return static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16U);
  }

  std::uint16_t bits_;
};

static_assert(sizeof(BFloat16) == 2);

/// DType of an element type.
template <class T>
inline constexpr DType dtype_of = T::no_dtype_for_this_type;
template <>
inline constexpr DType dtype_of<float> = DType::fp32;
template <>
inline constexpr DType dtype_of<double> = DType::fp64;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;

/// Type in which sums over elements of T are kept: float, but double for double.
template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

}  // namespace motley
