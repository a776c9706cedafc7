#include "model/spec/logical_tensors.hpp"

#include <cmath>
#include <utility>

namespace motley::model {
namespace {

/// Standard deviation of all normal weights.
///
/// Source   Radford et al. 2019, section 2.3, and the released code (initializer_range 0.02)
constexpr double weight_std = 0.02;

class TensorList {
 public:
  explicit TensorList(ModelSpec const& spec) : spec_{spec} {}

  void split_matrix(std::string name, std::int64_t rows, std::int64_t columns, double std_dev) {
    list_.push_back({std::move(name),
                     {rows, columns},
                     true,
                     true,
                     InitKind::normal,
                     std_dev,
                     GradientShare::equal});
  }
  void whole_matrix(std::string name, std::int64_t rows, std::int64_t columns) {
    list_.push_back({std::move(name),
                     {rows, columns},
                     false,
                     true,
                     InitKind::normal,
                     weight_std,
                     GradientShare::partial});
  }
  void split_bias(std::string name, std::int64_t size) {
    if (!has_bias()) return;
    list_.push_back(
        {std::move(name), {size}, true, false, InitKind::zeros, 0.0, GradientShare::equal});
  }
  /// A bias behind the sum over the group: whole on every rank.
  void whole_bias(std::string name) {
    if (!has_bias()) return;
    list_.push_back({std::move(name),
                     {spec_.hidden},
                     false,
                     false,
                     InitKind::zeros,
                     0.0,
                     GradientShare::partial});
  }
  void norm(std::string const& name) {
    list_.push_back({name + ".weight",
                     {spec_.hidden},
                     false,
                     false,
                     InitKind::ones,
                     0.0,
                     GradientShare::partial});
    whole_bias(name + ".bias");
  }
  [[nodiscard]] std::vector<LogicalTensor> take() { return std::move(list_); }

 private:
  [[nodiscard]] bool has_bias() const { return spec_.family == Family::gpt2; }

  ModelSpec const& spec_;
  std::vector<LogicalTensor> list_;
};

void add_attention(ModelSpec const& spec, std::int64_t layer, double residual_std, TensorList& to) {
  auto const name = [&](std::string_view rest) { return layer_tensor_name(layer, rest); };
  std::int64_t const q_width = spec.heads * spec.head_width();
  std::int64_t const kv_width = spec.kv_heads * spec.head_width();
  to.norm(name("norm1"));
  to.split_matrix(name("attention.q.weight"), q_width, spec.hidden, weight_std);
  to.split_matrix(name("attention.k.weight"), kv_width, spec.hidden, weight_std);
  to.split_matrix(name("attention.v.weight"), kv_width, spec.hidden, weight_std);
  to.split_bias(name("attention.q.bias"), q_width);
  to.split_bias(name("attention.k.bias"), kv_width);
  to.split_bias(name("attention.v.bias"), kv_width);
  to.split_matrix(name("attention.output.weight"), q_width, spec.hidden, residual_std);
  to.whole_bias(name("attention.output.bias"));
}

void add_mlp(ModelSpec const& spec, std::int64_t layer, double residual_std, TensorList& to) {
  auto const name = [&](std::string_view rest) { return layer_tensor_name(layer, rest); };
  to.norm(name("norm2"));
  if (spec.family == Family::llama) {
    to.split_matrix(name("mlp.gate.weight"), spec.ffn, spec.hidden, weight_std);
  }
  to.split_matrix(name("mlp.up.weight"), spec.ffn, spec.hidden, weight_std);
  to.split_bias(name("mlp.up.bias"), spec.ffn);
  to.split_matrix(name("mlp.down.weight"), spec.ffn, spec.hidden, residual_std);
  to.whole_bias(name("mlp.down.bias"));
}

}  // namespace

std::string layer_tensor_name(std::int64_t layer, std::string_view rest) {
  std::string name = "layers." + std::to_string(layer) + ".";
  return name.append(rest);
}

std::vector<LogicalTensor> logical_tensors(ModelSpec const& spec) {
  // The residual stream sums 2 L branches; their last weights start smaller by the root of that.
  // Source   Radford et al. 2019, section 2.3
  double const residual_std = weight_std / std::sqrt(2.0 * static_cast<double>(spec.n_layers));
  TensorList list{spec};
  list.split_matrix("embedding.tokens.weight", spec.vocab, spec.hidden, weight_std);
  if (spec.family == Family::gpt2) {
    list.whole_matrix("embedding.positions.weight", spec.seq_length, spec.hidden);
  }
  for (std::int64_t layer = 0; layer < spec.n_layers; ++layer) {
    add_attention(spec, layer, residual_std, list);
    add_mlp(spec, layer, residual_std, list);
  }
  list.norm("final_norm");
  if (!spec.tied) list.split_matrix("head.weight", spec.vocab, spec.hidden, weight_std);
  return list.take();
}

std::int64_t parameter_count(ModelSpec const& spec) {
  std::int64_t count = 0;
  for (LogicalTensor const& tensor : logical_tensors(spec)) count += tensor.shape.count();
  return count;
}

}  // namespace motley::model
