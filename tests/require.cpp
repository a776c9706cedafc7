#include "tests/require.hpp"

#include <cstdlib>
#include <string>

namespace motley::test {

bool is_required(std::string_view name) {
  char const* const value = std::getenv("MOTLEY_REQUIRE");
  if (value == nullptr) return false;
  std::string const list = ',' + std::string{value} + ',';
  return list.find(',' + std::string{name} + ',') != std::string::npos;
}

}  // namespace motley::test
