#pragma once

#include <functional>
#include <optional>
#include <string>

namespace motley::app {

/// The ranks a command runs on, as the launcher made them.
struct Ranks {
  int rank = 0;
  int size = 1;
  std::string host;
};

/// What a command line asks for, checked as far as possible before any rank, device or file is
/// touched.
struct Command {
  enum class Needs {
    nothing,  ///< neither kernels nor MPI
    kernels,  ///< Kokkos on this process
    ranks,    ///< MPI and Kokkos
  };

  Needs needs = Needs::nothing;
  std::optional<int> threads;  ///< threads of Kokkos; empty: all cores of the affinity mask
  std::function<int(Ranks const&)> run;  ///< returns the exit code
};

/// Reads the command line. Prints help, version or the error and gives a command that returns the
/// exit code (0, 0 or 64) where there is nothing to run.
[[nodiscard]] Command parse_command_line(int argc, char const* const* argv);

/// Runs a command with what it needs and returns the exit code; errors are logged here.
[[nodiscard]] int run_command(Command const& command, int argc, char** argv);

}  // namespace motley::app
