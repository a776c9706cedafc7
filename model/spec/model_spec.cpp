#include "model/spec/model_spec.hpp"

#include <cmath>
#include <limits>

#include "model/detail/check.hpp"

namespace motley::model {
namespace {

using detail::Check;

void check_sizes(ModelSpec const& spec, Check& check) {
  constexpr std::int64_t largest_id = std::numeric_limits<std::int32_t>::max();
  check.require(spec.n_layers >= 1,
                "model.n_layers",
                spec.n_layers,
                " is below 1 (a model needs a layer); give the number of layers");
  check.require(spec.hidden >= 1,
                "model.hidden",
                spec.hidden,
                " is below 1 (it is the width of the model in elements); give a positive width");
  check.require(spec.ffn >= 1,
                "model.ffn",
                spec.ffn,
                " is below 1 (it is the feed-forward width in elements); give a positive width, or "
                "0 for the usual one");
  check.require(spec.vocab >= 2 && spec.vocab <= largest_id,
                "model.vocab",
                spec.vocab,
                " is outside 2 … ",
                largest_id,
                " (token ids are 32-bit and a model of one token learns nothing); give the "
                "vocabulary size of the tokenizer");
  check.require(spec.seq_length >= 1,
                "train.seq_length",
                spec.seq_length,
                " is below 1 (a window needs a token); give the window length in tokens");
}

void check_heads(ModelSpec const& spec, Check& check) {
  check.require(spec.heads >= 1,
                "model.heads",
                spec.heads,
                " is below 1 (attention needs a head); give the number of query heads");
  check.require(spec.kv_heads >= 1,
                "model.kv_heads",
                spec.kv_heads,
                " is below 1 (attention needs a key/value head); give 1 … heads, or 0 for heads");
  if (spec.heads < 1 || spec.kv_heads < 1 || spec.hidden < 1) return;
  check.require(spec.hidden % spec.heads == 0,
                "model.hidden",
                spec.hidden,
                " is no multiple of model.heads = ",
                spec.heads,
                " (each head gets an equal slice of the width); change one of the two");
  check.require(spec.heads % spec.kv_heads == 0,
                "model.kv_heads",
                spec.kv_heads,
                " does not divide model.heads = ",
                spec.heads,
                " (each key/value head serves as many query heads); give a divisor");
  if (spec.family == Family::gpt2) {
    check.require(spec.kv_heads == spec.heads,
                  "model.kv_heads",
                  spec.kv_heads,
                  " differs from model.heads = ",
                  spec.heads,
                  " (gpt2 has no grouped heads); leave it out, or use family llama");
  } else {
    check.require(spec.hidden % spec.heads != 0 || spec.head_width() % 2 == 0,
                  "model.heads",
                  spec.heads,
                  " makes heads of odd width ",
                  spec.head_width(),
                  " (rotary positions turn pairs of elements); change model.hidden or model.heads");
  }
}

void check_numbers(ModelSpec const& spec, Check& check) {
  check.require(spec.dropout >= 0.0 && spec.dropout < 1.0,
                "model.dropout",
                spec.dropout,
                " is outside [0, 1) (it is the share of elements set to zero); give a rate in it");
  check.require(spec.norm_eps > 0.0 && std::isfinite(spec.norm_eps),
                "model.norm_eps",
                spec.norm_eps,
                " is not positive (it keeps the norm of a zero row finite); give e.g. 1e-5");
  check.require(spec.rope_theta > 1.0 && std::isfinite(spec.rope_theta),
                "model.rope_theta",
                spec.rope_theta,
                " is not above 1 (it is the base of the rotary frequencies); give e.g. 10000");
  check.require(spec.dtype != DType::fp16,
                "model.dtype",
                to_string(spec.dtype),
                " cannot be trained yet (its loss scaling comes with GPUs); use bf16 or fp32");
}

std::int64_t default_ffn(ModelSpec const& spec) noexcept {
  if (spec.family == Family::gpt2) return 4 * spec.hidden;
  std::int64_t const unit = 256;
  return (spec.hidden * 8 / 3 + unit - 1) / unit * unit;
}

}  // namespace

std::string_view to_string(Family family) noexcept {
  return family == Family::gpt2 ? "gpt2" : "llama";
}

std::optional<Family> parse_family(std::string_view name) noexcept {
  if (name == "gpt2") return Family::gpt2;
  if (name == "llama") return Family::llama;
  return std::nullopt;
}

ModelSpec with_defaults(ModelSpec spec) noexcept {
  if (spec.kv_heads == 0) spec.kv_heads = spec.heads;
  if (spec.ffn == 0) spec.ffn = default_ffn(spec);
  return spec;
}

Problems problems(ModelSpec const& spec) {
  Check check;
  check_sizes(spec, check);
  check_heads(spec, check);
  check_numbers(spec, check);
  return check.take();
}

}  // namespace motley::model
