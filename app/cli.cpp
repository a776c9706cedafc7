#include <exception>

#include <CLI/CLI.hpp>

#include "app/command.hpp"
#include "app/commands/commands.hpp"
#include "app/log_sink.hpp"
#include "app/version.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::app {
namespace {

constexpr char const* description =
    "motley trains transformer language models on unequal machines.\n"
    "The plan changes speed, never the result.";

constexpr char const* exit_code_help =
    "Exit codes: 0 target reached, 64 bad option or key, 65 data refused, 66 checkpoint missing "
    "or\n"
    "damaged, 69 device failed, 70 internal error, 73 cannot write at exit, 75 checkpoint written: "
    "run\n"
    "me again, 76 time-out, 78 does not fit, 79 numeric stop.";

Command finished(int code) {
  Command command;
  command.run = [code](Ranks const&) { return code; };
  return command;
}

}  // namespace

Command parse_command_line(int argc, char const* const* argv) {
  Command command;
  try {
    install_log({make_log_sink(""), log_level_from_environment(), 0, ""});
    CLI::App app{description, "motley"};
    app.set_version_flag(
        "--version", version_text(), "Print the version and the features built in");
    app.footer(exit_code_help);
    app.require_subcommand(1);
    add_train_command(app, command);
    add_sample_command(app, command);
    add_tokenizer_command(app, command);
    add_data_command(app, command);
    add_checkpoint_command(app, command);
    try {
      app.parse(argc, argv);
    } catch (CLI::ParseError const& error) {
      bool const is_help = error.get_exit_code() == 0;
      static_cast<void>(app.exit(error));  // prints the help or the problem
      return finished(is_help ? 0 : exit_code(ErrorKind::usage));
    }
  } catch (std::exception const& error) {
    MOTLEY_LOG(fatal) << error.what();
    return finished(exit_code(error));
  }
  return command;
}

}  // namespace motley::app
