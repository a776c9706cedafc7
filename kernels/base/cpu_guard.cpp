#include "kernels/base/cpu_guard.hpp"

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "kernels/base/detail/cpu_features.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace motley {
namespace {

constexpr int exit_code_device = 69;  // of error.hpp, whose code may not run yet

#ifdef __x86_64__

struct Registers {
  unsigned int value[4];  // eax, ebx, ecx, edx
};

Registers cpuid(unsigned int leaf, unsigned int subleaf) noexcept {
  Registers r{};
  // __get_cpuid_count checks the highest leaf and leaves zeros beyond it.
  __get_cpuid_count(leaf, subleaf, &r.value[0], &r.value[1], &r.value[2], &r.value[3]);
  return r;
}

/// State components the operating system saves (XCR0); 0 where it does not use XSAVE.
std::uint64_t saved_state() noexcept {
  constexpr unsigned int osxsave = 1U << 27U;
  if ((cpuid(1, 0).value[2] & osxsave) == 0) return 0;
  unsigned int low = 0;
  unsigned int high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32U) | low;
}

/// Bits of XCR0 behind each kind of state: XMM and YMM; opmask and ZMM; tile configuration and
/// data.
std::uint64_t state_mask(detail::CpuState state) noexcept {
  switch (state) {
    case detail::CpuState::sse:
      return 0;
    case detail::CpuState::avx:
      return 0x6;
    case detail::CpuState::avx512:
      return 0xe6;
    case detail::CpuState::amx:
      return 0x60000;
  }
  return 0;
}

#endif

/// Runs before every constructor of the program's own: those may already use a missing feature.
[[gnu::constructor(101)]] void check_cpu() noexcept {
  CpuFeatures const missing = missing_features(motley_cpu_required, find_cpu_features());
  if (missing == 0) return;
  char names[512];
  write_feature_names(missing, names, sizeof names);
  std::fprintf(stderr,
               "motley: this program may use %s, which this CPU does not offer (it was built for "
               "another kind of CPU and would stop at an illegal instruction); build it on this "
               "kind of machine, or for all of them with -DMOTLEY_ARCH=x86-64-v3 or x86-64\n",
               names);
  _exit(exit_code_device);
}

}  // namespace

CpuFeatures find_cpu_features() noexcept {
#ifdef __x86_64__
  std::uint64_t const saved = saved_state();
  CpuFeatures found = 0;
  int row = 0;
  for (detail::CpuFeature const& feature : detail::cpu_features) {
    Registers const r = cpuid(feature.leaf, feature.subleaf);
    bool const is_offered = ((r.value[static_cast<int>(feature.where)] >> feature.bit) & 1U) != 0;
    std::uint64_t const state = state_mask(feature.state);
    if (is_offered && (saved & state) == state) found |= CpuFeatures{1} << row;
    ++row;
  }
  return found;
#else
  return ~CpuFeatures{0};
#endif
}

void write_feature_names(CpuFeatures features, char* text, int capacity) noexcept {
  int used = 0;
  int row = 0;
  text[0] = '\0';
  for (detail::CpuFeature const& feature : detail::cpu_features) {
    if (((features >> row) & 1U) != 0 && used < capacity) {
      used += std::snprintf(text + used,
                            static_cast<std::size_t>(capacity - used),
                            used == 0 ? "%s" : ", %s",
                            feature.name);
    }
    ++row;
  }
}

}  // namespace motley
