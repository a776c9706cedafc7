#include "model/plan/stage_shard.hpp"

namespace motley::model {
namespace {

Interval scaled(Interval interval, std::int64_t factor) noexcept {
  return {interval.begin * factor, interval.end * factor};
}

}  // namespace

StageShard StageShard::whole(ModelSpec const& spec) noexcept {
  StageShard shard;
  shard.layers = {0, spec.n_layers};
  shard.kv_heads = {0, spec.kv_heads};
  shard.mlp_columns = {0, spec.ffn};
  shard.vocab_rows = {0, spec.vocab};
  return shard;
}

bool holds(ModelSpec const& spec, StageShard const& shard, LogicalTensor const& tensor) {
  switch (tensor.place) {
    case Place::embedding: {
      bool const is_head_too = spec.tied && tensor.split == Split::vocab_rows;
      return shard.has_embedding || (is_head_too && shard.has_head);
    }
    case Place::layer:
      return shard.layers.contains(tensor.layer);
    case Place::head:
      break;
  }
  return shard.has_head;
}

Interval local_rows(ModelSpec const& spec, StageShard const& shard, LogicalTensor const& tensor) {
  switch (tensor.split) {
    case Split::query_heads:
      return scaled(shard.kv_heads, spec.group_heads() * spec.head_width());
    case Split::kv_heads:
      return scaled(shard.kv_heads, spec.head_width());
    case Split::mlp_columns:
      return shard.mlp_columns;
    case Split::vocab_rows:
      return shard.vocab_rows;
    case Split::none:
      break;
  }
  return {0, tensor.shape[0]};
}

}  // namespace motley::model
