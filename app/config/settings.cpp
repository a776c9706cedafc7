#include "app/config/settings.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <toml++/toml.h>

#include "kernels/base/error.hpp"

namespace motley::app {
namespace {

std::string origin_of(std::string const& file, toml::node const& node) {
  return file + ":" + std::to_string(node.source().begin.line);
}

std::vector<double> numbers_of(toml::array const& array,
                               std::string const& key,
                               std::string const& origin) {
  std::vector<double> numbers;
  for (toml::node const& element : array) {
    auto const number = element.value<double>();
    MOTLEY_VALIDATE(usage,
                    number.has_value(),
                    origin << ": \"" << key << "\" holds something other than numbers (lists of "
                           << "numbers are the only lists); write e.g. [0.9, 0.95]");
    numbers.push_back(*number);
  }
  return numbers;
}

RawValue value_of(toml::node const& node, std::string const& key, std::string const& origin) {
  if (auto const* flag = node.as_boolean()) return flag->get();
  if (auto const* integer = node.as_integer()) return integer->get();
  if (auto const* real = node.as_floating_point()) return real->get();
  if (auto const* text = node.as_string()) return text->get();
  if (auto const* array = node.as_array()) return numbers_of(*array, key, origin);
  MOTLEY_FAIL(usage,
              origin << ": \"" << key << "\" is a date or time (no key takes one); "
                     << "write a number, a string, true or false, or a list of numbers");
}

void flatten(toml::table const& table,
             std::string const& prefix,
             std::string const& file,
             std::vector<Setting>& settings) {
  for (auto const& [name, node] : table) {
    std::string const key = prefix + std::string{name.str()};
    if (auto const* inner = node.as_table()) {
      flatten(*inner, key + ".", file, settings);
      continue;
    }
    std::string const origin = origin_of(file, node);
    settings.push_back({key, value_of(node, key, origin), origin});
  }
}

std::string toml_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> text{};
  auto const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  std::string result{text.data(), end};
  // TOML tells a real number from an integer by its point or exponent.
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

std::string toml_list(std::vector<double> const& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += ", ";
    text += toml_number(numbers[i]);
  }
  return text + "]";
}

std::string toml_string(std::string const& value) {
  std::ostringstream text;
  text << toml::value<std::string>{value};
  return text.str();
}

}  // namespace

std::vector<Setting> parse_settings(std::string const& text, std::string const& name) {
  try {
    toml::table const table = toml::parse(text);
    std::vector<Setting> settings;
    flatten(table, "", name, settings);
    return settings;
  } catch (toml::parse_error const& error) {
    MOTLEY_FAIL(usage,
                name << ":" << error.source().begin.line << ":" << error.source().begin.column
                     << ": not valid TOML (" << error.description() << "); correct this line");
  }
}

std::vector<Setting> read_settings(std::string const& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  MOTLEY_VALIDATE(usage,
                  std::filesystem::is_regular_file(path) && file.good(),
                  "configuration file \"" << path
                                          << "\" cannot be read (it is missing, empty or no "
                                          << "file); give the path of a run.toml");
  return parse_settings(text.str(), std::filesystem::path{path}.filename().string());
}

Setting parse_override(std::string_view text) {
  std::size_t const equals = text.find('=');
  MOTLEY_VALIDATE(usage,
                  equals != std::string_view::npos && equals > 0,
                  "argument \"" << text << "\" is not an override (it has no \"key=\" in front); "
                                << "write e.g. train.train_iters=100");
  std::string const key{text.substr(0, equals)};
  std::string const value{text.substr(equals + 1)};
  std::string const origin = "command line";
  try {
    toml::table const table = toml::parse("value = " + value);
    if (table.size() == 1 && !table.begin()->second.is_table()) {
      return {key, value_of(table.begin()->second, key, origin), origin};
    }
  } catch (toml::parse_error const&) {
    return {key, value, origin};  // not TOML: a bare word such as linear, or a path
  }
  return {key, value, origin};  // a value that would open a table, such as a brace
}

std::string to_toml(RawValue const& value) {
  if (auto const* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (auto const* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (auto const* real = std::get_if<double>(&value)) return toml_number(*real);
  if (auto const* text = std::get_if<std::string>(&value)) return toml_string(*text);
  return toml_list(std::get<std::vector<double>>(value));
}

std::string_view kind_name(RawValue const& value) noexcept {
  constexpr std::array<std::string_view, 5> names{
      "true or false", "an integer", "a real number", "a string", "a list of numbers"};
  return names[value.index()];
}

}  // namespace motley::app
