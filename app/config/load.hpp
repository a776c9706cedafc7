#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/config/run_config.hpp"

namespace motley::app {

/// Configuration of a file and overrides: defaults, then the preset, then the file, then the
/// overrides in their order; the last one wins.
///
/// `path` may be empty: overrides alone. Every problem of every key is found before anything is
/// said. Throws   Error{usage} listing all problems, each with its key, value, origin and remedy
[[nodiscard]] RunConfig load_config(std::string const& path,
                                    std::vector<std::string> const& overrides);

/// The same for a written configuration at hand, e.g. that of a checkpoint; `name` stands for the
/// file in messages.
[[nodiscard]] RunConfig parse_config(std::string const& text, std::string const& name);

/// The whole configuration as TOML, every key written out; loading it gives the same configuration.
[[nodiscard]] std::string to_toml(RunConfig const& config);

/// Every key with its default, meaning and unit: the second part of `motley train --help`.
[[nodiscard]] std::string config_help();

/// The known key most like `key`; empty if none is near.
[[nodiscard]] std::string nearest_key(std::string_view key);

}  // namespace motley::app
