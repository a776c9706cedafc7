#pragma once

#include <type_traits>

#include "kernels/base/view.hpp"

namespace motley::test {

/// An execution instance of so many threads, for tests that compare bits. Where the backend has no
/// threads to choose, the default instance.
template <class Space = Exec>
[[nodiscard]] Space exec_with_threads(int threads) {
  if constexpr (std::is_constructible_v<Space, int>) {
    return Space{threads};
  } else {
    return Space{};
  }
}

}  // namespace motley::test
