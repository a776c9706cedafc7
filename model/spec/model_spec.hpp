#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/base/dtype.hpp"
#include "model/spec/problem.hpp"

namespace motley::model {

/// Kind of transformer.
enum class Family {
  gpt2,   ///< LayerNorm, learned positions, GELU (tanh form), biases
  llama,  ///< RMSNorm, RoPE, SwiGLU, grouped key/value heads, no biases
};

[[nodiscard]] std::string_view to_string(Family family) noexcept;
[[nodiscard]] std::optional<Family> parse_family(std::string_view name) noexcept;

/// What is trained: section `[model]` of a run, and its window length.
///
/// A zero marked "0: ..." is a value to be derived: `with_defaults` does it, once, before any use.
///
/// Source   Radford et al. 2019, "Language models are unsupervised multitask learners" (gpt2);
///          Touvron et al. 2023, arXiv 2302.13971 and 2307.09288 (llama)
struct ModelSpec {
  Family family = Family::gpt2;    ///< gpt2 | llama
  std::int64_t n_layers = 12;      ///< transformer layers, >= 1
  std::int64_t hidden = 768;       ///< model width D in elements, a multiple of heads
  std::int64_t heads = 12;         ///< query heads N, a multiple of kv_heads
  std::int64_t kv_heads = 0;       ///< key/value heads, 1 … heads (0: heads)
  std::int64_t ffn = 0;            ///< feed-forward width F (0: 4 D, llama 8/3 D up to 256s)
  std::int64_t vocab = 50257;      ///< token ids V, 2 … 2³¹-1
  std::int64_t seq_length = 1024;  ///< longest window in tokens, >= 1 (key: train.seq_length)
  bool tied = true;                ///< head shares the token embedding
  double dropout = 0.0;            ///< rate in [0, 1): embedding and both residual branches
  double norm_eps = 1e-5;          ///< added to the variance, > 0
  double rope_theta = 10000.0;     ///< base of the rotary frequencies (llama), > 1
  DType dtype = DType::bf16;       ///< of parameters and activations: fp32 | bf16 | fp64

  [[nodiscard]] std::int64_t head_width() const noexcept { return hidden / heads; }
  /// Query heads that share one key/value head: what tensor parallelism cuts.
  [[nodiscard]] std::int64_t group_heads() const noexcept { return heads / kv_heads; }
  bool operator==(ModelSpec const&) const = default;
};

/// The spec with every derived value filled in.
[[nodiscard]] ModelSpec with_defaults(ModelSpec spec) noexcept;

/// Every problem of a spec (after `with_defaults`), keyed "model.…" and "train.seq_length".
[[nodiscard]] Problems problems(ModelSpec const& spec);

}  // namespace motley::model
