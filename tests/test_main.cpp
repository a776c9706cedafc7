#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include "tests/verdict.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  Kokkos::ScopeGuard const kokkos{argc, argv};
  return motley::test::verdict(RUN_ALL_TESTS());
}
