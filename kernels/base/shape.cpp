#include "kernels/base/shape.hpp"

#include <algorithm>
#include <ostream>

#include "kernels/base/error.hpp"

namespace motley {

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  MOTLEY_VALIDATE(bug,
                  extents.size() <= max_order,
                  "a tensor of order " << extents.size() << " was asked for (at most " << max_order
                                       << " is supported); flatten some dims");
  order_ = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::int64_t Shape::count() const noexcept {
  std::int64_t product = 1;
  for (int dim = 0; dim < order_; ++dim) product *= (*this)[dim];
  return product;
}

std::int64_t Shape::row_count() const noexcept {
  std::int64_t product = 1;
  for (int dim = 1; dim < order_; ++dim) product *= (*this)[dim];
  return product;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int dim = 0; dim < order_; ++dim) {
    if (dim > 0) text += ", ";
    text += std::to_string((*this)[dim]);
  }
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, Shape const& shape) { return out << shape.to_string(); }

Interval intersect(Interval a, Interval b) noexcept {
  std::int64_t const begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

std::ostream& operator<<(std::ostream& out, Interval const& interval) {
  return out << "[" << interval.begin << ", " << interval.end << ")";
}

}  // namespace motley
