#include "io/hdf5/element.hpp"

#include <array>
#include <bit>

namespace motley::io::hdf5 {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and are read without conversion");

struct ElementRow {
  Element element;
  std::size_t bytes;
  std::string_view name;
};

constexpr std::array<ElementRow, 10> element_table{{
    {Element::u8, 1, "u8"},
    {Element::u16, 2, "u16"},
    {Element::u32, 4, "u32"},
    {Element::u64, 8, "u64"},
    {Element::i32, 4, "i32"},
    {Element::i64, 8, "i64"},
    {Element::fp32, 4, "fp32"},
    {Element::fp64, 8, "fp64"},
    {Element::bf16, 2, "bf16"},
    {Element::fp16, 2, "fp16"},
}};

ElementRow const& row_of(Element element) noexcept {
  for (ElementRow const& row : element_table) {
    if (row.element == element) return row;
  }
  return element_table.front();
}

hid_t predefined_type(Element element) {
  switch (element) {
    case Element::u8:
      return H5T_STD_U8LE;
    case Element::u16:
      return H5T_STD_U16LE;
    case Element::u32:
      return H5T_STD_U32LE;
    case Element::u64:
      return H5T_STD_U64LE;
    case Element::i32:
      return H5T_STD_I32LE;
    case Element::i64:
      return H5T_STD_I64LE;
    case Element::fp64:
      return H5T_IEEE_F64LE;
    default:
      return H5T_IEEE_F32LE;
  }
}

/// Cuts a copy of binary32 down to sign, `exponent_bits` and a mantissa, 16 bits in all.
void shrink_to_16_bits(hid_t type, std::size_t exponent_bits, Subject const& subject) {
  std::size_t const mantissa_bits = 15 - exponent_bits;
  std::size_t const bias = (std::size_t{1} << (exponent_bits - 1)) - 1;
  MOTLEY_HDF5_CHECK(subject,
                    H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits));
  MOTLEY_HDF5_CHECK(subject, H5Tset_size(type, 2));
  MOTLEY_HDF5_CHECK(subject, H5Tset_ebias(type, bias));
}

}  // namespace

std::size_t size_bytes(Element element) noexcept { return row_of(element).bytes; }

std::string_view to_string(Element element) noexcept { return row_of(element).name; }

Element element_of_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::bf16:
      return Element::bf16;
    case DType::fp16:
      return Element::fp16;
    case DType::fp64:
      return Element::fp64;
    default:
      return Element::fp32;
  }
}

TypeHandle make_type(Element element, Subject const& subject) {
  TypeHandle type{MOTLEY_HDF5_CHECK(subject, H5Tcopy(predefined_type(element)))};
  if (element == Element::bf16) shrink_to_16_bits(type.get(), 8, subject);
  if (element == Element::fp16) shrink_to_16_bits(type.get(), 5, subject);
  return type;
}

std::optional<Element> find_element(hid_t type, Subject const& subject) {
  for (ElementRow const& row : element_table) {
    TypeHandle const candidate = make_type(row.element, subject);
    if (MOTLEY_HDF5_CHECK(subject, H5Tequal(type, candidate.get())) > 0) return row.element;
  }
  return std::nullopt;
}

}  // namespace motley::io::hdf5
