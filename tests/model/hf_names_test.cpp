#include "model/spec/hf_names.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"
#include "model/spec/logical_tensors.hpp"

namespace motley::model {
namespace {

ModelSpec tiny(Family family) {
  ModelSpec spec;
  spec.family = family;
  spec.n_layers = 2;
  spec.hidden = 4;
  spec.heads = 2;
  spec.kv_heads = family == Family::llama ? 1 : 2;
  spec.ffn = 6;
  spec.vocab = 5;
  spec.seq_length = 3;
  spec.tied = family == Family::gpt2;
  return spec;
}

HfTensor find(std::vector<HfTensor> const& list, std::string const& name) {
  auto const found = std::find_if(
      list.begin(), list.end(), [&](HfTensor const& tensor) { return tensor.name == name; });
  EXPECT_NE(found, list.end()) << name;
  return found == list.end() ? HfTensor{} : *found;
}

TEST(HfNamesTest, every_logical_tensor_is_in_exactly_one) {
  for (Family const family : {Family::gpt2, Family::llama}) {
    std::multiset<std::string> expected;
    for (LogicalTensor const& tensor : logical_tensors(tiny(family))) expected.insert(tensor.name);
    std::multiset<std::string> found;
    for (HfTensor const& tensor : hf_tensors(tiny(family))) {
      found.insert(tensor.parts.begin(), tensor.parts.end());
    }
    EXPECT_EQ(found, expected) << to_string(family);
  }
}

// Names and shapes as transformers' GPT2LMHeadModel and LlamaForCausalLM print them.
TEST(HfNamesTest, shapes_are_those_of_transformers) {
  auto const gpt2 = hf_tensors(tiny(Family::gpt2));
  EXPECT_EQ(find(gpt2, "transformer.h.1.attn.c_attn.weight").shape, (Shape{4, 12}));
  EXPECT_EQ(find(gpt2, "transformer.h.1.attn.c_attn.bias").shape, (Shape{12}));
  EXPECT_EQ(find(gpt2, "transformer.h.0.attn.c_proj.weight").shape, (Shape{4, 4}));
  EXPECT_EQ(find(gpt2, "transformer.h.0.mlp.c_fc.weight").shape, (Shape{4, 6}));
  EXPECT_EQ(find(gpt2, "transformer.h.0.mlp.c_proj.weight").shape, (Shape{6, 4}));
  auto const llama = hf_tensors(tiny(Family::llama));
  EXPECT_EQ(find(llama, "model.layers.1.self_attn.q_proj.weight").shape, (Shape{4, 4}));
  EXPECT_EQ(find(llama, "model.layers.1.self_attn.k_proj.weight").shape, (Shape{2, 4}));
  EXPECT_EQ(find(llama, "model.layers.1.mlp.down_proj.weight").shape, (Shape{4, 6}));
  EXPECT_EQ(find(llama, "lm_head.weight").shape, (Shape{5, 4}));
}

TEST(HfNamesTest, fused_weight_is_the_transposed_parts_side_by_side) {
  HfTensor const fused = find(hf_tensors(tiny(Family::gpt2)), "transformer.h.0.attn.c_attn.weight");
  std::vector<std::vector<float>> parts(3, std::vector<float>(16));
  for (std::size_t part = 0; part < 3; ++part) {
    std::iota(parts[part].begin(), parts[part].end(), 100.0F * static_cast<float>(part));
  }
  std::vector<std::span<float const>> const views(parts.begin(), parts.end());
  std::vector<float> joined(48);
  join_to_hf<float>(fused, views, joined);
  // Entry (in, part · 4 + out) is entry (out, in) of the part.
  for (std::size_t in = 0; in < 4; ++in) {
    for (std::size_t out = 0; out < 12; ++out) {
      float const expected =
          100.0F * static_cast<float>(out / 4) + static_cast<float>((out % 4) * 4 + in);
      EXPECT_EQ(joined[in * 12 + out], expected);
    }
  }
}

TEST(HfNamesTest, splitting_undoes_joining) {
  for (Family const family : {Family::gpt2, Family::llama}) {
    for (HfTensor const& tensor : hf_tensors(tiny(family))) {
      std::vector<double> whole(static_cast<std::size_t>(tensor.shape.count()));
      std::iota(whole.begin(), whole.end(), 1.0);
      std::vector<std::vector<double>> parts;
      for (Shape const& shape : tensor.part_shapes) {
        parts.emplace_back(static_cast<std::size_t>(shape.count()));
      }
      std::vector<std::span<double>> const out(parts.begin(), parts.end());
      split_from_hf<double>(tensor, whole, out);
      std::vector<std::span<double const>> const in(parts.begin(), parts.end());
      std::vector<double> again(whole.size());
      join_to_hf<double>(tensor, in, again);
      EXPECT_EQ(again, whole) << tensor.name;
    }
  }
}

TEST(HfNamesTest, wrong_sizes_are_refused) {
  HfTensor const bias = find(hf_tensors(tiny(Family::gpt2)), "transformer.ln_f.bias");
  std::vector<float> const part(4);
  std::vector<float> out(3);
  std::vector<std::span<float const>> const parts{part};
  EXPECT_THROW(join_to_hf<float>(bias, parts, out), Error);
}

}  // namespace
}  // namespace motley::model
