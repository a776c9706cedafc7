#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/train/trainer.hpp"
#include "tests/model/tiny_model.hpp"

namespace motley::model {
namespace {

using test::tiny_config;
using test::values_of;
using test::Windows;

/// Weights far from their small initial values, so that every part of the network bends.
void roughen(Trainer& trainer) {
  std::uint64_t key = 0;
  for (NamedTensor const& tensor : trainer.tensors(StateKind::parameter)) {
    Philox const random{++key};
    std::uint64_t element = 0;
    for (double& value : values_of<double>(tensor)) {
      double const noise = uniform_from(random(0, ++element).w[0]) - 0.5;
      value = value == 1.0 ? 1.0 + 0.6 * noise : value + 0.6 * noise;
    }
  }
  trainer.adopt_parameters();
}

/// Gradient checks of one model.
class Check {
 public:
  explicit Check(TrainerConfig const& config)
      : windows_{config.model, config.train.micro_batch_size, 11},
        trainer_{make_trainer(config, comm::Group{})} {
    roughen(*trainer_);
  }

  void run() {
    static_cast<void>(loss());
    std::vector<NamedTensor> const parameters = trainer_->tensors(StateKind::parameter);
    std::vector<std::vector<double>> gradients;
    for (NamedTensor const& tensor : trainer_->tensors(StateKind::gradient)) {
      auto const values = values_of<double>(tensor);
      gradients.emplace_back(values.begin(), values.end());
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) check(parameters[i], gradients[i]);
  }

 private:
  double loss() {
    Batch const batch = windows_.all();
    return trainer_->forward_backward({&batch, 1}, windows_.valid_tokens());
  }

  double loss_with(double& parameter, double value) {
    double const before = parameter;
    parameter = value;
    trainer_->adopt_parameters();
    double const result = loss();
    parameter = before;
    return result;
  }

  /// Five-point difference: error ~ h⁴ f⁗′ / 30 + ε f / h, some 1e-11 here.
  double derivative(double& parameter) {
    double const h = 2e-4;
    double const p = parameter;
    return (8.0 * (loss_with(parameter, p + h) - loss_with(parameter, p - h)) -
            (loss_with(parameter, p + 2 * h) - loss_with(parameter, p - 2 * h))) /
           (12.0 * h);
  }

  void check(NamedTensor const& parameter, std::vector<double> const& gradient) {
    // The bias of keys shifts all scores of a row alike: its gradient is exactly zero.
    double const largest =
        std::abs(*std::max_element(gradient.begin(), gradient.end(), [](double a, double b) {
          return std::abs(a) < std::abs(b);
        }));
    if (parameter.name.ends_with("k.bias")) {
      EXPECT_LT(largest, 1e-12) << parameter.name;
    } else {
      EXPECT_GT(largest, 1e-5) << parameter.name;
    }
    std::size_t const step = std::max<std::size_t>(1, gradient.size() / 4);
    for (std::size_t element = step / 2; element < gradient.size(); element += step) {
      double const expected = derivative(values_of<double>(parameter)[element]);
      EXPECT_NEAR(gradient[element], expected, 1e-9 + 1e-7 * std::abs(expected))
          << parameter.name << "[" << element << "]";
    }
  }

  Windows windows_;
  std::unique_ptr<Trainer> trainer_;
};

TEST(GradientTest, gpt2_equals_finite_differences) {
  Check{tiny_config(Family::gpt2, DType::fp64)}.run();
}

TEST(GradientTest, gpt2_with_a_head_of_its_own_equals_finite_differences) {
  TrainerConfig config = tiny_config(Family::gpt2, DType::fp64);
  config.model.tied = false;
  Check{config}.run();
}

TEST(GradientTest, llama_with_grouped_heads_equals_finite_differences) {
  Check{tiny_config(Family::llama, DType::fp64)}.run();
}

TEST(GradientTest, tied_llama_equals_finite_differences) {
  TrainerConfig config = tiny_config(Family::llama, DType::fp64);
  config.model.tied = true;
  Check{config}.run();
}

TEST(GradientTest, dropout_equals_finite_differences) {
  for (Family const family : {Family::gpt2, Family::llama}) {
    TrainerConfig config = tiny_config(family, DType::fp64);
    config.model.dropout = 0.3;
    Check{config}.run();
  }
}

TEST(GradientTest, recomputation_changes_no_bit) {
  for (Family const family : {Family::gpt2, Family::llama}) {
    for (double const dropout : {0.0, 0.2}) {
      TrainerConfig config = tiny_config(family, DType::fp32);
      config.model.n_layers = 3;
      config.model.dropout = dropout;
      Windows const windows{config.model, 2, 5};
      Batch const batch = windows.all();
      std::vector<std::vector<float>> gradients;
      for (Recompute const recompute : {Recompute::none, Recompute::full}) {
        config.memory.recompute = recompute;
        auto const trainer = make_trainer(config, comm::Group{});
        trainer->forward_backward({&batch, 1}, windows.valid_tokens());
        gradients.push_back(test::all_values<float>(*trainer, StateKind::gradient));
      }
      EXPECT_EQ(gradients[0], gradients[1]) << to_string(family) << " dropout " << dropout;
    }
  }
}

TEST(GradientTest, micro_batches_add_up_to_one_batch) {
  for (Family const family : {Family::gpt2, Family::llama}) {
    TrainerConfig config = tiny_config(family, DType::fp64);
    config.model.dropout = 0.1;
    Windows const windows{config.model, 2, 5};
    Batch const whole[] = {windows.all()};
    Batch const halves[] = {windows.rows(0, 1), windows.rows(1, 1)};
    auto const trainer = make_trainer(config, comm::Group{});
    double const loss = trainer->forward_backward(whole, windows.valid_tokens());
    auto const expected = test::all_values<double>(*trainer, StateKind::gradient);
    EXPECT_NEAR(trainer->forward_backward(halves, windows.valid_tokens()), loss, 1e-13);
    auto const found = test::all_values<double>(*trainer, StateKind::gradient);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-14 + 1e-12 * std::abs(expected[i]));
    }
  }
}

TEST(GradientTest, no_micro_batch_gives_zero) {
  TrainerConfig const config = tiny_config(Family::gpt2, DType::fp32);
  Windows const windows{config.model, 2, 5};
  Batch const batch = windows.all();
  auto const trainer = make_trainer(config, comm::Group{});
  trainer->forward_backward({&batch, 1}, windows.valid_tokens());
  EXPECT_EQ(trainer->forward_backward({}, 7), 0.0);
  for (float const value : test::all_values<float>(*trainer, StateKind::gradient)) {
    ASSERT_EQ(value, 0.0F);
  }
}

}  // namespace
}  // namespace motley::model
