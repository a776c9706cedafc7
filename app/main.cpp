#include "app/command.hpp"

int main(int argc, char** argv) {
  // Help and usage errors end here, before any rank waits.
  motley::app::Command const command = motley::app::parse_command_line(argc, argv);
  return motley::app::run_command(command, argc, argv);
}
