#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.hpp"

namespace motley::test {

/// Element i of tensor k at a step: a small number that every dtype holds exactly. The Python test
/// of files computes the same.
[[nodiscard]] inline double expected_value(std::int64_t step, std::int64_t k, std::int64_t i) {
  return static_cast<double>((7 * i + 13 * step + 101 * k) % 251 - 125) / 8.0;
}

/// A small model's state in host memory, of bf16 parameters, fp32 masters and moments, and an fp64
/// tensor, whose values are a closed form of the step.
class TestState {
 public:
  /// `rows` scales the size: 14 KB a row, about.
  explicit TestState(std::int64_t rows) {
    add(io::StateKind::parameter, "embedding.tokens.weight", {rows, 512}, DType::bf16);
    add(io::StateKind::parameter, "layers.0.norm1.bias", {37}, DType::fp32);
    add(io::StateKind::parameter, "exact", {3, 5, 2}, DType::fp64);
    add(io::StateKind::master, "embedding.tokens.weight", {rows, 512}, DType::fp32);
    add(io::StateKind::first_moment, "embedding.tokens.weight", {rows, 512}, DType::fp32);
    add(io::StateKind::second_moment, "embedding.tokens.weight", {rows, 512}, DType::fp32);
  }

  void fill(std::int64_t step) {
    for_each([&](Tensor& tensor, std::int64_t k, std::int64_t i) {
      put(tensor, i, expected_value(step, k, i));
    });
  }

  /// Whether every element is that of the step.
  [[nodiscard]] bool is_of(std::int64_t step) {
    bool is_same = true;
    for_each([&](Tensor& tensor, std::int64_t k, std::int64_t i) {
      is_same = is_same && get(tensor, i) == expected_value(step, k, i);
    });
    return is_same;
  }

  /// Each tensor as one interval.
  [[nodiscard]] io::StateTensors tensors() {
    for (auto& names : named_) names.clear();
    for (Tensor& tensor : tensors_) {
      named_[static_cast<std::size_t>(tensor.kind)].push_back(
          {tensor.name, tensor.shape, {0, tensor.shape[0]}, tensor.dtype, tensor.bytes.data()});
    }
    return {named_[0], named_[1], named_[2], named_[3]};
  }

  /// What the mutable lists behind `tensors()` hold, by kind, to be changed by a test.
  [[nodiscard]] std::vector<NamedTensor>& named(io::StateKind kind) {
    return named_[static_cast<std::size_t>(kind)];
  }

 private:
  struct Tensor {
    io::StateKind kind;
    std::string name;
    Shape shape;
    DType dtype;
    std::vector<std::byte> bytes;
  };

  void add(io::StateKind kind, std::string name, Shape shape, DType dtype) {
    auto const bytes = static_cast<std::size_t>(shape.count()) * size_bytes(dtype);
    tensors_.push_back({kind, std::move(name), shape, dtype, std::vector<std::byte>(bytes)});
  }

  template <class Action>
  void for_each(Action const& action) {
    for (std::size_t k = 0; k < tensors_.size(); ++k) {
      for (std::int64_t i = 0; i < tensors_[k].shape.count(); ++i) {
        action(tensors_[k], static_cast<std::int64_t>(k), i);
      }
    }
  }

  template <class T>
  static T& element(Tensor& tensor, std::int64_t i) {
    return reinterpret_cast<T*>(tensor.bytes.data())[i];
  }
  static void put(Tensor& tensor, std::int64_t i, double value) {
    switch (tensor.dtype) {
      case DType::bf16:
        element<BFloat16>(tensor, i) = BFloat16{value};
        break;
      case DType::fp32:
        element<float>(tensor, i) = static_cast<float>(value);
        break;
      default:
        element<double>(tensor, i) = value;
    }
  }
  static double get(Tensor& tensor, std::int64_t i) {
    switch (tensor.dtype) {
      case DType::bf16:
        return element<BFloat16>(tensor, i);
      case DType::fp32:
        return element<float>(tensor, i);
      default:
        return element<double>(tensor, i);
    }
  }

  std::vector<Tensor> tensors_;
  std::vector<NamedTensor> named_[4];
};

[[nodiscard]] inline io::CheckpointMeta meta_of(std::int64_t step) {
  io::CheckpointMeta meta;
  meta.step = step;
  meta.tokens = 1000 * step;
  meta.next_sample = 4 * step;
  meta.data_fingerprint = "d4ta";
  meta.model_hash = "m0del";
  meta.config = "[run]\nseed = 7\n";
  meta.plan = "";
  meta.data = {{"epoch", std::int64_t{2}}};
  meta.schedule = {{"lr", 0.1}, {"style", std::string{"cosine"}}};
  meta.random = {{"seed", std::int64_t{7}}};
  return meta;
}

}  // namespace motley::test
