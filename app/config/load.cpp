#include "app/config/load.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "app/config/convert.hpp"
#include "app/config/fields.hpp"
#include "app/config/settings.hpp"
#include "kernels/base/error.hpp"

namespace motley::app {
namespace {

using SettingsByKey = std::map<std::string, Setting, std::less<>>;

/// Number of inserted, deleted or replaced characters between two words.
///
/// Source   Wagner and Fischer, "The string-to-string correction problem", J. ACM 21(1), 1974
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t const replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

std::vector<Field> all_fields() {
  std::vector<Field> fields;
  RunConfig config;
  visit_fields(config, [&](Field const& field, auto const&) { fields.push_back(field); });
  return fields;
}

std::string_view last_word(std::string_view key) { return key.substr(key.rfind('.') + 1); }

/// Files and command line under the documented names, last one wins; unknown keys become problems.
SettingsByKey gather(std::vector<Setting> const& settings, std::vector<std::string>& problems) {
  std::map<std::string_view, std::string_view> names;
  std::vector<Field> const fields = all_fields();
  for (Field const& field : fields) {
    names[field.key] = field.key;
    if (!field.alias.empty()) names[field.alias] = field.key;
  }
  SettingsByKey by_key;
  for (Setting const& setting : settings) {
    auto const known = names.find(setting.key);
    if (known != names.end()) {
      by_key[std::string{known->second}] = setting;
      continue;
    }
    std::string const nearest = nearest_key(setting.key);
    problems.push_back(
        setting.key + " (" + setting.origin + ") is not a known key; " +
        (nearest.empty() ? "motley train --help lists all keys" : "did you mean " + nearest + "?"));
  }
  return by_key;
}

void apply_preset(RunConfig& config,
                  SettingsByKey const& settings,
                  std::vector<std::string>& problems) {
  auto const setting = settings.find("model.preset");
  if (setting == settings.end()) return;
  auto const* name = std::get_if<std::string>(&setting->second.value);
  if (name == nullptr || name->empty() || set_preset(config, *name)) return;
  problems.push_back("model.preset (" + setting->second.origin + ") is \"" + *name +
                     "\", which is none of " + preset_names());
}

void apply_settings(RunConfig& config,
                    SettingsByKey const& settings,
                    std::vector<std::string>& problems) {
  visit_fields(config, [&](Field const& field, auto& value) {
    auto const setting = settings.find(field.key);
    if (setting == settings.end()) {
      if (field.is_required) {
        problems.push_back(std::string{field.key} + " is missing (" + std::string{field.doc} +
                           "); add it to the file or as " + std::string{field.key} + "=…");
      }
      return;
    }
    std::string const problem = detail::read(field, setting->second.value, value);
    if (problem.empty()) return;
    problems.push_back(std::string{field.key} + " (" + setting->second.origin + ") " + problem +
                       "; " + std::string{field.doc});
  });
}

std::string origin_of(SettingsByKey const& settings, std::string const& key) {
  auto const setting = settings.find(key);
  return setting == settings.end() ? "" : " (" + setting->second.origin + ")";
}

void refuse(std::vector<std::string> const& problems) {
  if (problems.empty()) return;
  std::string text = problems.size() == 1 ? "the configuration has a problem:"
                                          : "the configuration has " +
                                                std::to_string(problems.size()) + " problems:";
  for (std::string const& problem : problems) text += "\n  " + problem;
  MOTLEY_FAIL(usage, text);
}

/// Defaults, the preset, then the settings; every problem is found before anything is said.
RunConfig resolve(std::vector<Setting> const& settings) {
  std::vector<std::string> problems;
  SettingsByKey const by_key = gather(settings, problems);
  RunConfig config;
  std::size_t const unknown_keys = problems.size();
  apply_preset(config, by_key, problems);
  apply_settings(config, by_key, problems);
  // Only a configuration whose every value could be read can be judged as a whole.
  if (problems.size() == unknown_keys) {
    complete(config);
    for (model::Problem const& problem : find_problems(config)) {
      problems.push_back(problem.key + origin_of(by_key, problem.key) + " " + problem.message);
    }
  }
  refuse(problems);
  return config;
}

}  // namespace

std::string nearest_key(std::string_view key) {
  std::string nearest;
  std::size_t best = std::max<std::size_t>(3, key.size() / 3) + 1;
  for (Field const& field : all_fields()) {
    // A key in the wrong section is as near as its last word.
    std::size_t distance = std::min(edit_distance(key, field.key),
                                    edit_distance(last_word(key), last_word(field.key)) + 1);
    if (!field.alias.empty()) distance = std::min(distance, edit_distance(key, field.alias));
    if (distance >= best) continue;
    best = distance;
    nearest = field.key;
  }
  return nearest;
}

RunConfig load_config(std::string const& path, std::vector<std::string> const& overrides) {
  std::vector<Setting> settings;
  if (!path.empty()) settings = read_settings(path);
  for (std::string const& text : overrides) settings.push_back(parse_override(text));
  return resolve(settings);
}

RunConfig parse_config(std::string const& text, std::string const& name) {
  return resolve(parse_settings(text, name));
}

std::string to_toml(RunConfig const& config) {
  std::string text;
  std::string_view section;
  RunConfig copy = config;
  visit_fields(copy, [&](Field const& field, auto const& value) {
    std::size_t const dot = field.key.find('.');
    if (std::string_view const here = field.key.substr(0, dot); here != section) {
      section = here;
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("{} = {}\n", field.key.substr(dot + 1), to_toml(detail::write(value)));
  });
  return text;
}

std::string config_help() {
  std::string text = "Keys of RUN.toml (default; meaning and unit):\n";
  RunConfig defaults;
  visit_fields(defaults, [&](Field const& field, auto const& value) {
    std::string const shown = field.is_required ? "required" : to_toml(detail::write(value));
    text += fmt::format("  {:<30} {:<16} {}", field.key, shown, field.doc);
    if (!field.alias.empty()) text += fmt::format(" [also: {}]", field.alias);
    text += "\n";
  });
  return text;
}

}  // namespace motley::app
