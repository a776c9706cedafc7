#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/spec/model_spec.hpp"

namespace motley::model {

/// A published size under a name for `model.preset`.
struct Preset {
  std::string_view name;
  ModelSpec spec;
};

/// All presets, GPT-2 sizes first.
///
/// Source   gpt2-*: Radford et al. 2019, table 2, with the parameter counts of the released files;
///          llama-1b: TinyLlama 1.1B, arXiv 2401.02385, table 1; llama3-8b: arXiv 2407.21783,
///          table 3; llama-110m: the 110M shape of karpathy/llama2.c
[[nodiscard]] std::span<Preset const> presets();

/// The spec of a preset; empty if there is none of that name.
[[nodiscard]] std::optional<ModelSpec> find_preset(std::string_view name);

}  // namespace motley::model
