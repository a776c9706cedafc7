#include "model/spec/initial_weights.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "model/spec/presets.hpp"

namespace motley::model {
namespace {

LogicalTensor find(std::string_view name) {
  auto const list = logical_tensors(*find_preset("gpt2-124m"));
  return *std::find_if(
      list.begin(), list.end(), [&](LogicalTensor const& tensor) { return tensor.name == name; });
}

std::vector<double> rows_of_tensor(LogicalTensor const& tensor, Interval rows) {
  std::vector<double> values(static_cast<std::size_t>(rows.size() * tensor.shape.row_count()));
  fill_initial<double>(tensor, 7, rows, values);
  return values;
}

TEST(InitialWeightsTest, moments_are_those_of_the_normal_distribution) {
  LogicalTensor const tensor = find("layers.0.mlp.up.weight");
  std::vector<double> const values = rows_of_tensor(tensor, {0, 3072});
  double const n = static_cast<double>(values.size());
  double mean = 0.0;
  double square = 0.0;
  double fourth = 0.0;
  double neighbours = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double const z = values[i] / 0.02;
    mean += z / n;
    square += z * z / n;
    fourth += z * z * z * z / n;
    if (i > 0) neighbours += z * values[i - 1] / 0.02 / n;
  }
  // Five standard errors: of the mean 1/√n, of the variance √(2/n), of the fourth moment √(96/n).
  EXPECT_NEAR(mean, 0.0, 5.0 / std::sqrt(n));
  EXPECT_NEAR(square, 1.0, 5.0 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth, 3.0, 5.0 * std::sqrt(96.0 / n));
  EXPECT_NEAR(neighbours, 0.0, 5.0 / std::sqrt(n));
}

TEST(InitialWeightsTest, residual_weights_are_scaled_down) {
  EXPECT_DOUBLE_EQ(find("layers.3.mlp.down.weight").init_std, 0.02 / std::sqrt(24.0));
  EXPECT_DOUBLE_EQ(find("layers.3.attention.output.weight").init_std, 0.02 / std::sqrt(24.0));
  EXPECT_DOUBLE_EQ(find("layers.3.attention.q.weight").init_std, 0.02);
  EXPECT_DOUBLE_EQ(find("embedding.positions.weight").init_std, 0.02);
}

TEST(InitialWeightsTest, any_cut_gives_the_same_elements) {
  LogicalTensor tensor = find("layers.0.attention.q.weight");
  tensor.shape = {15, 7};  // rows do not start at multiples of a block of four
  std::vector<double> const whole = rows_of_tensor(tensor, {0, 15});
  std::vector<double> pieces;
  for (Interval const rows : {Interval{0, 1}, Interval{1, 6}, Interval{6, 15}}) {
    std::vector<double> const part = rows_of_tensor(tensor, rows);
    pieces.insert(pieces.end(), part.begin(), part.end());
  }
  EXPECT_EQ(pieces, whole);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(initial_value(tensor, 7, static_cast<std::int64_t>(i)), whole[i]);
  }
}

TEST(InitialWeightsTest, tensors_and_seeds_differ) {
  LogicalTensor const q = find("layers.0.attention.q.weight");
  LogicalTensor const k = find("layers.0.attention.k.weight");
  EXPECT_NE(initial_value(q, 7, 0), initial_value(k, 7, 0));
  EXPECT_NE(initial_value(q, 7, 0), initial_value(q, 8, 0));
  EXPECT_EQ(initial_value(find("final_norm.weight"), 7, 3), 1.0);
  EXPECT_EQ(initial_value(find("final_norm.bias"), 7, 3), 0.0);
}

}  // namespace
}  // namespace motley::model
