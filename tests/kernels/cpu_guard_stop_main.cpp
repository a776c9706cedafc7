// A program built for every CPU feature there is, which no CPU offers: the guard must stop it
// before anything of its own runs. Used by cpu_guard_stop_test.sh.

#include <cstdio>

#include "kernels/base/cpu_guard.hpp"

namespace motley {

extern "C" constinit CpuFeatures const motley_cpu_required = ~CpuFeatures{0};

}  // namespace motley

namespace {

// Stands for a constructor that uses a missing instruction.
[[gnu::constructor]] void stop_at_illegal_instruction() { __builtin_trap(); }

}  // namespace

int main() {
  std::puts("started");
  return 0;
}
