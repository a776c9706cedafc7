#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/hdf5/handle.hpp"
#include "kernels/base/dtype.hpp"

namespace motley::io::hdf5 {

/// Element types we put into files, all little-endian. bf16 and fp16 are HDF5 floating-point types
/// of 16 bits, which HDF5 tools convert and print.
enum class Element { u8, u16, u32, u64, i32, i64, fp32, fp64, bf16, fp16 };

[[nodiscard]] std::size_t size_bytes(Element element) noexcept;
[[nodiscard]] std::string_view to_string(Element element) noexcept;
[[nodiscard]] Element element_of_dtype(DType dtype) noexcept;

/// The HDF5 type, in files and in memory (we run on little-endian machines).
[[nodiscard]] TypeHandle make_type(Element element, Subject const& subject);

/// Which of our element types an HDF5 type is; empty if none.
[[nodiscard]] std::optional<Element> find_element(hid_t type, Subject const& subject);

/// Element of a C++ type.
template <class T>
inline constexpr Element element_of = T::no_element_for_this_type;
template <>
inline constexpr Element element_of<std::uint8_t> = Element::u8;
template <>
inline constexpr Element element_of<std::uint16_t> = Element::u16;
template <>
inline constexpr Element element_of<std::uint32_t> = Element::u32;
template <>
inline constexpr Element element_of<std::uint64_t> = Element::u64;
template <>
inline constexpr Element element_of<std::int32_t> = Element::i32;
template <>
inline constexpr Element element_of<std::int64_t> = Element::i64;
template <>
inline constexpr Element element_of<float> = Element::fp32;
template <>
inline constexpr Element element_of<double> = Element::fp64;
template <>
inline constexpr Element element_of<BFloat16> = Element::bf16;

}  // namespace motley::io::hdf5
