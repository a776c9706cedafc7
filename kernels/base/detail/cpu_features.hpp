#pragma once

// Instruction sets that a compiler uses by itself for x86-64 targets. Each source file that
// includes this table sees the features of its own target, so nothing here may have external
// linkage.

#include <cstdint>

namespace motley::detail {
namespace {

enum class CpuRegister : std::uint8_t { eax, ebx, ecx, edx };

/// State that the operating system must save at a context switch before a feature may be used.
enum class CpuState : std::uint8_t { sse, avx, avx512, amx };

/// One feature: where CPUID tells it and whether the target of this source file has it.
/// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID;
/// AMD64 Architecture Programmer's Manual, volume 3, appendix E (leaf 0x80000001).
struct CpuFeature {
  char const* name;
  char const* macro;  ///< expansion of the compiler's macro: a number if the target has it
  std::uint32_t leaf;
  std::uint32_t subleaf;
  CpuRegister where;
  int bit;
  CpuState state;
};

#define MOTLEY_EXPANSION_TEXT(macro) #macro
#define MOTLEY_EXPANSION(macro) MOTLEY_EXPANSION_TEXT(macro)

inline constexpr CpuFeature cpu_features[] = {
    {"sse3", MOTLEY_EXPANSION(__SSE3__), 1, 0, CpuRegister::ecx, 0, CpuState::sse},
    {"pclmul", MOTLEY_EXPANSION(__PCLMUL__), 1, 0, CpuRegister::ecx, 1, CpuState::sse},
    {"ssse3", MOTLEY_EXPANSION(__SSSE3__), 1, 0, CpuRegister::ecx, 9, CpuState::sse},
    {"fma", MOTLEY_EXPANSION(__FMA__), 1, 0, CpuRegister::ecx, 12, CpuState::avx},
    {"sse4.1", MOTLEY_EXPANSION(__SSE4_1__), 1, 0, CpuRegister::ecx, 19, CpuState::sse},
    {"sse4.2", MOTLEY_EXPANSION(__SSE4_2__), 1, 0, CpuRegister::ecx, 20, CpuState::sse},
    {"movbe", MOTLEY_EXPANSION(__MOVBE__), 1, 0, CpuRegister::ecx, 22, CpuState::sse},
    {"popcnt", MOTLEY_EXPANSION(__POPCNT__), 1, 0, CpuRegister::ecx, 23, CpuState::sse},
    {"aes", MOTLEY_EXPANSION(__AES__), 1, 0, CpuRegister::ecx, 25, CpuState::sse},
    {"avx", MOTLEY_EXPANSION(__AVX__), 1, 0, CpuRegister::ecx, 28, CpuState::avx},
    {"f16c", MOTLEY_EXPANSION(__F16C__), 1, 0, CpuRegister::ecx, 29, CpuState::avx},
    {"bmi", MOTLEY_EXPANSION(__BMI__), 7, 0, CpuRegister::ebx, 3, CpuState::sse},
    {"avx2", MOTLEY_EXPANSION(__AVX2__), 7, 0, CpuRegister::ebx, 5, CpuState::avx},
    {"bmi2", MOTLEY_EXPANSION(__BMI2__), 7, 0, CpuRegister::ebx, 8, CpuState::sse},
    {"avx512f", MOTLEY_EXPANSION(__AVX512F__), 7, 0, CpuRegister::ebx, 16, CpuState::avx512},
    {"avx512dq", MOTLEY_EXPANSION(__AVX512DQ__), 7, 0, CpuRegister::ebx, 17, CpuState::avx512},
    {"adx", MOTLEY_EXPANSION(__ADX__), 7, 0, CpuRegister::ebx, 19, CpuState::sse},
    {"avx512ifma", MOTLEY_EXPANSION(__AVX512IFMA__), 7, 0, CpuRegister::ebx, 21, CpuState::avx512},
    {"avx512cd", MOTLEY_EXPANSION(__AVX512CD__), 7, 0, CpuRegister::ebx, 28, CpuState::avx512},
    {"sha", MOTLEY_EXPANSION(__SHA__), 7, 0, CpuRegister::ebx, 29, CpuState::sse},
    {"avx512bw", MOTLEY_EXPANSION(__AVX512BW__), 7, 0, CpuRegister::ebx, 30, CpuState::avx512},
    {"avx512vl", MOTLEY_EXPANSION(__AVX512VL__), 7, 0, CpuRegister::ebx, 31, CpuState::avx512},
    {"avx512vbmi", MOTLEY_EXPANSION(__AVX512VBMI__), 7, 0, CpuRegister::ecx, 1, CpuState::avx512},
    {"avx512vbmi2", MOTLEY_EXPANSION(__AVX512VBMI2__), 7, 0, CpuRegister::ecx, 6, CpuState::avx512},
    {"gfni", MOTLEY_EXPANSION(__GFNI__), 7, 0, CpuRegister::ecx, 8, CpuState::sse},
    {"vaes", MOTLEY_EXPANSION(__VAES__), 7, 0, CpuRegister::ecx, 9, CpuState::avx},
    {"vpclmulqdq", MOTLEY_EXPANSION(__VPCLMULQDQ__), 7, 0, CpuRegister::ecx, 10, CpuState::avx},
    {"avx512vnni", MOTLEY_EXPANSION(__AVX512VNNI__), 7, 0, CpuRegister::ecx, 11, CpuState::avx512},
    {"avx512bitalg",
     MOTLEY_EXPANSION(__AVX512BITALG__),
     7,
     0,
     CpuRegister::ecx,
     12,
     CpuState::avx512},
    {"avx512vpopcntdq",
     MOTLEY_EXPANSION(__AVX512VPOPCNTDQ__),
     7,
     0,
     CpuRegister::ecx,
     14,
     CpuState::avx512},
    {"avx512vp2intersect",
     MOTLEY_EXPANSION(__AVX512VP2INTERSECT__),
     7,
     0,
     CpuRegister::edx,
     8,
     CpuState::avx512},
    {"amx-bf16", MOTLEY_EXPANSION(__AMX_BF16__), 7, 0, CpuRegister::edx, 22, CpuState::amx},
    {"avx512fp16", MOTLEY_EXPANSION(__AVX512FP16__), 7, 0, CpuRegister::edx, 23, CpuState::avx512},
    {"amx-tile", MOTLEY_EXPANSION(__AMX_TILE__), 7, 0, CpuRegister::edx, 24, CpuState::amx},
    {"amx-int8", MOTLEY_EXPANSION(__AMX_INT8__), 7, 0, CpuRegister::edx, 25, CpuState::amx},
    {"avxvnni", MOTLEY_EXPANSION(__AVXVNNI__), 7, 1, CpuRegister::eax, 4, CpuState::avx},
    {"avx512bf16", MOTLEY_EXPANSION(__AVX512BF16__), 7, 1, CpuRegister::eax, 5, CpuState::avx512},
    {"lzcnt", MOTLEY_EXPANSION(__LZCNT__), 0x80000001, 0, CpuRegister::ecx, 5, CpuState::sse},
    {"sse4a", MOTLEY_EXPANSION(__SSE4A__), 0x80000001, 0, CpuRegister::ecx, 6, CpuState::sse},
    {"xop", MOTLEY_EXPANSION(__XOP__), 0x80000001, 0, CpuRegister::ecx, 11, CpuState::avx},
    {"fma4", MOTLEY_EXPANSION(__FMA4__), 0x80000001, 0, CpuRegister::ecx, 16, CpuState::avx},
    {"tbm", MOTLEY_EXPANSION(__TBM__), 0x80000001, 0, CpuRegister::ecx, 21, CpuState::sse},
};
static_assert(sizeof(cpu_features) / sizeof(cpu_features[0]) <= 64);

/// The rows whose macro the compiler defines for the source file that includes this table.
consteval std::uint64_t features_of_target() {
  std::uint64_t features = 0;
  int row = 0;
  for (CpuFeature const& feature : cpu_features) {
    if (feature.macro[0] == '1') features |= std::uint64_t{1} << row;
    ++row;
  }
  return features;
}

}  // namespace
}  // namespace motley::detail
