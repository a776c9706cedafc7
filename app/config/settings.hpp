#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace motley::app {

/// A value as written by a user, before it is known what type its key has.
using RawValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

/// One `key = value` of a file or the command line.
struct Setting {
  std::string key;  ///< dotted, as written (may be an alias)
  RawValue value;
  std::string origin;  ///< "run.toml:12" or "command line"
};

/// Settings of a TOML file in the order of the file, tables flattened to dotted keys.
///
/// Throws   Error{usage} if the file is missing, unreadable or not TOML (with line and column), or
/// holds
///          a value of a kind no key has (a date, a table in an array)
[[nodiscard]] std::vector<Setting> read_settings(std::string const& path);

/// The same for a text at hand; `name` stands for the file in messages.
[[nodiscard]] std::vector<Setting> parse_settings(std::string const& text, std::string const& name);

/// The setting of a command-line override `key=value`. The value is read as TOML; a bare word is a
/// string.
///
/// Throws   Error{usage} if there is no "=" or no key
[[nodiscard]] Setting parse_override(std::string_view text);

/// A value as TOML text: what `read_settings` reads back as the same value.
[[nodiscard]] std::string to_toml(RawValue const& value);

/// "an integer", "a string", …: for messages.
[[nodiscard]] std::string_view kind_name(RawValue const& value) noexcept;

}  // namespace motley::app
