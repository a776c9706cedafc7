#include <iostream>

#include "app/version.hpp"

int main() {
  std::cout << motley::app::version_text() << '\n';
  return 0;
}
