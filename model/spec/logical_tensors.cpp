#include "model/spec/logical_tensors.hpp"

#include <cmath>
#include <utility>

namespace motley::model {
namespace {

/// Standard deviation of all normal weights.
///
/// Source   Radford et al. 2019, section 2.3, and the released code (initializer_range 0.02)
constexpr double weight_std = 0.02;

/// Lists tensors; GPT-2's biases are left out of other families.
class TensorList {
 public:
  explicit TensorList(ModelSpec const& spec) : spec_{spec} {}

  /// The tensors that follow are of this place; of a layer, their names get its prefix.
  void enter(Place place, std::int64_t layer = -1) {
    place_ = place;
    layer_ = layer;
  }
  LogicalTensor& matrix(std::string_view name, Shape shape, Split split) {
    LogicalTensor& tensor = add(name, shape);
    tensor.split = split;
    tensor.init = InitKind::normal;
    tensor.init_std = weight_std;
    tensor.gradient = split == Split::none ? GradientShare::partial : GradientShare::equal;
    return tensor;
  }
  /// A weight whose product is added to the residual stream.
  void residual_matrix(std::string_view name, std::int64_t rows, Split split) {
    // The stream sums 2 L branches; their last weights start smaller by the root of that.
    // Source   Radford et al. 2019, section 2.3
    double const branches = 2.0 * static_cast<double>(spec_.n_layers);
    matrix(name, {rows, spec_.hidden}, split).init_std = weight_std / std::sqrt(branches);
  }
  void split_bias(std::string_view name, std::int64_t size, Split split, bool joins = false) {
    if (spec_.family != Family::gpt2) return;
    LogicalTensor& tensor = add(name, {size});
    tensor.split = split;
    tensor.joins_previous = joins;
  }
  /// A bias behind the sum over the group: whole on every rank.
  void whole_bias(std::string_view name) {
    if (spec_.family != Family::gpt2) return;
    add(name, {spec_.hidden}).gradient = GradientShare::partial;
  }
  void norm(std::string const& name) {
    LogicalTensor& weight = add(name + ".weight", {spec_.hidden});
    weight.init = InitKind::ones;
    weight.gradient = GradientShare::partial;
    whole_bias(name + ".bias");
  }
  [[nodiscard]] std::vector<LogicalTensor> take() { return std::move(list_); }

 private:
  LogicalTensor& add(std::string_view name, Shape shape) {
    LogicalTensor tensor;
    tensor.name = place_ == Place::layer ? layer_tensor_name(layer_, name) : std::string{name};
    tensor.shape = shape;
    tensor.place = place_;
    tensor.layer = layer_;
    return list_.emplace_back(std::move(tensor));
  }

  ModelSpec const& spec_;
  Place place_ = Place::embedding;
  std::int64_t layer_ = -1;
  std::vector<LogicalTensor> list_;
};

void add_attention(ModelSpec const& spec, TensorList& to) {
  std::int64_t const q_width = spec.heads * spec.head_width();
  std::int64_t const kv_width = spec.kv_heads * spec.head_width();
  Shape const kv_shape{kv_width, spec.hidden};
  to.norm("norm1");
  to.matrix("attention.q.weight", {q_width, spec.hidden}, Split::query_heads);
  to.matrix("attention.k.weight", kv_shape, Split::kv_heads).joins_previous = true;
  to.matrix("attention.v.weight", kv_shape, Split::kv_heads).joins_previous = true;
  to.split_bias("attention.q.bias", q_width, Split::query_heads);
  to.split_bias("attention.k.bias", kv_width, Split::kv_heads, true);
  to.split_bias("attention.v.bias", kv_width, Split::kv_heads, true);
  to.residual_matrix("attention.output.weight", q_width, Split::query_heads);
  to.whole_bias("attention.output.bias");
}

void add_mlp(ModelSpec const& spec, TensorList& to) {
  bool const has_gate = spec.family == Family::llama;
  Shape const shape{spec.ffn, spec.hidden};
  to.norm("norm2");
  if (has_gate) to.matrix("mlp.gate.weight", shape, Split::mlp_columns);
  to.matrix("mlp.up.weight", shape, Split::mlp_columns).joins_previous = has_gate;
  to.split_bias("mlp.up.bias", spec.ffn, Split::mlp_columns);
  to.residual_matrix("mlp.down.weight", spec.ffn, Split::mlp_columns);
  to.whole_bias("mlp.down.bias");
}

}  // namespace

std::string layer_tensor_name(std::int64_t layer, std::string_view rest) {
  std::string name = "layers." + std::to_string(layer) + ".";
  return name.append(rest);
}

std::vector<LogicalTensor> logical_tensors(ModelSpec const& spec) {
  Shape const vocab_shape{spec.vocab, spec.hidden};
  TensorList list{spec};
  list.enter(Place::embedding);
  list.matrix("embedding.tokens.weight", vocab_shape, Split::vocab_rows);
  if (spec.family == Family::gpt2) {
    list.matrix("embedding.positions.weight", {spec.seq_length, spec.hidden}, Split::none);
  }
  for (std::int64_t layer = 0; layer < spec.n_layers; ++layer) {
    list.enter(Place::layer, layer);
    add_attention(spec, list);
    add_mlp(spec, list);
  }
  list.enter(Place::head);
  list.norm("final_norm");
  if (!spec.tied) list.matrix("head.weight", vocab_shape, Split::vocab_rows);
  return list.take();
}

std::int64_t parameter_count(ModelSpec const& spec) {
  std::int64_t count = 0;
  for (LogicalTensor const& tensor : logical_tensors(spec)) count += tensor.shape.count();
  return count;
}

}  // namespace motley::model
