#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "app/commands/commands.hpp"
#include "app/config/load.hpp"
#include "app/train/session.hpp"
#include "kernels/base/error.hpp"

namespace motley::app {
namespace {

struct TrainOptions {
  std::string file;
  bool print_config = false;
  bool dry_run = false;
};

/// Overrides as `key=value`; `--section.key value` and `--section.key=value` mean the same.
std::vector<std::string> overrides_of(std::vector<std::string> const& words) {
  std::vector<std::string> overrides;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string const& word = words[i];
    if (!word.starts_with("--")) {
      overrides.push_back(word);
      continue;
    }
    std::string const key = word.substr(2);
    if (key.find('=') != std::string::npos) {
      overrides.push_back(key);
      continue;
    }
    MOTLEY_VALIDATE(
        usage,
        i + 1 < words.size(),
        "option \"" << word << "\" has no value (it stands last); write " << key << "=VALUE");
    overrides.push_back(key + "=" + words[++i]);
  }
  return overrides;
}

void set_train(Command& command, TrainOptions const& options, std::vector<std::string> words) {
  std::string file = options.file;
  // `motley train --print-config key=value`: the first word is an override, not a file.
  if (file.find('=') != std::string::npos) {
    words.insert(words.begin(), file);
    file.clear();
  }
  RunConfig const config = load_config(file, overrides_of(words));
  if (options.print_config) {
    command.run = [config](Ranks const&) {
      std::cout << to_toml(config);
      return 0;
    };
    return;
  }
  command.needs = Command::Needs::ranks;
  command.threads = config.run.threads;
  bool const dry_run = options.dry_run;
  command.run = [config, dry_run](Ranks const& ranks) {
    return dry_run ? describe_training(config, ranks) : train(config, ranks);
  };
}

}  // namespace

void add_train_command(CLI::App& app, Command& command) {
  CLI::App* const train = app.add_subcommand("train", "Train, or go on training, a model");
  auto const options = std::make_shared<TrainOptions>();
  train->add_option("RUN.toml", options->file, "Configuration file, then overrides: key=value …");
  train->add_flag(
      "--print-config", options->print_config, "Print the whole configuration and stop");
  train->add_flag(
      "--dry-run", options->dry_run, "Print configuration and memory table, train nothing");
  train->allow_extras();
  train->footer(config_help());
  train->callback([train, options, &command] { set_train(command, *options, train->remaining()); });
}

}  // namespace motley::app
