#include "comm/mpi/runtime.hpp"

#include <array>
#include <exception>
#include <sstream>

#include "kernels/base/error.hpp"

namespace motley::comm {

void throw_mpi_error(int code, char const* call, char const* file, int line) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  std::ostringstream message;
  message << "MPI call " << call << " did not succeed ("
          << std::string_view{text.data(), static_cast<std::size_t>(length)}
          << "); check the network and the other ranks of the job";
  throw Error{ErrorKind::device, message.str(), {call, file, line}};
}

std::string mpi_library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MOTLEY_MPI_CHECK(MPI_Get_library_version(text.data(), &length));
  std::string const version{text.data(), static_cast<std::size_t>(length)};
  return version.substr(0, version.find(','));  // the rest names who packaged it
}

MpiRuntime::MpiRuntime(int& argc, char**& argv) : uncaught_{std::uncaught_exceptions()} {
  int provided = MPI_THREAD_SINGLE;
  MOTLEY_MPI_CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
  MOTLEY_MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

MpiRuntime::~MpiRuntime() {
  if (std::uncaught_exceptions() > uncaught_) abort(exit_code(ErrorKind::bug));
  MPI_Finalize();
}

int MpiRuntime::world_rank() const {
  int rank = 0;
  MOTLEY_MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

int MpiRuntime::world_size() const {
  int size = 0;
  MOTLEY_MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return size;
}

std::string MpiRuntime::host_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  MOTLEY_MPI_CHECK(MPI_Get_processor_name(name.data(), &length));
  return {name.data(), static_cast<std::size_t>(length)};
}

void MpiRuntime::abort(int code) noexcept {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::terminate();
}

}  // namespace motley::comm
