#include "app/version.hpp"

namespace motley::app {

std::string version_text() { return "motley " MOTLEY_VERSION; }

}  // namespace motley::app
