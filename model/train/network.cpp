#include "model/train/network.hpp"

#include <string>
#include <string_view>

#include "model/spec/logical_tensors.hpp"

namespace motley::model {
namespace {

template <class T>
AttentionParameters<T> attention_parameters(ModelState<T> const& state, std::int64_t layer) {
  auto const name = [&](std::string_view rest) { return layer_tensor_name(layer, rest); };
  AttentionParameters<T> parameters;
  parameters.norm_weight = state.vector(name("norm1.weight"));
  parameters.norm_bias = state.vector(name("norm1.bias"));
  parameters.qkv = state.matrix(name("attention.q.weight"), name("attention.v.weight"));
  parameters.qkv_bias = state.vector(name("attention.q.bias"), name("attention.v.bias"));
  parameters.output = state.matrix(name("attention.output.weight"));
  parameters.output_bias = state.vector(name("attention.output.bias"));
  return parameters;
}

template <class T>
MlpParameters<T> mlp_parameters(ModelState<T> const& state, Family family, std::int64_t layer) {
  auto const name = [&](std::string_view rest) { return layer_tensor_name(layer, rest); };
  bool const has_gate = family == Family::llama;
  MlpParameters<T> parameters;
  parameters.norm_weight = state.vector(name("norm2.weight"));
  parameters.norm_bias = state.vector(name("norm2.bias"));
  parameters.up =
      state.matrix(name(has_gate ? "mlp.gate.weight" : "mlp.up.weight"), name("mlp.up.weight"));
  parameters.up_bias = state.vector(name("mlp.up.bias"));
  parameters.down = state.matrix(name("mlp.down.weight"));
  parameters.down_bias = state.vector(name("mlp.down.bias"));
  return parameters;
}

template <class T>
EmbeddingParameters<T> embedding_parameters(ModelState<T> const& state, Family family) {
  EmbeddingParameters<T> parameters;
  parameters.tokens = state.matrix("embedding.tokens.weight");
  if (family == Family::gpt2) parameters.positions = state.matrix("embedding.positions.weight");
  return parameters;
}

template <class T>
HeadParameters<T> head_parameters(ModelState<T> const& state, bool is_tied) {
  HeadParameters<T> parameters;
  parameters.norm_weight = state.vector("final_norm.weight");
  parameters.norm_bias = state.vector("final_norm.bias");
  parameters.weight = state.matrix(is_tied ? "embedding.tokens.weight" : "head.weight");
  return parameters;
}

template <class T>
std::vector<TransformerLayer<T>> make_layers(LayerContext const& context,
                                             ModelSpec const& spec,
                                             StageShard const& shard,
                                             ModelState<T> const& state) {
  kernels::RopeTable<Accumulator<T>> rope;
  if (spec.family == Family::llama) {
    rope = kernels::make_rope_table<Accumulator<T>>(
        Exec{}, context.arena, {spec.rope_theta, spec.head_width(), spec.seq_length});
  }
  std::vector<TransformerLayer<T>> layers;
  layers.reserve(static_cast<std::size_t>(shard.layers.size()));
  for (std::int64_t layer = shard.layers.begin; layer < shard.layers.end; ++layer) {
    layers.emplace_back(context,
                        spec,
                        LayerShape::of(spec, shard),
                        layer,
                        LayerParameters<T>{attention_parameters(state, layer),
                                           mlp_parameters(state, spec.family, layer)},
                        rope);
  }
  return layers;
}

}  // namespace

template <class T>
Network<T>::Network(LayerContext const& context,
                    ModelSpec const& spec,
                    StageShard const& shard,
                    ModelState<T> const& state)
    : family{spec.family},
      shape{LayerShape::of(spec, shard)},
      embedding{context.group, embedding_parameters(state, spec.family), shard.vocab_rows.begin},
      layers{make_layers(context, spec, shard, state)},
      head{context, spec, head_parameters(state, spec.tied)} {}

template <class T>
void Network<T>::pack(Exec const& exec) {
  for (TransformerLayer<T>& layer : layers) layer.pack(exec);
  head.pack(exec);
}

template struct Network<float>;
template struct Network<BFloat16>;
template struct Network<double>;

}  // namespace motley::model
