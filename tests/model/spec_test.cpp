#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "model/spec/logical_tensors.hpp"
#include "model/spec/model_spec.hpp"
#include "model/spec/presets.hpp"

namespace motley::model {
namespace {

ModelSpec preset(std::string_view name) {
  auto const spec = find_preset(name);
  EXPECT_TRUE(spec.has_value()) << name;
  return spec.value_or(ModelSpec{});
}

bool has_problem(Problems const& found, std::string_view key) {
  return std::any_of(
      found.begin(), found.end(), [&](Problem const& problem) { return problem.key == key; });
}

// Counts of the released models (Hugging Face model.num_parameters(), tied weights once).
TEST(PresetTest, parameter_counts_equal_the_published_ones) {
  EXPECT_EQ(parameter_count(preset("gpt2-124m")), 124'439'808);
  EXPECT_EQ(parameter_count(preset("gpt2-355m")), 354'823'168);
  EXPECT_EQ(parameter_count(preset("gpt2-774m")), 774'030'080);
  EXPECT_EQ(parameter_count(preset("gpt2-1558m")), 1'557'611'200);
  EXPECT_EQ(parameter_count(preset("llama-1b")), 1'100'048'384);
  EXPECT_EQ(parameter_count(preset("llama3-8b")), 8'030'261'248);
}

TEST(PresetTest, every_preset_is_a_valid_spec) {
  for (Preset const& each : presets()) {
    EXPECT_TRUE(problems(each.spec).empty()) << each.name;
    EXPECT_EQ(each.spec, with_defaults(each.spec)) << each.name;
  }
  EXPECT_FALSE(find_preset("gpt2-125m").has_value());
}

TEST(ModelSpecTest, defaults_follow_the_family) {
  ModelSpec spec;
  spec.hidden = 96;
  spec.heads = 6;
  EXPECT_EQ(with_defaults(spec).ffn, 384);
  EXPECT_EQ(with_defaults(spec).kv_heads, 6);
  spec.family = Family::llama;
  spec.hidden = 4096;  // LLaMA 7B: 11008
  EXPECT_EQ(with_defaults(spec).ffn, 11008);
}

TEST(ModelSpecTest, all_problems_are_listed_at_once) {
  ModelSpec spec;
  spec.n_layers = 0;
  spec.hidden = 100;
  spec.heads = 12;
  spec.kv_heads = 5;
  spec.ffn = -1;
  spec.vocab = 1;
  spec.seq_length = 0;
  spec.dropout = 1.0;
  spec.norm_eps = 0.0;
  spec.rope_theta = 0.5;
  spec.dtype = DType::fp16;
  Problems const found = problems(spec);
  for (char const* key : {"model.n_layers",
                          "model.hidden",
                          "model.kv_heads",
                          "model.ffn",
                          "model.vocab",
                          "train.seq_length",
                          "model.dropout",
                          "model.norm_eps",
                          "model.rope_theta",
                          "model.dtype"}) {
    EXPECT_TRUE(has_problem(found, key)) << key;
  }
}

TEST(ModelSpecTest, rotary_heads_must_be_even) {
  ModelSpec spec;
  spec.family = Family::llama;
  spec.hidden = 36;
  spec.heads = 12;
  EXPECT_TRUE(has_problem(problems(with_defaults(spec)), "model.heads"));
}

TEST(LogicalTensorsTest, gpt2_has_the_documented_names_and_shapes) {
  ModelSpec spec = preset("gpt2-124m");
  spec.n_layers = 1;
  std::map<std::string, Shape> shapes;
  for (LogicalTensor const& tensor : logical_tensors(spec)) shapes[tensor.name] = tensor.shape;
  std::map<std::string, Shape> const expected{
      {"embedding.tokens.weight", {50257, 768}},
      {"embedding.positions.weight", {1024, 768}},
      {"layers.0.norm1.weight", {768}},
      {"layers.0.norm1.bias", {768}},
      {"layers.0.attention.q.weight", {768, 768}},
      {"layers.0.attention.k.weight", {768, 768}},
      {"layers.0.attention.v.weight", {768, 768}},
      {"layers.0.attention.q.bias", {768}},
      {"layers.0.attention.k.bias", {768}},
      {"layers.0.attention.v.bias", {768}},
      {"layers.0.attention.output.weight", {768, 768}},
      {"layers.0.attention.output.bias", {768}},
      {"layers.0.norm2.weight", {768}},
      {"layers.0.norm2.bias", {768}},
      {"layers.0.mlp.up.weight", {3072, 768}},
      {"layers.0.mlp.up.bias", {3072}},
      {"layers.0.mlp.down.weight", {3072, 768}},
      {"layers.0.mlp.down.bias", {768}},
      {"final_norm.weight", {768}},
      {"final_norm.bias", {768}},
  };
  EXPECT_EQ(shapes, expected);
}

TEST(LogicalTensorsTest, llama_has_grouped_heads_no_biases_and_its_own_head) {
  ModelSpec spec = preset("llama3-8b");
  spec.n_layers = 1;
  std::map<std::string, Shape> shapes;
  for (LogicalTensor const& tensor : logical_tensors(spec)) shapes[tensor.name] = tensor.shape;
  std::map<std::string, Shape> const expected{
      {"embedding.tokens.weight", {128256, 4096}},
      {"layers.0.norm1.weight", {4096}},
      {"layers.0.attention.q.weight", {4096, 4096}},
      {"layers.0.attention.k.weight", {1024, 4096}},
      {"layers.0.attention.v.weight", {1024, 4096}},
      {"layers.0.attention.output.weight", {4096, 4096}},
      {"layers.0.norm2.weight", {4096}},
      {"layers.0.mlp.gate.weight", {14336, 4096}},
      {"layers.0.mlp.up.weight", {14336, 4096}},
      {"layers.0.mlp.down.weight", {14336, 4096}},
      {"final_norm.weight", {4096}},
      {"head.weight", {128256, 4096}},
  };
  EXPECT_EQ(shapes, expected);
}

TEST(LogicalTensorsTest, only_matrices_decay) {
  for (LogicalTensor const& tensor : logical_tensors(preset("gpt2-124m"))) {
    EXPECT_EQ(tensor.decays(), tensor.shape.order() == 2) << tensor.name;
  }
}

}  // namespace
}  // namespace motley::model
