#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"
#include "model/spec/logical_tensors.hpp"
#include "model/train/host_memory.hpp"
#include "model/train/trainer.hpp"
#include "tests/model/tiny_model.hpp"

namespace motley::model {
namespace {

using test::all_values;
using test::tiny_config;
using test::values_of;
using test::Windows;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Sets one element of a parameter.
void set_parameter(Trainer& trainer, std::string const& name, std::size_t element, float value) {
  for (NamedTensor const& tensor : trainer.tensors(StateKind::parameter)) {
    if (tensor.name == name) values_of<float>(tensor)[element] = value;
  }
  trainer.adopt_parameters();
}

class NonFiniteTest : public testing::Test {
 protected:
  TrainerConfig config = tiny_config(Family::gpt2, DType::fp32);
  Windows windows{config.model, 2, 3};
  Batch halves[2] = {windows.rows(0, 1), windows.rows(1, 1)};

  StepResult step(Trainer& trainer) { return trainer.train_step(halves, windows.valid_tokens()); }
};

TEST_F(NonFiniteTest, bad_weight_is_found_by_layer_and_name) {
  auto const trainer = make_trainer(config, comm::Group{});
  set_parameter(*trainer, "layers.1.mlp.up.weight", 5, nan);
  StepResult const result = step(*trainer);
  EXPECT_TRUE(result.is_skipped);
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_NE(result.non_finite.find("output of layer 1"), std::string::npos) << result.non_finite;
  EXPECT_NE(result.non_finite.find("\"layers.1.mlp.up.weight\"[5]"), std::string::npos);
  EXPECT_NE(result.non_finite.find("micro-batch 0"), std::string::npos);
}

TEST_F(NonFiniteTest, bad_embedding_is_found_in_the_micro_batch_that_uses_it) {
  // A token that only the second window has.
  windows.inputs[0] = 1;
  for (std::int32_t& id : windows.inputs) id = id == 36 ? 0 : id;
  windows.inputs[12] = 36;
  config.model.tied = false;
  auto const trainer = make_trainer(config, comm::Group{});
  set_parameter(*trainer, "embedding.tokens.weight", 36 * 24, nan);
  StepResult const result = step(*trainer);
  EXPECT_NE(result.non_finite.find("output of the embedding"), std::string::npos)
      << result.non_finite;
  EXPECT_NE(result.non_finite.find("micro-batch 1"), std::string::npos) << result.non_finite;
}

TEST_F(NonFiniteTest, overflow_in_the_backward_is_found_by_gradient_and_micro_batch) {
  // Units that are switched off hide huge weights from the forward; in the backward the gradient
  // meets these weights first, becomes infinite, and times zero makes a NaN behind the activation.
  auto const trainer = make_trainer(config, comm::Group{});
  for (NamedTensor const& tensor : trainer->tensors(StateKind::parameter)) {
    auto const fill = [&](char const* name, float value) {
      if (tensor.name != name) return;
      for (float& element : values_of<float>(tensor)) element = value;
    };
    fill("layers.1.mlp.up.bias", -1000.0F);
    fill("layers.1.mlp.down.weight", 3e38F);
    fill("final_norm.weight", 1000.0F);
  }
  trainer->adopt_parameters();
  StepResult const result = step(*trainer);
  EXPECT_TRUE(result.is_skipped);
  EXPECT_TRUE(std::isfinite(result.loss));
  EXPECT_FALSE(std::isfinite(result.grad_norm));
  EXPECT_NE(result.non_finite.find("gradient of \"layers.1.mlp.up.bias\""), std::string::npos)
      << result.non_finite;
  EXPECT_NE(result.non_finite.find("micro-batch 0"), std::string::npos);
}

TEST_F(NonFiniteTest, skipped_step_leaves_parameters_and_moments) {
  auto const trainer = make_trainer(config, comm::Group{});
  step(*trainer);
  auto const parameters = all_values<float>(*trainer, StateKind::parameter);
  auto const m = all_values<float>(*trainer, StateKind::adam_m);
  auto const v = all_values<float>(*trainer, StateKind::adam_v);
  // Written behind the trainer's back: it keeps moments and progress.
  auto const set_bias = [&](float value) {
    for (NamedTensor const& tensor : trainer->tensors(StateKind::parameter)) {
      if (tensor.name == "final_norm.bias") std::swap(values_of<float>(tensor)[0], value);
    }
    return value;
  };
  float const before = set_bias(nan);
  StepResult const result = step(*trainer);
  set_bias(before);
  EXPECT_TRUE(result.is_skipped);
  EXPECT_EQ(result.step, 2);
  EXPECT_EQ(all_values<float>(*trainer, StateKind::parameter), parameters);
  EXPECT_EQ(all_values<float>(*trainer, StateKind::adam_m), m);
  EXPECT_EQ(all_values<float>(*trainer, StateKind::adam_v), v);

  TrainProgress const progress = trainer->progress();
  EXPECT_EQ(progress.step, 2);
  EXPECT_EQ(progress.updates, 1);
  EXPECT_EQ(progress.skipped, 1);
  EXPECT_EQ(progress.skipped_in_row, 1);
  EXPECT_FALSE(step(*trainer).is_skipped) << "gradients of a bad step must not reach the next";
  EXPECT_EQ(trainer->progress().skipped_in_row, 0);
}

TEST_F(NonFiniteTest, too_many_bad_steps_in_a_row_stop_the_run) {
  config.fault.max_skips = 2;
  auto const trainer = make_trainer(config, comm::Group{});
  set_parameter(*trainer, "layers.0.norm1.bias", 0, nan);
  EXPECT_TRUE(step(*trainer).is_skipped);
  EXPECT_TRUE(step(*trainer).is_skipped);
  try {
    step(*trainer);
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_EQ(exit_code(error.kind()), 79);
    std::string const text = error.what();
    EXPECT_NE(text.find("layers.0.norm1.bias"), std::string::npos) << text;
    EXPECT_NE(text.find("fault.max_skips"), std::string::npos);
  }
}

TEST(MemoryTest, model_that_does_not_fit_is_refused_with_the_table) {
  TrainerConfig config = tiny_config(Family::llama, DType::fp32);
  config.model.hidden = 1 << 14;
  config.model.ffn = 1 << 16;
  config.model.n_layers = 100;
  try {
    static_cast<void>(make_trainer(config, comm::Group{}));
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::plan);
    std::string const text = error.what();
    EXPECT_NE(text.find("moments"), std::string::npos) << text;
    EXPECT_NE(text.find("memory.target"), std::string::npos) << text;
  }
}

TEST(MemoryTest, state_has_the_size_of_its_elements) {
  TrainerConfig config = tiny_config(Family::llama, DType::bf16);
  config.model.hidden = 128;
  config.model.ffn = 128;
  config.model.vocab = 128;  // nothing needs padding
  auto const parameters = static_cast<std::size_t>(parameter_count(config.model));
  MemoryTable const table = predict_memory(config);
  EXPECT_EQ(table.bytes_of("parameters"), 2 * parameters);
  EXPECT_EQ(table.bytes_of("gradients"), 4 * parameters);
  EXPECT_EQ(table.bytes_of("masters"), 4 * parameters);
  EXPECT_EQ(table.bytes_of("moments"), 8 * parameters);
}

TEST(MemoryTest, prediction_is_what_a_step_takes) {
  for (Family const family : {Family::gpt2, Family::llama}) {
    for (DType const dtype : {DType::fp32, DType::bf16, DType::fp64}) {
      for (Recompute const recompute : {Recompute::none, Recompute::full}) {
        for (double const dropout : {0.0, 0.1}) {
          TrainerConfig config = tiny_config(family, dtype);
          config.memory.recompute = recompute;
          config.model.dropout = dropout;
          config.data_bytes = 1000;
          Windows const windows{config.model, 2, 3};
          Batch const batch = windows.all();
          MemoryTable const table = predict_memory(config);
          auto const trainer = make_trainer(config, comm::Group{});
          trainer->train_step({&batch, 1}, windows.valid_tokens());
          trainer->loss_sum(batch);
          EXPECT_EQ(trainer->peak_bytes(),
                    table.total_bytes() - table.bytes_of("process") - table.bytes_of("data"));
          EXPECT_EQ(table.bytes_of("data"), 1000U);
        }
      }
    }
  }
}

TEST(MemoryTest, evaluation_takes_what_is_predicted) {
  TrainerConfig config = tiny_config(Family::llama, DType::bf16);
  config.purpose = Purpose::evaluate;
  Windows const windows{config.model, 2, 3};
  MemoryTable const table = predict_memory(config);
  auto const evaluator = make_trainer(config, comm::Group{});
  evaluator->loss_sum(windows.all());
  EXPECT_EQ(evaluator->peak_bytes(), table.total_bytes() - table.bytes_of("process"));
}

TEST(MemoryTest, recomputation_takes_less_for_activations) {
  TrainerConfig config = tiny_config(Family::gpt2, DType::fp32);
  config.model.n_layers = 12;
  std::size_t const all = predict_memory(config).bytes_of("activations");
  config.memory.recompute = Recompute::full;
  std::size_t const inputs = predict_memory(config).bytes_of("activations");
  EXPECT_LT(3 * inputs, all);
}

TEST(MemoryTest, host_figures_are_sane) {
  EXPECT_GT(available_memory_bytes(), std::size_t{1} << 20U);
  EXPECT_GT(resident_memory_bytes(), std::size_t{1} << 20U);
  EXPECT_GE(peak_resident_memory_bytes(), resident_memory_bytes());
}

}  // namespace
}  // namespace motley::model
