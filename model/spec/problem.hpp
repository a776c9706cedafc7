#pragma once

#include <string>
#include <vector>

namespace motley::model {

/// What is wrong with one value of the configuration.
struct Problem {
  std::string key;      ///< dotted path as users write it, e.g. "model.heads"
  std::string message;  ///< value and problem, why it is one, what to do
};

/// All problems of a part of the configuration; empty: none.
using Problems = std::vector<Problem>;

}  // namespace motley::model
