#pragma once

#include <string>

namespace motley::app {

/// Version and the features built in, as `motley --version` prints them.
[[nodiscard]] std::string version_text();

}  // namespace motley::app
