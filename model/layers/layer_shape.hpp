#pragma once

#include <cstdint>

#include "kernels/attention.hpp"
#include "model/plan/stage_shard.hpp"
#include "model/spec/model_spec.hpp"

// Shapes: D model width, H head width, N query heads, G key/value heads, F feed-forward width, all
// of one rank; B windows, T tokens, R = B T rows.

namespace motley::model {

/// Sizes of one rank's part of a transformer layer.
struct LayerShape {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t ffn = 0;

  [[nodiscard]] static LayerShape of(ModelSpec const& spec, StageShard const& shard) noexcept {
    std::int64_t const kv_heads = shard.kv_heads.size();
    return {spec.hidden,
            kv_heads * spec.group_heads(),
            kv_heads,
            spec.head_width(),
            shard.mlp_columns.size()};
  }
  [[nodiscard]] std::int64_t attention_width() const noexcept { return heads * head_width; }
  [[nodiscard]] std::int64_t qkv_width() const noexcept {
    return (heads + 2 * kv_heads) * head_width;
  }
  [[nodiscard]] kernels::AttentionShape attention(std::int64_t batch,
                                                  std::int64_t tokens) const noexcept {
    return {batch, tokens, heads, kv_heads, head_width};
  }
};

}  // namespace motley::model
