#include "app/version.hpp"

#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include "comm/mpi/runtime.hpp"
#include "io/hdf5/file.hpp"
#include "kernels/base/view.hpp"
#include "kernels/linear.hpp"

namespace motley::app {
namespace {

std::string kokkos_text() {
  return fmt::format("{}.{}.{}, {}",
                     KOKKOS_VERSION / 10000,
                     KOKKOS_VERSION / 100 % 100,
                     KOKKOS_VERSION % 100,
                     Exec::name());
}

constexpr char const* contracts_text() {
#ifdef MOTLEY_ENABLE_CONTRACTS
  return "on";
#else
  return "off";
#endif
}

}  // namespace

std::string version_text() {
  return fmt::format("motley " MOTLEY_VERSION " (" MOTLEY_BUILD_TYPE ", built for " MOTLEY_ARCH
                     ", contracts {})\n"
                     "  MPI       {}\n"
                     "  HDF5      {}, parallel\n"
                     "  Kokkos    {}\n"
                     "  products  {}\n"
                     "  absent    CUDA, NCCL",
                     contracts_text(),
                     comm::mpi_library_version(),
                     io::hdf5::library_version(),
                     kokkos_text(),
                     kernels::MatmulEngine{}.description());
}

}  // namespace motley::app
