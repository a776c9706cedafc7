#include <iostream>

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>
#include <mpi.h>

#include "comm/mpi/runtime.hpp"
#include "tests/verdict.hpp"

namespace {

/// What a rank other than 0 prints: its failures and skips alone, each with the rank.
class RankTaggedResults final : public testing::EmptyTestEventListener {
 public:
  explicit RankTaggedResults(int rank) : rank_{rank} {}

  void OnTestPartResult(testing::TestPartResult const& result) override {
    if (result.passed()) return;
    char const* const file = result.file_name() == nullptr ? "unknown" : result.file_name();
    std::cout << "[rank " << rank_ << "] " << file << ':' << result.line_number() << ": "
              << (result.skipped() ? "Skipped" : "Failure") << '\n'
              << result.message() << '\n';
  }

  void OnTestEnd(testing::TestInfo const& info) override {
    if (info.result()->Failed()) {
      std::cout << "[rank " << rank_ << "] failed: " << info.test_suite_name() << '.' << info.name()
                << '\n';
    }
  }

 private:
  int rank_;
};

/// The verdict of all ranks: a failure on any wins, then a skip on any. Collective over the world.
int common_verdict(int mine) {
  int failed_and_skipped[2] = {mine == 1 ? 1 : 0, mine == motley::test::exit_code_skipped ? 1 : 0};
  MOTLEY_MPI_CHECK(
      MPI_Allreduce(MPI_IN_PLACE, failed_and_skipped, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  if (failed_and_skipped[0] != 0) return 1;
  return failed_and_skipped[1] != 0 ? motley::test::exit_code_skipped : 0;
}

}  // namespace

int main(int argc, char** argv) {
  motley::comm::MpiRuntime mpi{argc, argv};
  testing::InitGoogleTest(&argc, argv);
  int const rank = mpi.world_rank();
  if (rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new RankTaggedResults{rank});
  }
  Kokkos::ScopeGuard const kokkos{argc, argv};
  return common_verdict(motley::test::verdict(RUN_ALL_TESTS()));
}
