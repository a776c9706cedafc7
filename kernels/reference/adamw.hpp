#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/adamw.hpp"

// Written to be read: the algorithm as printed, one element at a time, in double.

namespace motley::kernels::reference {

struct AdamWState {
  std::vector<double> parameter;
  std::vector<double> m;
  std::vector<double> v;
};

/// Source   Loshchilov, Hutter: "Decoupled weight decay regularization", ICLR 2019, algorithm 2,
///          with the schedule multiplier in lr and the decay lr λ as in PyTorch
inline void adamw_step(AdamWStep const& step,
                       std::vector<double> const& gradient,
                       AdamWState& state) {
  auto const t = static_cast<double>(step.step);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double const g = step.gradient_scale * gradient[i];
    double& p = state.parameter[i];
    double& m = state.m[i];
    double& v = state.v[i];
    m = step.beta1 * m + (1.0 - step.beta1) * g;
    v = step.beta2 * v + (1.0 - step.beta2) * g * g;
    double const m_hat = m / (1.0 - std::pow(step.beta1, t));
    double const v_hat = v / (1.0 - std::pow(step.beta2, t));
    p -= step.lr * step.weight_decay * p;
    p -= step.lr * m_hat / (std::sqrt(v_hat) + step.eps);
  }
}

}  // namespace motley::kernels::reference
