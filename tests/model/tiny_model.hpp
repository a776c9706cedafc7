#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/batch.hpp"
#include "kernels/base/named_tensor.hpp"
#include "kernels/base/philox.hpp"
#include "model/train/trainer.hpp"

namespace motley::model::test {

/// A model small enough for finite differences, with sizes that divide nothing evenly.
[[nodiscard]] inline TrainerConfig tiny_config(Family family, DType dtype) {
  TrainerConfig config;
  config.model.family = family;
  config.model.n_layers = 2;
  config.model.hidden = 24;
  config.model.heads = 4;
  config.model.kv_heads = family == Family::llama ? 2 : 4;
  config.model.ffn = 40;
  config.model.vocab = 37;
  config.model.seq_length = 9;
  config.model.tied = family == Family::gpt2;
  config.model.dtype = dtype;
  config.optimizer.lr = 1e-2;
  config.optimizer.lr_decay_style = LrDecayStyle::constant;
  config.train.micro_batch_size = 2;
  config.train.global_batch_size = 2;
  return config;
}

/// Random windows with their own memory; every fifth target does not count.
struct Windows {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::vector<std::uint64_t> samples;

  Windows(ModelSpec const& spec, std::int64_t window_count, std::uint64_t seed)
      : batch{window_count}, tokens{spec.seq_length} {
    Philox const random{seed};
    for (std::int64_t i = 0; i < batch * tokens; ++i) {
      auto const words = random(0, static_cast<std::uint64_t>(i));
      auto const vocab = static_cast<std::uint32_t>(spec.vocab);
      inputs.push_back(static_cast<std::int32_t>(words.w[0] % vocab));
      targets.push_back(i % 5 == 4 ? Batch::ignored_target
                                   : static_cast<std::int32_t>(words.w[1] % vocab));
    }
    for (std::int64_t i = 0; i < batch; ++i) samples.push_back(100 + static_cast<std::uint64_t>(i));
  }

  [[nodiscard]] Batch all() const { return rows(0, batch); }
  /// Windows [first, first + count).
  [[nodiscard]] Batch rows(std::int64_t first, std::int64_t count) const {
    auto const begin = static_cast<std::size_t>(first * tokens);
    auto const size = static_cast<std::size_t>(count * tokens);
    return {count,
            tokens,
            std::span{inputs}.subspan(begin, size),
            std::span{targets}.subspan(begin, size),
            std::span{samples}.subspan(static_cast<std::size_t>(first),
                                       static_cast<std::size_t>(count))};
  }
  [[nodiscard]] std::int64_t valid_tokens() const {
    std::int64_t count = 0;
    for (std::int32_t const target : targets) count += target != Batch::ignored_target ? 1 : 0;
    return count;
  }
};

template <class T>
[[nodiscard]] std::span<T> values_of(NamedTensor const& tensor) {
  return {static_cast<T*>(tensor.data), static_cast<std::size_t>(tensor.count())};
}

/// All values of a kind of state, tensor after tensor.
template <class T>
[[nodiscard]] std::vector<T> all_values(Trainer& trainer, StateKind kind) {
  std::vector<T> values;
  for (NamedTensor const& tensor : trainer.tensors(kind)) {
    std::span<T> const part = values_of<T>(tensor);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

}  // namespace motley::model::test
