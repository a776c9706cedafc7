#include "comm/mpi/runtime.hpp"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"

namespace motley::comm {
namespace {

TEST(RuntimeTest, every_rank_of_the_launcher_is_counted) {
  int one = 1;
  int size = 0;
  MOTLEY_MPI_CHECK(MPI_Allreduce(&one, &size, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  char const* const launched = std::getenv("OMPI_COMM_WORLD_SIZE");
  ASSERT_NE(launched, nullptr);
  EXPECT_EQ(size, std::stoi(launched));
}

TEST(RuntimeTest, a_wrong_root_throws_device_error_with_the_call) {
  int value = 0;
  int size = 0;
  MOTLEY_MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  try {
    MOTLEY_MPI_CHECK(MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD));
    FAIL() << "a root beyond the last rank was accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string{error.what()}.find("MPI_Bcast"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace motley::comm
