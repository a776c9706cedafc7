#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

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
    is_allocated_ = true;
  }

  /// The memory, of which the first `bytes` are the caller's until its product is done.
  [[nodiscard]] std::byte* take(std::size_t bytes) const {
    MOTLEY_VALIDATE(bug,
                    is_allocated_ && bytes <= bytes_,
                    "a matrix product needs " << bytes << " bytes of workspace and has " << bytes_
                                              << " (allocate_workspace comes after the last "
                                              << "operator); this is a bug of motley, please "
                                              << "report it");
    return data_;
  }

  /// The same for a product whose need was not known before; allocates at most once for each.
  [[nodiscard]] std::byte* take_or_grow(std::size_t bytes) {
    if (!is_allocated_ || bytes <= bytes_) return take(bytes);
    late_.resize(std::max(late_.size(), bytes + Arena::alignment_bytes));
    std::size_t const misalignment =
        reinterpret_cast<std::uintptr_t>(late_.data()) % Arena::alignment_bytes;
    return late_.data() + (Arena::alignment_bytes - misalignment);
  }

 private:
  std::size_t reserved_ = 0;
  std::size_t bytes_ = 0;
  bool is_allocated_ = false;
  std::byte* data_ = nullptr;
  std::vector<std::byte> late_;
};

/// What the operators of one engine share.
struct Shared {
  Workspace workspace;
  std::function<void()> between_tiles;  ///< see MatmulConfig
};

}  // namespace motley::kernels::cpu
