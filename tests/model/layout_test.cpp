#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/base/error.hpp"
#include "model/plan/cost.hpp"
#include "model/plan/stage_shard.hpp"
#include "model/spec/presets.hpp"
#include "model/train/state_layout.hpp"

namespace motley::model {
namespace {

ModelSpec small_llama() {
  ModelSpec spec;
  spec.family = Family::llama;
  spec.n_layers = 3;
  spec.hidden = 24;
  spec.heads = 6;
  spec.kv_heads = 3;
  spec.ffn = 40;
  spec.vocab = 130;
  spec.tied = false;
  return spec;
}

TEST(StateLayoutTest, ranges_do_not_overlap_and_matrices_come_first) {
  ModelSpec const spec = *find_preset("gpt2-124m");
  StateLayout const layout{spec, StageShard::whole(spec)};
  std::vector<LocalTensor> sorted = layout.tensors();
  std::sort(sorted.begin(), sorted.end(), [](LocalTensor const& a, LocalTensor const& b) {
    return a.offset < b.offset;
  });
  std::int64_t end = 0;
  for (LocalTensor const& local : sorted) {
    EXPECT_GE(local.offset, end) << local.tensor.name;
    EXPECT_EQ(local.tensor.is_matrix(), local.offset < layout.matrix_count());
    end = local.offset + local.padded_count();
  }
  EXPECT_LE(end, layout.count());
  // The vocabulary is padded from 50257 to 50304 rows; nothing else of GPT-2 needs a gap.
  EXPECT_EQ(layout.count(), 124'439'808 + 47 * 768);
}

TEST(StateLayoutTest, tensors_of_one_operator_are_adjacent) {
  ModelSpec const spec = small_llama();
  StateLayout const layout{spec, StageShard::whole(spec)};
  auto const end_of = [&](char const* name) {
    LocalTensor const& local = layout.find(name);
    return local.offset + local.count();
  };
  EXPECT_EQ(layout.find("layers.1.attention.k.weight").offset,
            end_of("layers.1.attention.q.weight"));
  EXPECT_EQ(layout.find("layers.1.attention.v.weight").offset,
            end_of("layers.1.attention.k.weight"));
  EXPECT_EQ(layout.find("layers.1.mlp.up.weight").offset, end_of("layers.1.mlp.gate.weight"));
  EXPECT_EQ(layout.find("layers.1.mlp.gate.weight").offset % StateLayout::alignment, 0);
  EXPECT_EQ(layout.find("head.weight").padded_rows, 192);
  EXPECT_FALSE(layout.contains("layers.3.norm1.weight"));
  EXPECT_THROW(static_cast<void>(layout.find("layers.3.norm1.weight")), Error);
}

TEST(StageShardTest, shards_of_a_stage_cover_every_tensor_once) {
  ModelSpec const spec = small_llama();
  StageShard first = StageShard::whole(spec);
  StageShard second = first;
  first.kv_heads = {0, 2};
  second.kv_heads = {2, 3};
  first.mlp_columns = {0, 17};
  second.mlp_columns = {17, 40};
  first.vocab_rows = {0, 64};
  second.vocab_rows = {64, 130};
  for (LogicalTensor const& tensor : logical_tensors(spec)) {
    Interval const a = local_rows(spec, first, tensor);
    Interval const b = local_rows(spec, second, tensor);
    if (tensor.is_split()) {
      EXPECT_EQ(a.begin, 0) << tensor.name;
      EXPECT_EQ(a.end, b.begin) << tensor.name;
      EXPECT_EQ(b.end, tensor.shape[0]) << tensor.name;
    } else {
      EXPECT_EQ(a, (Interval{0, tensor.shape[0]})) << tensor.name;
      EXPECT_EQ(b, a) << tensor.name;
    }
  }
  EXPECT_EQ(StateLayout(spec, first).find("layers.0.attention.q.weight").rows, (Interval{0, 16}));
}

TEST(StageShardTest, tied_embedding_is_with_first_and_last_stage) {
  ModelSpec const spec = *find_preset("gpt2-124m");
  StageShard last = StageShard::whole(spec);
  last.layers = {9, 12};
  last.has_embedding = false;
  StateLayout const layout{spec, last};
  EXPECT_TRUE(layout.contains("embedding.tokens.weight"));
  EXPECT_FALSE(layout.contains("embedding.positions.weight"));
  EXPECT_FALSE(layout.contains("layers.8.norm1.weight"));
  EXPECT_TRUE(layout.contains("layers.9.norm1.weight"));
  EXPECT_TRUE(layout.contains("final_norm.bias"));
}

TEST(CostTest, flop_follow_the_formula) {
  ModelSpec const gpt2 = *find_preset("gpt2-124m");
  double const n = 124'439'808 - 1024.0 * 768.0;
  EXPECT_DOUBLE_EQ(step_flop(gpt2, 4, 64), (6 * n + 12.0 * 12 * 768 * 64) * 4 * 64);
  ModelSpec const llama = *find_preset("llama-1b");
  EXPECT_EQ(multiplied_parameter_count(llama), 1'100'048'384 - 32000 * 2048);
}

}  // namespace
}  // namespace motley::model
