#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/shape.hpp"
#include "model/spec/model_spec.hpp"

namespace motley::model {

/// A tensor as Hugging Face's transformers store it, made of logical tensors.
///
/// The parts, each transposed if `is_transposed`, follow each other along `join_dim`:
///
/// gpt2 (Conv1D weights are [in, out]; files on the hub often leave the "transformer." out)
///   transformer.wte.weight               embedding.tokens.weight
///   transformer.wpe.weight               embedding.positions.weight
///   transformer.h.N.ln_1.*               layers.N.norm1.*
///   transformer.h.N.attn.c_attn.weight   q | k | v weights, transposed, joined along dim 1
///   transformer.h.N.attn.c_attn.bias     q | k | v biases, joined
///   transformer.h.N.attn.c_proj.*        layers.N.attention.output.*
///   transformer.h.N.ln_2.*               layers.N.norm2.*
///   transformer.h.N.mlp.c_fc.weight      layers.N.mlp.up.weight, transposed
///   transformer.h.N.mlp.c_fc.bias        layers.N.mlp.up.bias
///   transformer.h.N.mlp.c_proj.*         layers.N.mlp.down.*
///   transformer.ln_f.*                   final_norm.*
///
/// llama (Linear weights are [out, in])
///   model.embed_tokens.weight                      embedding.tokens.weight
///   model.layers.N.input_layernorm.weight          layers.N.norm1.weight
///   model.layers.N.self_attn.{q,k,v}_proj.weight   layers.N.attention.{q,k,v}.weight
///   model.layers.N.self_attn.o_proj.weight         layers.N.attention.output.weight, transposed
///   model.layers.N.post_attention_layernorm.weight layers.N.norm2.weight
///   model.layers.N.mlp.{gate,up}_proj.weight       layers.N.mlp.{gate,up}.weight
///   model.layers.N.mlp.down_proj.weight            layers.N.mlp.down.weight, transposed
///   model.norm.weight                              final_norm.weight
///
/// both, untied only: lm_head.weight                head.weight
///
/// Source   transformers, models/gpt2/modeling_gpt2.py and models/llama/modeling_llama.py
struct HfTensor {
  std::string name;
  Shape shape;
  std::vector<std::string> parts;  ///< names of logical tensors
  std::vector<Shape> part_shapes;  ///< as logical tensors
  bool is_transposed = false;
  int join_dim = 0;
};

/// All tensors of a model under Hugging Face's names; each logical tensor is in exactly one.
[[nodiscard]] std::vector<HfTensor> hf_tensors(ModelSpec const& spec);

/// Copies whole logical tensors into Hugging Face's layout.
///
/// Shapes   parts[i] has part_shapes[i].count() elements, out shape.count()
/// Throws   Error{bug} if counts disagree
template <class T>
void join_to_hf(HfTensor const& tensor,
                std::span<std::span<T const> const> parts,
                std::span<T> out);

/// The reverse of join_to_hf.
template <class T>
void split_from_hf(HfTensor const& tensor,
                   std::span<T const> in,
                   std::span<std::span<T> const> parts);

}  // namespace motley::model
