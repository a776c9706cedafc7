#include "model/train/non_finite.hpp"

#include <cstdint>
#include <sstream>

#include "kernels/reduce.hpp"

namespace motley::model {
namespace {

/// Index of the first element of a tensor that is not finite, or -1.
template <class Element>
std::int64_t first_in_tensor(Exec const& exec,
                             View1<Element> const& flat,
                             LocalTensor const& local) {
  return kernels::first_non_finite<Element>(exec, part_of(flat, local.offset, local.count()));
}

bool is_at(LocalTensor const& local, Place place, std::int64_t layer) {
  return local.tensor.place == place && (place != Place::layer || local.tensor.layer == layer);
}

/// "; parameter "…"[i] itself is not finite" for the first such parameter of a place.
template <class T>
std::string bad_parameter(Exec const& exec,
                          ModelState<T> const& state,
                          Place place,
                          std::int64_t layer) {
  for (LocalTensor const& local : state.layout().tensors()) {
    if (!is_at(local, place, layer)) continue;
    std::int64_t const index = first_in_tensor(exec, state.parameters(), local);
    if (index < 0) continue;
    std::ostringstream text;
    text << "; parameter \"" << local.tensor.name << "\"[" << index << "] itself is not finite";
    return text.str();
  }
  return {};
}

template <class T>
std::string describe(Exec const& exec,
                     View2<T> const& output,
                     std::string const& name,
                     ModelState<T> const& state,
                     Place place,
                     std::int64_t layer) {
  std::int64_t const index = kernels::first_non_finite<T>(exec, flat_of(output));
  if (index < 0) return {};
  auto const width = static_cast<std::int64_t>(output.extent(1));
  std::ostringstream text;
  text << name << " is not finite (row " << index / width << ", column " << index % width << ")"
       << bad_parameter(exec, state, place, layer);
  return text.str();
}

}  // namespace

template <class T>
std::string first_non_finite_output(Exec const& exec,
                                    Activations<T> const& activations,
                                    ModelState<T> const& state) {
  auto const& boundaries = activations.boundaries;
  std::string found =
      describe(exec, boundaries[0], "output of the embedding", state, Place::embedding, -1);
  for (std::size_t i = 1; i < boundaries.size() && found.empty(); ++i) {
    auto const layer = static_cast<std::int64_t>(i) - 1;
    std::string const name = "output of layer " + std::to_string(layer);
    found = describe(exec, boundaries[i], name, state, Place::layer, layer);
  }
  if (found.empty()) {
    found =
        describe(exec, activations.head.normed, "output of the final norm", state, Place::head, -1);
  }
  if (found.empty() &&
      kernels::first_non_finite<Accumulator<T>>(exec, activations.head.losses) >= 0) {
    found = "loss behind the head is not finite" + bad_parameter(exec, state, Place::head, -1) +
            bad_parameter(exec, state, Place::embedding, -1);
  }
  return found;
}

template <class T>
std::string first_non_finite_gradient(Exec const& exec, ModelState<T> const& state) {
  auto const& tensors = state.layout().tensors();
  for (auto local = tensors.rbegin(); local != tensors.rend(); ++local) {
    std::int64_t const index = first_in_tensor(exec, state.gradients(), *local);
    if (index < 0) continue;
    std::ostringstream text;
    text << "gradient of \"" << local->tensor.name << "\" is not finite (element " << index << ")";
    return text.str();
  }
  return {};
}

template std::string first_non_finite_output(Exec const&,
                                             Activations<float> const&,
                                             ModelState<float> const&);
template std::string first_non_finite_gradient(Exec const&, ModelState<float> const&);
template std::string first_non_finite_output(Exec const&,
                                             Activations<BFloat16> const&,
                                             ModelState<BFloat16> const&);
template std::string first_non_finite_gradient(Exec const&, ModelState<BFloat16> const&);
template std::string first_non_finite_output(Exec const&,
                                             Activations<double> const&,
                                             ModelState<double> const&);
template std::string first_non_finite_gradient(Exec const&, ModelState<double> const&);

}  // namespace motley::model
