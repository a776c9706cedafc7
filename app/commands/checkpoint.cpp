#include "io/checkpoint/checkpoint.hpp"

#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "app/commands/commands.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::app {
namespace {

struct CheckpointArguments {
  std::string path;
  bool norms = false;
};

int inspect(CheckpointArguments const& arguments) {
  auto const norms = arguments.norms ? io::InspectNorms::yes : io::InspectNorms::no;
  std::cout << io::to_text(io::inspect_checkpoint(arguments.path, norms));
  return 0;
}

int verify(CheckpointArguments const& arguments) {
  std::vector<std::string> const damage = io::verify_checkpoint(arguments.path);
  for (std::string const& sentence : damage) MOTLEY_LOG(error) << sentence;
  if (!damage.empty()) return exit_code(ErrorKind::checkpoint);
  MOTLEY_LOG(info) << "checkpoint \"" << arguments.path << "\" is intact";
  return 0;
}

}  // namespace

void add_checkpoint_command(CLI::App& app, Command& command) {
  CLI::App* const checkpoint = app.add_subcommand("checkpoint", "Look into checkpoints");
  checkpoint->require_subcommand(1);
  auto const arguments = std::make_shared<CheckpointArguments>();
  char const* const path_help = "Folder of a checkpoint, or of a run: its newest";

  CLI::App* const show = checkpoint->add_subcommand("inspect", "Print what a checkpoint holds");
  show->add_option("PATH", arguments->path, path_help)->required();
  show->add_flag("--norms", arguments->norms, "Read all tensors and print their norms");
  show->callback([arguments, &command] {
    command.run = [arguments](Ranks const&) { return inspect(*arguments); };
  });

  CLI::App* const check =
      checkpoint->add_subcommand("verify", "Read a whole checkpoint and name all damage (exit 66)");
  check->add_option("PATH", arguments->path, path_help)->required();
  check->callback([arguments, &command] {
    command.run = [arguments](Ranks const&) { return verify(*arguments); };
  });
}

}  // namespace motley::app
