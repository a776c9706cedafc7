#include "model/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"
#include "model/spec/logical_tensors.hpp"
#include "model/train/learning_rate.hpp"
#include "tests/model/tiny_model.hpp"

namespace motley::model {
namespace {

using test::all_values;
using test::tiny_config;
using test::Windows;

double root_of_squares(std::vector<float> const& values) {
  double sum = 0.0;
  for (float const value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

TEST(TrainerTest, loss_of_initial_weights_is_that_of_a_uniform_guess) {
  for (DType const dtype : {DType::fp32, DType::bf16, DType::fp64}) {
    for (Family const family : {Family::gpt2, Family::llama}) {
      TrainerConfig const config = tiny_config(family, dtype);
      Windows const windows{config.model, 2, 3};
      auto const trainer = make_trainer(config, comm::Group{});
      auto const count = static_cast<double>(windows.valid_tokens());
      double const loss = trainer->loss_sum(windows.all()) / count;
      // Logits are near normal with σ = 0.02 √D: the mean loss is ln V + σ²/2 within 4 σ/√count.
      double const sigma = 0.02 * std::sqrt(24.0);
      EXPECT_NEAR(loss, std::log(37.0) + sigma * sigma / 2, 4 * sigma / std::sqrt(count))
          << to_string(dtype) << " " << to_string(family);
    }
  }
}

TEST(TrainerTest, small_batch_is_learned_by_heart) {
  for (DType const dtype : {DType::fp32, DType::bf16}) {
    for (Family const family : {Family::gpt2, Family::llama}) {
      TrainerConfig const config = tiny_config(family, dtype);
      Windows const windows{config.model, 2, 3};
      Batch const batch = windows.all();
      auto const trainer = make_trainer(config, comm::Group{});
      StepResult result;
      for (int step = 0; step < 150; ++step) {
        result = trainer->train_step({&batch, 1}, windows.valid_tokens());
      }
      EXPECT_LT(result.loss, 0.05) << to_string(dtype) << " " << to_string(family);
      EXPECT_EQ(trainer->progress().step, 150);
      EXPECT_EQ(trainer->progress().updates, 150);
      EXPECT_EQ(trainer->progress().tokens, 150 * windows.valid_tokens());
    }
  }
}

// One step against the update of AdamW's paper, from this program's own gradients.
TEST(TrainerTest, step_is_clipped_adamw_with_decay_on_matrices_only) {
  TrainerConfig config = tiny_config(Family::gpt2, DType::fp64);
  config.optimizer.weight_decay = 0.3;
  config.optimizer.clip_grad = 0.01;
  Windows const windows{config.model, 2, 3};
  Batch const batch = windows.all();
  auto const trainer = make_trainer(config, comm::Group{});
  auto const before = all_values<double>(*trainer, StateKind::parameter);
  StepResult const result = trainer->train_step({&batch, 1}, windows.valid_tokens());
  auto const gradient = all_values<double>(*trainer, StateKind::gradient);
  auto const after = all_values<double>(*trainer, StateKind::parameter);

  double square_sum = 0.0;
  for (double const g : gradient) square_sum += g * g;
  ASSERT_GT(std::sqrt(square_sum), 0.01);
  EXPECT_NEAR(result.grad_norm, std::sqrt(square_sum), 1e-12);
  std::size_t i = 0;
  for (NamedTensor const& tensor : trainer->tensors(StateKind::parameter)) {
    double const decay = tensor.shape.order() == 2 ? 0.3 : 0.0;
    for (std::int64_t element = 0; element < tensor.count(); ++element, ++i) {
      // torch.nn.utils.clip_grad_norm_: the limit over (norm + 1e-6).
      double const g = gradient[i] * 0.01 / (std::sqrt(square_sum) + 1e-6);
      // The first step: both corrected moments are those of one gradient.
      double const expected =
          before[i] * (1.0 - 0.01 * decay) - 0.01 * g / (std::abs(g) + config.optimizer.eps);
      ASSERT_NEAR(after[i], expected, 1e-12) << tensor.name << "[" << element << "]";
    }
  }
}

TEST(TrainerTest, gradients_below_the_limit_are_not_clipped) {
  TrainerConfig config = tiny_config(Family::llama, DType::fp32);
  Windows const windows{config.model, 2, 3};
  Batch const batch = windows.all();
  std::vector<std::vector<float>> moments;
  for (double const limit : {0.0, 1e6}) {
    config.optimizer.clip_grad = limit;
    auto const trainer = make_trainer(config, comm::Group{});
    trainer->train_step({&batch, 1}, windows.valid_tokens());
    moments.push_back(all_values<float>(*trainer, StateKind::adam_m));
  }
  EXPECT_EQ(moments[0], moments[1]);
  EXPECT_GT(root_of_squares(moments[0]), 0.0);
}

TEST(TrainerTest, learning_rate_follows_the_schedule) {
  TrainerConfig config = tiny_config(Family::gpt2, DType::fp32);
  config.optimizer.lr_decay_style = LrDecayStyle::linear;
  config.optimizer.lr_warmup_iters = 2;
  config.train.train_iters = 6;
  Windows const windows{config.model, 2, 3};
  Batch const batch = windows.all();
  auto const trainer = make_trainer(config, comm::Group{});
  for (std::int64_t step = 1; step <= 6; ++step) {
    StepResult const result = trainer->train_step({&batch, 1}, windows.valid_tokens());
    EXPECT_EQ(result.step, step);
    EXPECT_EQ(result.learning_rate, learning_rate(config.optimizer, 6, step));
  }
}

TEST(TrainerTest, same_seed_gives_the_same_bits_and_another_does_not) {
  TrainerConfig config = tiny_config(Family::llama, DType::bf16);
  config.model.dropout = 0.1;
  Windows const windows{config.model, 2, 3};
  Batch const batch = windows.all();
  std::vector<std::vector<float>> runs;
  for (std::uint64_t const seed : {1U, 1U, 2U}) {
    config.seed = seed;
    auto const trainer = make_trainer(config, comm::Group{});
    for (int step = 0; step < 4; ++step) trainer->train_step({&batch, 1}, windows.valid_tokens());
    runs.push_back(all_values<float>(*trainer, StateKind::master));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(TrainerTest, restored_state_continues_to_the_bit) {
  for (DType const dtype : {DType::fp32, DType::bf16}) {
    TrainerConfig config = tiny_config(Family::gpt2, dtype);
    config.model.dropout = 0.1;
    config.optimizer.lr_decay_style = LrDecayStyle::cosine;
    config.train.train_iters = 8;
    Windows const windows{config.model, 2, 3};
    Batch const batch = windows.all();
    auto const straight = make_trainer(config, comm::Group{});
    for (int step = 0; step < 4; ++step) straight->train_step({&batch, 1}, 14);
    auto const restored = make_trainer(config, comm::Group{});
    for (StateKind const kind :
         {StateKind::parameter, StateKind::master, StateKind::adam_m, StateKind::adam_v}) {
      auto const from = straight->tensors(kind);
      auto const to = restored->tensors(kind);
      ASSERT_EQ(from.size(), to.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        std::copy_n(static_cast<std::byte const*>(from[i].data),
                    from[i].bytes(),
                    static_cast<std::byte*>(to[i].data));
      }
    }
    restored->adopt_state(straight->progress());
    for (int step = 0; step < 4; ++step) {
      StepResult const expected = straight->train_step({&batch, 1}, 14);
      StepResult const found = restored->train_step({&batch, 1}, 14);
      EXPECT_EQ(found.loss, expected.loss);
      EXPECT_EQ(found.grad_norm, expected.grad_norm);
      EXPECT_EQ(found.learning_rate, expected.learning_rate);
    }
    EXPECT_EQ(restored->progress(), straight->progress());
  }
}

TEST(TrainerTest, validation_ignores_dropout_and_leaves_training_alone) {
  TrainerConfig config = tiny_config(Family::gpt2, DType::fp32);
  Windows const windows{config.model, 2, 3};
  Batch const batch = windows.all();
  double const plain = make_trainer(config, comm::Group{})->loss_sum(batch);
  config.model.dropout = 0.4;
  auto const trainer = make_trainer(config, comm::Group{});
  auto const other = make_trainer(config, comm::Group{});
  EXPECT_EQ(trainer->loss_sum(batch), plain);
  EXPECT_NE(trainer->train_step({&batch, 1}, windows.valid_tokens()).loss,
            plain / static_cast<double>(windows.valid_tokens()));
  other->train_step({&batch, 1}, windows.valid_tokens());
  trainer->loss_sum(batch);
  EXPECT_EQ(trainer->train_step({&batch, 1}, windows.valid_tokens()).loss,
            other->train_step({&batch, 1}, windows.valid_tokens()).loss);
}

TEST(TrainerTest, logits_give_the_loss) {
  TrainerConfig const config = tiny_config(Family::llama, DType::fp64);
  Windows const windows{config.model, 2, 3};
  auto const trainer = make_trainer(config, comm::Group{});
  std::vector<double> const logits = trainer->logits(windows.all(), LogitRows::all);
  ASSERT_EQ(logits.size(), 2U * 9U * 37U);
  double loss = 0.0;
  for (std::size_t row = 0; row < 18; ++row) {
    if (windows.targets[row] == Batch::ignored_target) continue;
    double sum = 0.0;
    for (std::size_t token = 0; token < 37; ++token) sum += std::exp(logits[row * 37 + token]);
    loss += std::log(sum) - logits[row * 37 + static_cast<std::size_t>(windows.targets[row])];
  }
  EXPECT_NEAR(trainer->loss_sum(windows.all()), loss, 1e-11);
  std::vector<double> const last = trainer->logits(windows.all(), LogitRows::last_of_window);
  ASSERT_EQ(last.size(), 2U * 37U);
  for (std::size_t token = 0; token < 37; ++token) {
    EXPECT_NEAR(last[token], logits[8 * 37 + token], 1e-13);
    EXPECT_NEAR(last[37 + token], logits[17 * 37 + token], 1e-13);
  }
}

TEST(TrainerTest, logits_of_a_growing_text_are_those_of_the_whole) {
  TrainerConfig config = tiny_config(Family::gpt2, DType::fp64);
  config.model.seq_length = 70;  // longer than a round number of rows
  Windows const windows{config.model, 1, 3};
  auto const trainer = make_trainer(config, comm::Group{});
  std::vector<double> const all = trainer->logits(windows.all(), LogitRows::all);
  for (std::size_t const tokens : {1U, 5U, 64U, 65U, 70U}) {
    Batch text = windows.all();
    text.tokens = static_cast<std::int64_t>(tokens);
    text.inputs = text.inputs.first(tokens);
    std::vector<double> const last = trainer->logits(text, LogitRows::last_of_window);
    ASSERT_EQ(last.size(), 37U);
    for (std::size_t token = 0; token < 37; ++token) {
      EXPECT_NEAR(last[token], all[(tokens - 1) * 37 + token], 1e-13);
    }
  }
}

TEST(TrainerTest, later_tokens_do_not_reach_earlier_logits) {
  TrainerConfig const config = tiny_config(Family::gpt2, DType::fp64);
  Windows windows{config.model, 1, 3};
  auto const trainer = make_trainer(config, comm::Group{});
  auto const before = trainer->logits(windows.all(), LogitRows::all);
  windows.inputs[6] = (windows.inputs[6] + 1) % 37;
  auto const after = trainer->logits(windows.all(), LogitRows::all);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 6 * 37, after.begin()));
  EXPECT_NE(before[6 * 37], after[6 * 37]);
}

TEST(TrainerTest, evaluation_needs_parameters_only) {
  TrainerConfig config = tiny_config(Family::gpt2, DType::bf16);
  Windows const windows{config.model, 2, 3};
  auto const trainer = make_trainer(config, comm::Group{});
  config.purpose = Purpose::evaluate;
  auto const evaluator = make_trainer(config, comm::Group{});
  EXPECT_EQ(evaluator->loss_sum(windows.all()), trainer->loss_sum(windows.all()));
  EXPECT_TRUE(evaluator->tensors(StateKind::adam_m).empty());
  EXPECT_TRUE(evaluator->tensors(StateKind::gradient).empty());
  EXPECT_EQ(evaluator->memory().bytes_of("moments"), 0U);
  Batch const batch = windows.all();
  EXPECT_THROW(evaluator->train_step({&batch, 1}, 1), Error);
}

TEST(TrainerTest, token_beyond_the_vocabulary_is_refused) {
  TrainerConfig const config = tiny_config(Family::gpt2, DType::fp32);
  Windows windows{config.model, 2, 3};
  windows.inputs[5] = 37;
  auto const trainer = make_trainer(config, comm::Group{});
  try {
    static_cast<void>(trainer->loss_sum(windows.all()));
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string{error.what()}.find("37"), std::string::npos);
  }
  windows.inputs[5] = 36;
  windows.targets[7] = -2;
  EXPECT_THROW(static_cast<void>(trainer->loss_sum(windows.all())), Error);
}

TEST(TrainerTest, bad_configuration_lists_every_problem) {
  TrainerConfig config = tiny_config(Family::gpt2, DType::fp32);
  config.model.heads = 5;
  config.optimizer.eps = 0.0;
  try {
    static_cast<void>(make_trainer(config, comm::Group{}));
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    std::string const text = error.what();
    EXPECT_NE(text.find("model.hidden"), std::string::npos);
    EXPECT_NE(text.find("optimizer.eps"), std::string::npos);
  }
}

TEST(TrainerTest, tensors_cover_the_model_in_order) {
  TrainerConfig const config = tiny_config(Family::llama, DType::bf16);
  auto const trainer = make_trainer(config, comm::Group{});
  auto const logical = logical_tensors(config.model);
  for (StateKind const kind : {StateKind::parameter,
                               StateKind::gradient,
                               StateKind::master,
                               StateKind::adam_m,
                               StateKind::adam_v}) {
    auto const tensors = trainer->tensors(kind);
    ASSERT_EQ(tensors.size(), logical.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(tensors[i].name, logical[i].name);
      EXPECT_EQ(tensors[i].count(), logical[i].shape.count());
      EXPECT_EQ(tensors[i].dtype, kind == StateKind::parameter ? DType::bf16 : DType::fp32);
    }
  }
}

}  // namespace
}  // namespace motley::model
