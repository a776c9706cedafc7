#include "model/layers/head.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/cross_entropy.hpp"

namespace motley::model {
namespace {

using kernels::Accumulate;

/// Bound of the logits of a chunk. Large chunks, since each one reads and writes the gradient of
/// the whole weight.
constexpr std::int64_t max_chunk_bytes = std::int64_t{256} << 20;
constexpr std::int64_t max_chunk_rows = 1024;
constexpr std::int64_t chunk_unit = 64;

std::int64_t largest_chunk(std::int64_t padded_vocab, std::size_t element_bytes) {
  std::int64_t const fitting =
      max_chunk_bytes / (padded_vocab * static_cast<std::int64_t>(element_bytes));
  return std::clamp(fitting / chunk_unit * chunk_unit, chunk_unit, max_chunk_rows);
}

template <class View>
std::int64_t extent(View const& view, int dim) {
  return static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(dim)));
}

}  // namespace

template <class T>
Head<T>::Head(LayerContext const& context,
              ModelSpec const& spec,
              HeadParameters<T> const& parameters)
    : group_{context.group},
      vocab_{spec.vocab},
      hidden_{spec.hidden},
      padded_vocab_{extent(parameters.weight.value, 0)},
      weight_{parameters.weight},
      norm_{spec, parameters.norm_weight, parameters.norm_bias},
      product_{context.engine,
               context.arena,
               {"head",
                kernels::WeightOrder::out_in,
                hidden_,
                padded_vocab_,
                chunk_rows(context.max_rows),
                context.needs_backward}} {}

template <class T>
std::int64_t Head<T>::chunk_rows(std::int64_t rows) const noexcept {
  return std::min(rows, largest_chunk(padded_vocab_, sizeof(A)));
}

template <class T>
typename Head<T>::Buffers Head<T>::make_buffers(Arena& arena, std::int64_t rows, Mode mode) const {
  std::int64_t const chunk = chunk_rows(rows);
  Buffers buffers;
  buffers.norm = norm_.make_saved(arena, rows);
  buffers.normed = arena.make<T>("motley::model::Head::normed", rows, hidden_);
  buffers.losses = arena.make<A>("motley::model::Head::losses", rows);
  buffers.logits = arena.make<A>("motley::model::Head::logits", chunk, padded_vocab_);
  if (mode == Mode::forward) return buffers;
  buffers.d_normed = arena.make<T>("motley::model::Head::d_normed", rows, hidden_);
  if constexpr (std::is_same_v<T, A>) {
    buffers.d_logits = buffers.logits;
  } else {
    buffers.d_logits = arena.make<T>("motley::model::Head::d_logits", chunk, padded_vocab_);
  }
  return buffers;
}

template <class T>
void Head<T>::pack(Exec const& exec) {
  product_.pack(exec, weight_.value);
}

template <class T>
void Head<T>::normalize(Exec const& exec, View2<T const> x, Buffers const& buffers) {
  norm_.forward(exec, x, buffers.normed, buffers.norm);
}

template <class T>
void Head<T>::logits(Exec const& exec,
                     std::int64_t first,
                     std::int64_t count,
                     Buffers const& buffers) {
  product_.forward_wide(
      exec, rows_of(buffers.normed, first, count), rows_of(buffers.logits, 0, count));
}

template <class T>
void Head<T>::losses(Exec const& exec, View1<std::int32_t const> targets, Buffers const& buffers) {
  std::int64_t const rows = extent(targets, 0);
  std::int64_t const chunk = extent(buffers.logits, 0);
  for (std::int64_t first = 0; first < rows; first += chunk) {
    std::int64_t const count = std::min(chunk, rows - first);
    logits(exec, first, count, buffers);
    kernels::softmax_cross_entropy<T>(exec,
                                      rows_of(buffers.logits, 0, count),
                                      vocab_,
                                      part_of(targets, first, count),
                                      A{0},
                                      part_of(buffers.losses, first, count),
                                      {});
  }
}

template <class T>
void Head<T>::losses_and_gradients(Pass const& pass,
                                   View2<T const> x,
                                   View1<std::int32_t const> targets,
                                   A gradient_scale,
                                   Buffers const& buffers,
                                   View1<A> norm_workspace,
                                   View2<T> dx) {
  std::int64_t const rows = extent(targets, 0);
  std::int64_t const chunk = extent(buffers.logits, 0);
  Accumulate accumulate = pass.weight_gradients;
  for (std::int64_t first = 0; first < rows; first += chunk) {
    std::int64_t const count = std::min(chunk, rows - first);
    View2<T> const d_logits = rows_of(buffers.d_logits, 0, count);
    logits(pass.exec, first, count, buffers);
    kernels::softmax_cross_entropy<T>(pass.exec,
                                      rows_of(buffers.logits, 0, count),
                                      vocab_,
                                      part_of(targets, first, count),
                                      gradient_scale,
                                      part_of(buffers.losses, first, count),
                                      d_logits);
    product_.backward_input(
        pass.exec, d_logits, rows_of(buffers.d_normed, first, count), Accumulate::no);
    product_.backward_weight(
        pass.exec, rows_of(buffers.normed, first, count), d_logits, weight_.gradient, accumulate);
    accumulate = Accumulate::yes;
  }
  group_.all_reduce_sum(pass.exec, buffers.d_normed);
  norm_.backward(pass.exec, x, buffers.norm, {buffers.d_normed, {}}, dx, norm_workspace);
}

template class Head<float>;
template class Head<BFloat16>;
template class Head<double>;

}  // namespace motley::model
