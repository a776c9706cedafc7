#pragma once

#include <utility>

namespace motley {

/// Sole owner of a C library handle. `Traits` supplies `Raw`, `null()` and a
/// `noexcept` `release(Raw)` that reports failures instead of throwing.
template <class Traits>
class UniqueHandle {
 public:
  using Raw = typename Traits::Raw;

  UniqueHandle() noexcept = default;
  explicit UniqueHandle(Raw raw) noexcept : raw_{raw} {}
  UniqueHandle(UniqueHandle&& other) noexcept : raw_{other.release()} {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset();
      raw_ = other.release();
    }
    return *this;
  }
  UniqueHandle(UniqueHandle const&) = delete;
  UniqueHandle& operator=(UniqueHandle const&) = delete;
  ~UniqueHandle() { reset(); }

  [[nodiscard]] Raw get() const noexcept { return raw_; }
  [[nodiscard]] explicit operator bool() const noexcept { return raw_ != Traits::null(); }
  [[nodiscard]] Raw release() noexcept { return std::exchange(raw_, Traits::null()); }
  void reset() noexcept {
    if (*this) Traits::release(release());
  }

 private:
  Raw raw_ = Traits::null();
};

}  // namespace motley
