#pragma once

#include "app/command.hpp"

namespace CLI {
class App;
}

namespace motley::app {

// Each adds one subcommand, with its options and help, to the command line. When that subcommand is
// parsed, its options are checked and `command` is set to what shall run.
void add_train_command(CLI::App& app, Command& command);
void add_sample_command(CLI::App& app, Command& command);
void add_tokenizer_command(CLI::App& app, Command& command);
void add_data_command(CLI::App& app, Command& command);
void add_checkpoint_command(CLI::App& app, Command& command);

}  // namespace motley::app
