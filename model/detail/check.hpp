#pragma once

#include <sstream>
#include <utility>

#include "model/spec/problem.hpp"

namespace motley::model::detail {

/// Collects the problems of a part of the configuration.
class Check {
 public:
  /// Adds a problem of `key` unless `is_fine`; the message is the parts, streamed.
  template <class... Parts>
  void require(bool is_fine, char const* key, Parts const&... parts) {
    if (is_fine) return;
    std::ostringstream message;
    (message << ... << parts);
    found_.push_back({key, message.str()});
  }
  void append(Problems const& others) { found_.insert(found_.end(), others.begin(), others.end()); }
  [[nodiscard]] Problems take() { return std::move(found_); }

 private:
  Problems found_;
};

}  // namespace motley::model::detail
