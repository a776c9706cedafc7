#pragma once

#include <string>

#include <gtest/gtest.h>

#include "kernels/base/dtype.hpp"

namespace motley::test {

/// The element types every kernel is built for, and their names for typed tests:
/// TYPED_TEST_SUITE(NormTest, ElementTypes, ElementTypeNames).
using ElementTypes = testing::Types<float, BFloat16, double>;

struct ElementTypeNames {
  template <class T>
  static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming): GoogleTest
    return std::string{to_string(dtype_of<T>)};
  }
};

}  // namespace motley::test
