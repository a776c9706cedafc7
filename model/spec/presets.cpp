#include "model/spec/presets.hpp"

#include <array>

namespace motley::model {
namespace {

constexpr ModelSpec gpt2(std::int64_t n_layers, std::int64_t hidden, std::int64_t heads) {
  ModelSpec spec;
  spec.n_layers = n_layers;
  spec.hidden = hidden;
  spec.heads = heads;
  spec.kv_heads = heads;
  spec.ffn = 4 * hidden;
  return spec;
}

constexpr ModelSpec llama_110m() {
  ModelSpec spec;
  spec.family = Family::llama;
  spec.kv_heads = 12;
  spec.ffn = 2048;
  spec.vocab = 32000;
  return spec;
}

constexpr ModelSpec llama_1b() {
  ModelSpec spec;
  spec.family = Family::llama;
  spec.n_layers = 22;
  spec.hidden = 2048;
  spec.heads = 32;
  spec.kv_heads = 4;
  spec.ffn = 5632;
  spec.vocab = 32000;
  spec.seq_length = 2048;
  spec.tied = false;
  return spec;
}

constexpr ModelSpec llama3_8b() {
  ModelSpec spec;
  spec.family = Family::llama;
  spec.n_layers = 32;
  spec.hidden = 4096;
  spec.heads = 32;
  spec.kv_heads = 8;
  spec.ffn = 14336;
  spec.vocab = 128256;
  spec.seq_length = 8192;
  spec.tied = false;
  spec.rope_theta = 500000.0;
  return spec;
}

constexpr std::array all_presets{
    Preset{"gpt2-124m", gpt2(12, 768, 12)},
    Preset{"gpt2-355m", gpt2(24, 1024, 16)},
    Preset{"gpt2-774m", gpt2(36, 1280, 20)},
    Preset{"gpt2-1558m", gpt2(48, 1600, 25)},
    Preset{"llama-110m", llama_110m()},
    Preset{"llama-1b", llama_1b()},
    Preset{"llama3-8b", llama3_8b()},
};

}  // namespace

std::span<Preset const> presets() { return all_presets; }

std::optional<ModelSpec> find_preset(std::string_view name) {
  for (Preset const& preset : all_presets) {
    if (preset.name == name) return preset.spec;
  }
  return std::nullopt;
}

}  // namespace motley::model
