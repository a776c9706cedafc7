#pragma once

#include <memory>
#include <string>

#include "kernels/base/log.hpp"

namespace motley::app {

/// A sink that writes to the terminal (information to standard output, warnings and worse to
/// standard error) and, with a non-empty path, appends every line with its time to that file.
///
/// Throws   Error{write} if the file cannot be opened
[[nodiscard]] std::shared_ptr<LogSink> make_log_sink(std::string const& file_path);

/// Level asked for by the environment variable MOTLEY_LOG; info if it is unset.
///
/// Throws   Error{usage} if it names no level
[[nodiscard]] LogLevel log_level_from_environment();

}  // namespace motley::app
