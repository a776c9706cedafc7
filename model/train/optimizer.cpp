#include "model/train/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/adamw.hpp"
#include "kernels/base/host_copy.hpp"
#include "kernels/reduce.hpp"

namespace motley::model {

template <class T>
Optimizer<T>::Optimizer(OptimizerConfig const& config, ModelState<T> const& state, Arena& arena)
    : config_{config},
      state_{state},
      norm_workspace_{arena.make<double>("motley::model::Optimizer::norm_workspace",
                                         kernels::reduce_workspace_size(state.layout().count()))},
      square_sum_{arena.make<double>("motley::model::Optimizer::square_sum", 1)} {}

template <class T>
double Optimizer<T>::gradient_norm(Exec const& exec) const {
  kernels::square_sum<A>(exec, state_.gradients(), square_sum_, norm_workspace_);
  double square_sum = 0.0;
  copy_to_host(exec, square_sum_, std::span<double>{&square_sum, 1});
  return std::sqrt(square_sum);
}

template <class T>
double Optimizer<T>::clip_factor(double norm) const noexcept {
  if (config_.clip_grad == 0.0) return 1.0;
  // The summand is what PyTorch and Megatron-LM add; leaving it out shows in the tenth digit.
  constexpr double norm_eps = 1e-6;
  return std::min(1.0, config_.clip_grad / (norm + norm_eps));
}

template <class T>
void Optimizer<T>::update(Exec const& exec,
                          double lr,
                          std::int64_t update,
                          double gradient_scale) const {
  std::int64_t const matrices = state_.layout().matrix_count();
  auto const step = [&](std::int64_t first, std::int64_t count, double weight_decay) {
    kernels::adamw_step<T>(
        exec,
        {lr, config_.beta1, config_.beta2, config_.eps, weight_decay, update, gradient_scale},
        part_of(state_.gradients(), first, count),
        part_of(state_.masters(), first, count),
        part_of(state_.adam_m(), first, count),
        part_of(state_.adam_v(), first, count),
        part_of(state_.parameters(), first, count));
  };
  step(0, matrices, config_.weight_decay);
  step(matrices, state_.layout().count() - matrices, 0.0);
}

template class Optimizer<float>;
template class Optimizer<BFloat16>;
template class Optimizer<double>;

}  // namespace motley::model
