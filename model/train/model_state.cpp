#include "model/train/model_state.hpp"

#include <span>
#include <type_traits>
#include <utility>

#include "kernels/cast.hpp"
#include "model/spec/initial_weights.hpp"

namespace motley::model {
namespace {

/// Where adjacent tensors lie together.
struct Range {
  std::int64_t offset;
  std::int64_t rows;
  std::int64_t row_count;
};

Range range_of(StateLayout const& layout, std::string_view first, std::string_view last) {
  LocalTensor const& begin = layout.find(first);
  LocalTensor const& end = layout.find(last);
  std::int64_t const count = end.offset + end.padded_count() - begin.offset;
  return {begin.offset, count / begin.row_count(), begin.row_count()};
}

template <class T>
std::span<T> span_of(View1<T> const& flat, LocalTensor const& local) {
  return {flat.data() + local.offset, static_cast<std::size_t>(local.count())};
}

}  // namespace

template <class T>
ModelState<T>::ModelState(StateLayout layout, Purpose purpose, Arena& arena, MemoryMeter& meter)
    : layout_{std::move(layout)}, purpose_{purpose} {
  std::int64_t const count = layout_.count();
  parameters_ = arena.make<T>("motley::model::ModelState::parameters", count);
  meter.mark("parameters");
  if (purpose == Purpose::train) {
    gradients_ = arena.make<A>("motley::model::ModelState::gradients", count);
    meter.mark("gradients");
  }
  if constexpr (std::is_same_v<T, A>) {
    masters_ = parameters_;
  } else if (purpose == Purpose::train) {
    masters_ = arena.make<A>("motley::model::ModelState::masters", count);
    meter.mark("masters");
  }
  if (purpose == Purpose::train) {
    adam_m_ = arena.make<A>("motley::model::ModelState::adam_m", count);
    adam_v_ = arena.make<A>("motley::model::ModelState::adam_v", count);
    meter.mark("moments");
  }
}

template <class T>
bool ModelState<T>::has_own_masters() const noexcept {
  return !std::is_same_v<T, A> && purpose_ == Purpose::train;
}

template <class T>
MatrixParameter<T> ModelState<T>::matrix(std::string_view first, std::string_view last) const {
  Range const range = range_of(layout_, first, last);
  MatrixParameter<T> parameter;
  parameter.value = matrix_of(parameters_, range.offset, range.rows, range.row_count);
  if (purpose_ == Purpose::train) {
    parameter.gradient = matrix_of(gradients_, range.offset, range.rows, range.row_count);
  }
  return parameter;
}

template <class T>
VectorParameter<T> ModelState<T>::vector(std::string_view first, std::string_view last) const {
  VectorParameter<T> parameter;
  if (!layout_.contains(first)) return parameter;
  Range const range = range_of(layout_, first, last);
  parameter.value = part_of(parameters_, range.offset, range.rows);
  if (purpose_ == Purpose::train) {
    parameter.gradient = part_of(gradients_, range.offset, range.rows);
  }
  return parameter;
}

template <class T>
void ModelState<T>::initialize(Exec const& exec, std::uint64_t seed) {
  exec.fence("motley::model::ModelState::initialize");
  for (LocalTensor const& local : layout_.tensors()) {
    if (has_own_masters()) {
      fill_initial<A>(local.tensor, seed, local.rows, span_of(masters_, local));
    } else {
      fill_initial<T>(local.tensor, seed, local.rows, span_of(parameters_, local));
    }
  }
  if (has_own_masters()) {
    kernels::cast<T, A>(exec, masters_, parameters_);
  }
  if (purpose_ == Purpose::train) {
    kernels::fill<A>(exec, A{0}, adam_m_);
    kernels::fill<A>(exec, A{0}, adam_v_);
  }
}

template <class T>
void ModelState<T>::restart_from_parameters(Exec const& exec) {
  if (purpose_ != Purpose::train) return;
  if (has_own_masters()) kernels::cast<A, T>(exec, parameters_, masters_);
  kernels::fill<A>(exec, A{0}, adam_m_);
  kernels::fill<A>(exec, A{0}, adam_v_);
}

template <class T>
std::vector<NamedTensor> ModelState<T>::tensors(StateKind kind) const {
  std::vector<NamedTensor> list;
  auto const add = [&](auto const& flat) {
    using Element = typename std::decay_t<decltype(flat)>::value_type;
    if (flat.data() == nullptr) return;
    for (LocalTensor const& local : layout_.tensors()) {
      list.push_back({local.tensor.name,
                      local.tensor.shape,
                      local.rows,
                      dtype_of<Element>,
                      flat.data() + local.offset});
    }
  };
  switch (kind) {
    case StateKind::parameter:
      add(parameters_);
      break;
    case StateKind::gradient:
      add(gradients_);
      break;
    case StateKind::master:
      if (has_own_masters()) add(masters_);
      break;
    case StateKind::adam_m:
      add(adam_m_);
      break;
    case StateKind::adam_v:
      add(adam_v_);
      break;
  }
  return list;
}

template class ModelState<float>;
template class ModelState<BFloat16>;
template class ModelState<double>;

}  // namespace motley::model
