#include <exception>

#include <Kokkos_Core.hpp>

#include "app/command.hpp"
#include "app/log_sink.hpp"
#include "comm/mpi/runtime.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/log.hpp"

namespace motley::app {
namespace {

Kokkos::InitializationSettings kokkos_settings(Command const& command) {
  Kokkos::InitializationSettings settings;
  settings.set_disable_warnings(true);
  if (command.threads) settings.set_num_threads(*command.threads);
  return settings;
}

int run_logged(Command const& command, Ranks const& ranks) {
  try {
    return command.run(ranks);
  } catch (std::exception const& error) {
    MOTLEY_LOG_LOCAL(fatal) << error.what();
    return exit_code(error);
  }
}

int run_alone(Command const& command) {
  if (command.needs == Command::Needs::nothing) return run_logged(command, {});
  Kokkos::ScopeGuard const kokkos{kokkos_settings(command)};
  return run_logged(command, {});
}

int run_on_ranks(Command const& command, int argc, char** argv) {
  comm::MpiRuntime mpi{argc, argv};
  Kokkos::ScopeGuard const kokkos{
      kokkos_settings(command)};  // inside the MPI scope: views die first
  Ranks const ranks{mpi.world_rank(), mpi.world_size(), comm::MpiRuntime::host_name()};
  install_log({make_log_sink(""), log_level_from_environment(), ranks.rank, ranks.host});
  int const code = run_logged(command, ranks);
  // A rank that fails ends the job: the others may be waiting for it.
  bool const is_failure = code != 0 && code != exit_code_resume;
  if (is_failure && ranks.size > 1) comm::MpiRuntime::abort(code);
  return code;
}

}  // namespace

int run_command(Command const& command, int argc, char** argv) {
  return command.needs == Command::Needs::ranks ? run_on_ranks(command, argc, argv)
                                                : run_alone(command);
}

}  // namespace motley::app
