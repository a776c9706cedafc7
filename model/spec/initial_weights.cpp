#include "model/spec/initial_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "kernels/base/dtype.hpp"
#include "kernels/base/error.hpp"
#include "kernels/base/philox.hpp"
#include "kernels/base/view.hpp"

namespace motley::model {
namespace {

constexpr std::int64_t block = 4;  // normal values of one Philox call

/// 64-bit FNV-1a.
///
/// Source   Fowler, Noll, Vo, draft-eastlake-fnv-17, section 2 (constants of section 5)
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (char const letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3ULL;
  }
  return hash;
}

Philox generator_of(LogicalTensor const& tensor, std::uint64_t seed) {
  return Philox{mix_keys(seed, hash_of(tensor.name))};
}

/// Uniform in (0, 1): the middle of the word's 2⁻³² wide interval.
double open_uniform(std::uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

/// Elements 4 index … 4 index + 3 of a standard normal sequence.
std::array<double, block> normal_block(Philox const& generator, std::int64_t index) {
  Philox::Words const words = generator(0, static_cast<std::uint64_t>(index));
  std::array<double, block> values{};
  for (std::size_t pair = 0; pair < 2; ++pair) {
    double const radius = std::sqrt(-2.0 * std::log(open_uniform(words.w[2 * pair])));
    double const angle = 2.0 * std::numbers::pi * open_uniform(words.w[2 * pair + 1]);
    values[2 * pair] = radius * std::cos(angle);
    values[2 * pair + 1] = radius * std::sin(angle);
  }
  return values;
}

/// Writes the elements of `wanted` that lie in one block.
template <class T>
void fill_block(Philox const& generator,
                double std_dev,
                std::int64_t index,
                Interval wanted,
                std::span<T> out) {
  std::array<double, block> const values = normal_block(generator, index);
  Interval const here = intersect(wanted, {index * block, (index + 1) * block});
  for (std::int64_t element = here.begin; element < here.end; ++element) {
    out[static_cast<std::size_t>(element - wanted.begin)] =
        static_cast<T>(std_dev * values[static_cast<std::size_t>(element - index * block)]);
  }
}

}  // namespace

double initial_value(LogicalTensor const& tensor, std::uint64_t seed, std::int64_t element) {
  if (tensor.init == InitKind::zeros) return 0.0;
  if (tensor.init == InitKind::ones) return 1.0;
  auto const values = normal_block(generator_of(tensor, seed), element / block);
  return tensor.init_std * values[static_cast<std::size_t>(element % block)];
}

template <class T>
void fill_initial(LogicalTensor const& tensor,
                  std::uint64_t seed,
                  Interval rows,
                  std::span<T> out) {
  std::int64_t const row_count = tensor.shape.row_count();
  Interval const wanted{rows.begin * row_count, rows.end * row_count};
  MOTLEY_VALIDATE(bug,
                  static_cast<std::int64_t>(out.size()) == wanted.size(),
                  "initial values of \"" << tensor.name << "\" have room for " << out.size()
                                         << " elements (" << wanted.size()
                                         << " are wanted); this is a bug of motley, please report");
  if (tensor.init != InitKind::normal) {
    std::fill(out.begin(), out.end(), static_cast<T>(initial_value(tensor, seed, 0)));
    return;
  }
  Philox const generator = generator_of(tensor, seed);
  double const std_dev = tensor.init_std;
  Kokkos::DefaultHostExecutionSpace const exec;
  Kokkos::parallel_for(
      "motley::model::InitialWeights::fill",
      Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(
          exec, wanted.begin / block, (wanted.end + block - 1) / block),
      [=](std::int64_t index) { fill_block(generator, std_dev, index, wanted, out); });
  exec.fence("motley::model::InitialWeights::fill");
}

template void fill_initial(LogicalTensor const&, std::uint64_t, Interval, std::span<float>);
template void fill_initial(LogicalTensor const&, std::uint64_t, Interval, std::span<double>);
template void fill_initial(LogicalTensor const&, std::uint64_t, Interval, std::span<BFloat16>);

}  // namespace motley::model
