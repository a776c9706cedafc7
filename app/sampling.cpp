#include "app/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "kernels/base/error.hpp"

namespace motley::app {
namespace {

/// Ids from the most to the least likely; equal ones by id, so that the draw is reproducible.
std::vector<std::int32_t> by_likelihood(std::span<double const> logits) {
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  return ids;
}

/// Number of leading weights that reach the share `top_p` of their sum; at least one.
std::size_t nucleus_size(std::vector<double> const& weights, double top_p) {
  double const enough = top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= enough) return i + 1;
  }
  return weights.size();
}

}  // namespace

std::int32_t sample_token(std::span<double const> logits,
                          SamplingOptions const& options,
                          double uniform) {
  MOTLEY_EXPECT(!logits.empty());
  std::vector<std::int32_t> ids = by_likelihood(logits);
  if (options.temperature == 0.0) return ids.front();
  if (options.top_k > 0 && static_cast<std::size_t>(options.top_k) < ids.size()) {
    ids.resize(static_cast<std::size_t>(options.top_k));
  }
  double const largest = logits[static_cast<std::size_t>(ids.front())];
  std::vector<double> weights(ids.size());
  std::transform(ids.begin(), ids.end(), weights.begin(), [&](std::int32_t id) {
    return std::exp((logits[static_cast<std::size_t>(id)] - largest) / options.temperature);
  });
  weights.resize(nucleus_size(weights, options.top_p));
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return ids[i];
  }
  return ids[weights.size() - 1];  // rounding left nothing
}

}  // namespace motley::app
