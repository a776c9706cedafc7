#pragma once

#include <limits>
#include <string_view>

namespace motley::app {

/// What the configuration needs to know of one key beside its value: its name, its meaning, its
/// range.
struct Field {
  std::string_view key;                                   ///< dotted, e.g. "train.seq_length"
  std::string_view doc;                                   ///< one line: meaning and unit
  double min = -std::numeric_limits<double>::infinity();  ///< smallest value of a number
  double max = std::numeric_limits<double>::infinity();   ///< largest value of a number
  bool is_required = false;
  std::string_view alias = {};  ///< the same key as other trainers call it, e.g. "seq_length"
};

/// An enumerator and its name in configuration files.
template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

/// `names`, an array of EnumName<E>: every enumerator of E that a user may write.
template <class E>
struct EnumNames;

}  // namespace motley::app
