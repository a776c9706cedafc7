#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>

namespace motley {

/// Extents of a tensor of order 0 to 4, outermost first.
class Shape {
 public:
  static constexpr int max_order = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);

  [[nodiscard]] int order() const noexcept { return order_; }
  [[nodiscard]] std::int64_t operator[](int dim) const noexcept {
    return extents_[static_cast<std::size_t>(dim)];
  }
  /// Number of elements: the product of the extents (1 for order 0).
  [[nodiscard]] std::int64_t count() const noexcept;
  /// Elements behind one index of dim 0: count() / extent 0.
  [[nodiscard]] std::int64_t row_count() const noexcept;
  /// "[4, 1024, 768]"
  [[nodiscard]] std::string to_string() const;

  bool operator==(Shape const&) const = default;

 private:
  int order_ = 0;
  std::array<std::int64_t, max_order> extents_{};
};

std::ostream& operator<<(std::ostream& out, Shape const& shape);

/// Half-open range [begin, end) of indices along one dim.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
  [[nodiscard]] bool is_empty() const noexcept { return end <= begin; }
  [[nodiscard]] bool contains(std::int64_t index) const noexcept {
    return begin <= index && index < end;
  }
  bool operator==(Interval const&) const = default;
};

/// Common part of two intervals; empty (and possibly reversed to size 0) where there is none.
[[nodiscard]] Interval intersect(Interval a, Interval b) noexcept;

std::ostream& operator<<(std::ostream& out, Interval const& interval);

}  // namespace motley
