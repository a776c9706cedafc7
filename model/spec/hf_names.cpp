#include "model/spec/hf_names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>

#include "kernels/base/dtype.hpp"
#include "kernels/base/error.hpp"
#include "model/spec/logical_tensors.hpp"

namespace motley::model {
namespace {

/// One row of the map: names without the prefix of their layer.
struct Rule {
  std::string_view name;
  std::array<std::string_view, 3> parts;
  bool is_transposed = false;
  int join_dim = 0;
};

constexpr Rule gpt2_embedding[] = {{"transformer.wte.weight", {"embedding.tokens.weight"}},
                                   {"transformer.wpe.weight", {"embedding.positions.weight"}}};
constexpr Rule gpt2_layer[] = {
    {"ln_1.weight", {"norm1.weight"}},
    {"ln_1.bias", {"norm1.bias"}},
    {"attn.c_attn.weight",
     {"attention.q.weight", "attention.k.weight", "attention.v.weight"},
     true,
     1},
    {"attn.c_attn.bias", {"attention.q.bias", "attention.k.bias", "attention.v.bias"}},
    {"attn.c_proj.weight", {"attention.output.weight"}},
    {"attn.c_proj.bias", {"attention.output.bias"}},
    {"ln_2.weight", {"norm2.weight"}},
    {"ln_2.bias", {"norm2.bias"}},
    {"mlp.c_fc.weight", {"mlp.up.weight"}, true},
    {"mlp.c_fc.bias", {"mlp.up.bias"}},
    {"mlp.c_proj.weight", {"mlp.down.weight"}},
    {"mlp.c_proj.bias", {"mlp.down.bias"}},
};
constexpr Rule gpt2_head[] = {{"transformer.ln_f.weight", {"final_norm.weight"}},
                              {"transformer.ln_f.bias", {"final_norm.bias"}}};

constexpr Rule llama_embedding[] = {{"model.embed_tokens.weight", {"embedding.tokens.weight"}}};
constexpr Rule llama_layer[] = {
    {"input_layernorm.weight", {"norm1.weight"}},
    {"self_attn.q_proj.weight", {"attention.q.weight"}},
    {"self_attn.k_proj.weight", {"attention.k.weight"}},
    {"self_attn.v_proj.weight", {"attention.v.weight"}},
    {"self_attn.o_proj.weight", {"attention.output.weight"}, true},
    {"post_attention_layernorm.weight", {"norm2.weight"}},
    {"mlp.gate_proj.weight", {"mlp.gate.weight"}},
    {"mlp.up_proj.weight", {"mlp.up.weight"}},
    {"mlp.down_proj.weight", {"mlp.down.weight"}, true},
};
constexpr Rule llama_head[] = {{"model.norm.weight", {"final_norm.weight"}}};

constexpr Rule untied_head[] = {{"lm_head.weight", {"head.weight"}}};

class HfList {
 public:
  explicit HfList(ModelSpec const& spec) {
    for (LogicalTensor const& tensor : logical_tensors(spec)) shapes_[tensor.name] = tensor.shape;
  }

  void add(std::span<Rule const> rules) {
    for (Rule const& rule : rules) add(rule, "", "");
  }
  void add_layer(std::span<Rule const> rules, std::string_view hf_prefix, std::int64_t layer) {
    std::string const number = std::to_string(layer) + ".";
    for (Rule const& rule : rules) {
      add(rule, std::string{hf_prefix} + number, layer_tensor_name(layer, ""));
    }
  }
  [[nodiscard]] std::vector<HfTensor> take() { return std::move(list_); }

 private:
  void add(Rule const& rule, std::string const& hf_prefix, std::string const& prefix) {
    HfTensor tensor;
    tensor.name = hf_prefix + std::string{rule.name};
    tensor.is_transposed = rule.is_transposed;
    tensor.join_dim = rule.join_dim;
    for (std::string_view const part : rule.parts) {
      if (part.empty()) break;
      tensor.parts.push_back(prefix + std::string{part});
      tensor.part_shapes.push_back(shapes_.at(tensor.parts.back()));
    }
    tensor.shape = joined_shape(tensor);
    list_.push_back(std::move(tensor));
  }

  static Shape joined_shape(HfTensor const& tensor) {
    Shape const first = tensor.part_shapes.front();
    std::int64_t rows = 0;  // of all parts together, along their own dim 0
    for (Shape const& shape : tensor.part_shapes) rows += shape[0];
    if (first.order() == 1) return {rows};
    return tensor.is_transposed ? Shape{first[1], rows} : Shape{rows, first[1]};
  }

  std::map<std::string, Shape> shapes_;
  std::vector<HfTensor> list_;
};

void expect_count(std::size_t found, Shape const& shape, std::string const& name) {
  MOTLEY_VALIDATE(bug,
                  static_cast<std::int64_t>(found) == shape.count(),
                  "tensor \"" << name << "\" was given " << found << " elements (its shape is "
                              << shape << "); this is a bug of motley, please report it");
}

/// visit(part, element of part, element of the whole) for every element.
template <class Visit>
void for_each_element(HfTensor const& tensor, Visit const& visit) {
  std::int64_t first_row = 0;  // of the part, along its own dim 0
  for (std::size_t part = 0; part < tensor.parts.size(); ++part) {
    Shape const shape = tensor.part_shapes[part];
    std::int64_t const columns = shape.row_count();
    std::int64_t const whole_columns = tensor.shape.row_count();
    for (std::int64_t row = 0; row < shape[0]; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        std::int64_t const whole = tensor.is_transposed ? column * whole_columns + first_row + row
                                                        : (first_row + row) * columns + column;
        visit(part,
              static_cast<std::size_t>(row * columns + column),
              static_cast<std::size_t>(whole));
      }
    }
    first_row += shape[0];
  }
}

}  // namespace

std::vector<HfTensor> hf_tensors(ModelSpec const& spec) {
  bool const is_gpt2 = spec.family == Family::gpt2;
  HfList list{spec};
  if (is_gpt2) {
    list.add(gpt2_embedding);
  } else {
    list.add(llama_embedding);
  }
  for (std::int64_t layer = 0; layer < spec.n_layers; ++layer) {
    if (is_gpt2) {
      list.add_layer(gpt2_layer, "transformer.h.", layer);
    } else {
      list.add_layer(llama_layer, "model.layers.", layer);
    }
  }
  if (is_gpt2) {
    list.add(gpt2_head);
  } else {
    list.add(llama_head);
  }
  if (!spec.tied) list.add(untied_head);
  return list.take();
}

template <class T>
void join_to_hf(HfTensor const& tensor,
                std::span<std::span<T const> const> parts,
                std::span<T> out) {
  MOTLEY_EXPECT(parts.size() == tensor.parts.size());
  expect_count(out.size(), tensor.shape, tensor.name);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    expect_count(parts[i].size(), tensor.part_shapes[i], tensor.parts[i]);
  }
  for_each_element(tensor, [&](std::size_t part, std::size_t element, std::size_t whole) {
    out[whole] = parts[part][element];
  });
}

template <class T>
void split_from_hf(HfTensor const& tensor,
                   std::span<T const> in,
                   std::span<std::span<T> const> parts) {
  MOTLEY_EXPECT(parts.size() == tensor.parts.size());
  expect_count(in.size(), tensor.shape, tensor.name);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    expect_count(parts[i].size(), tensor.part_shapes[i], tensor.parts[i]);
  }
  for_each_element(tensor, [&](std::size_t part, std::size_t element, std::size_t whole) {
    parts[part][element] = in[whole];
  });
}

template void join_to_hf(HfTensor const&,
                         std::span<std::span<float const> const>,
                         std::span<float>);
template void join_to_hf(HfTensor const&,
                         std::span<std::span<double const> const>,
                         std::span<double>);
template void join_to_hf(HfTensor const&,
                         std::span<std::span<BFloat16 const> const>,
                         std::span<BFloat16>);
template void split_from_hf(HfTensor const&,
                            std::span<float const>,
                            std::span<std::span<float> const>);
template void split_from_hf(HfTensor const&,
                            std::span<double const>,
                            std::span<std::span<double> const>);
template void split_from_hf(HfTensor const&,
                            std::span<BFloat16 const>,
                            std::span<std::span<BFloat16> const>);

}  // namespace motley::model
