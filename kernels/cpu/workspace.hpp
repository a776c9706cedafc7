#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/base/arena.hpp"
#include "kernels/base/error.hpp"

namespace motley::kernels::cpu {

/// Scratch memory that all products of an engine share, one after the other.
class Workspace {
 public:
  void reserve(std::size_t bytes) { reserved_ = std::max(reserved_, bytes); }

  void allocate(Arena& arena) {
    data_ = static_cast<std::byte*>(arena.take("products.workspace", reserved_));
    bytes_ = reserved_;
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  /// The memory, of which the first `bytes` are the caller's until its product is done.
  [[nodiscard]] std::byte* take(std::size_t bytes) const {
    MOTLEY_VALIDATE(bug,
                    bytes <= bytes_,
                    "a matrix product needs " << bytes << " bytes of workspace and has " << bytes_
                                              << " (allocate_workspace comes after the last "
                                              << "operator); this is a bug of motley, please "
                                              << "report it");
    return data_;
  }

 private:
  std::size_t reserved_ = 0;
  std::size_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace motley::kernels::cpu
