// What a steady step may not do: allocate, copy, fence globally, or touch a new page.

#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "model/train/trainer.hpp"
#include "tests/kernels/kokkos_events.hpp"
#include "tests/model/tiny_model.hpp"

namespace motley::model {
namespace {

using motley::test::KokkosEvents;
using test::tiny_config;
using test::Windows;

long minor_faults() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_minflt;
}

/// Every kind of model there is, large enough for each kernel to use what memory it can.
class SteadyTest : public testing::TestWithParam<DType> {
 protected:
  static TrainerConfig config_of(Family family, Recompute recompute) {
    TrainerConfig config = tiny_config(family, GetParam());
    config.model.hidden = 128;
    config.model.ffn = 320;
    config.model.vocab = 1000;
    config.model.seq_length = 96;
    config.model.dropout = 0.1;
    config.memory.recompute = recompute;
    return config;
  }
};

TEST_P(SteadyTest, step_allocates_nothing_and_faults_on_no_page) {
  for (Family const family : {Family::gpt2, Family::llama}) {
    for (Recompute const recompute : {Recompute::none, Recompute::full}) {
      TrainerConfig const config = config_of(family, recompute);
      Windows const windows{config.model, 2, 1};
      Batch const batches[] = {windows.all(), windows.all()};
      auto const trainer = make_trainer(config, comm::Group{});
      std::int64_t const valid = 2 * windows.valid_tokens();
      for (int step = 0; step < 2; ++step) trainer->train_step(batches, valid);
      long const before = minor_faults();
      for (int step = 0; step < 3; ++step) trainer->train_step(batches, valid);
      EXPECT_EQ(minor_faults() - before, 0) << to_string(family);
      KokkosEvents events;
      trainer->train_step(batches, valid);
      EXPECT_TRUE(events.are_steady()) << to_string(family);
      EXPECT_TRUE(events.are_named("motley::")) << to_string(family);
      EXPECT_GT(events.count(KokkosEvents::Kind::kernel), 20U);
    }
  }
}

TEST_P(SteadyTest, validation_allocates_nothing) {
  TrainerConfig const config = config_of(Family::llama, Recompute::none);
  Windows const windows{config.model, 2, 1};
  auto const trainer = make_trainer(config, comm::Group{});
  double const loss = trainer->loss_sum(windows.all());
  KokkosEvents events;
  EXPECT_EQ(trainer->loss_sum(windows.all()), loss);
  EXPECT_TRUE(events.are_steady());
}

INSTANTIATE_TEST_SUITE_P(AllTypes,
                         SteadyTest,
                         testing::Values(DType::fp32, DType::bf16, DType::fp64),
                         [](auto const& type) { return std::string{to_string(type.param)}; });

}  // namespace
}  // namespace motley::model
