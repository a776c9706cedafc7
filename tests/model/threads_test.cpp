// Runs of the same training on 1 and 2 threads. The number of threads is fixed when a process
// starts, so each run is a process: this program again, told by its environment what to do.

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/train/trainer.hpp"
#include "tests/model/tiny_model.hpp"

namespace motley::model {
namespace {

using test::tiny_config;
using test::Windows;

constexpr char const* output_variable = "MOTLEY_TEST_THREADS_OUTPUT";

/// Losses and gradient norms of a few steps, to the last digit.
void write_run(std::string const& path) {
  std::ofstream out{path};
  out.precision(17);
  for (DType const dtype : {DType::fp32, DType::bf16}) {
    for (Family const family : {Family::gpt2, Family::llama}) {
      TrainerConfig config = tiny_config(family, dtype);
      config.model.hidden = 64;
      config.model.ffn = 200;
      config.model.vocab = 300;
      config.model.seq_length = 70;
      config.model.dropout = 0.1;
      config.train.micro_batch_size = 3;
      config.train.global_batch_size = 3;
      Windows const windows{config.model, 3, 1};
      Batch const batch = windows.all();
      auto const trainer = make_trainer(config, comm::Group{});
      for (int step = 0; step < 4; ++step) {
        StepResult const result = trainer->train_step({&batch, 1}, windows.valid_tokens());
        out << result.loss << " " << result.grad_norm << "\n";
      }
    }
  }
}

/// Runs the writer below in a process with this many threads.
std::vector<double> run_with(char const* threads) {
  std::string const path = testing::TempDir() + "motley_threads_" + std::to_string(getpid());
  pid_t const child = fork();
  if (child == 0) {
    setenv("OMP_NUM_THREADS", threads, 1);
    setenv(output_variable, path.c_str(), 1);
    execl("/proc/self/exe", "threads_test", "--gtest_filter=ThreadsTest.writer", nullptr);
    _exit(127);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::vector<double> values;
  std::ifstream in{path};
  for (double value = 0.0; in >> value;) values.push_back(value);
  unlink(path.c_str());
  return values;
}

TEST(ThreadsTest, writer) {
  char const* const path = std::getenv(output_variable);
  if (path != nullptr) write_run(path);
}

TEST(ThreadsTest, two_threads_give_the_bits_of_one) {
  if (std::getenv(output_variable) != nullptr) return;
  std::vector<double> const one = run_with("1");
  std::vector<double> const two = run_with("2");
  ASSERT_EQ(one.size(), 32U);
  ASSERT_EQ(two.size(), one.size());
  // Every kernel promises bits that do not depend on the number of threads.
  EXPECT_EQ(two, one);
  EXPECT_LT(one[6], one[0]) << "the loss must move for this to mean anything";
}

}  // namespace
}  // namespace motley::model
