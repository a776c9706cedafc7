#pragma once

#include <string>

#include <mpi.h>

namespace motley::comm {

/// Throws Error{device} with MPI's own text for `code`, the call and its place.
[[noreturn]] void throw_mpi_error(int code, char const* call, char const* file, int line);

/// Name and version of the MPI library; MPI need not have started.
[[nodiscard]] std::string mpi_library_version();

/// Owns the MPI session of the process. Leaving its scope by an exception aborts the whole job,
/// since the other ranks may be waiting in a collective.
class MpiRuntime {
 public:
  /// Starts MPI for calls from the main thread alone (MPI_THREAD_FUNNELED).
  MpiRuntime(int& argc, char**& argv);
  MpiRuntime(MpiRuntime const&) = delete;
  MpiRuntime& operator=(MpiRuntime const&) = delete;
  MpiRuntime(MpiRuntime&&) = delete;
  MpiRuntime& operator=(MpiRuntime&&) = delete;
  ~MpiRuntime();

  [[nodiscard]] int world_rank() const;
  [[nodiscard]] int world_size() const;
  [[nodiscard]] static std::string host_name();

  /// Ends every rank of the job with `code`.
  [[noreturn]] static void abort(int code) noexcept;

 private:
  int uncaught_;
};

}  // namespace motley::comm

/// Runs an MPI call and throws Error{device} unless it succeeds.
#define MOTLEY_MPI_CHECK(call)                                               \
  do {                                                                       \
    if (int const motley_rc = (call); motley_rc != MPI_SUCCESS) {            \
      ::motley::comm::throw_mpi_error(motley_rc, #call, __FILE__, __LINE__); \
    }                                                                        \
  } while (false)
