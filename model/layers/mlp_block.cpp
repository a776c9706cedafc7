#include "model/layers/mlp_block.hpp"

#include "kernels/activation.hpp"
#include "model/spec/logical_tensors.hpp"

namespace motley::model {

template <class T>
MlpBlock<T>::MlpBlock(LayerContext const& context,
                      ModelSpec const& spec,
                      LayerShape const& shape,
                      std::int64_t layer,
                      MlpParameters<T> const& parameters)
    : family_{spec.family},
      shape_{shape},
      has_dropout_{spec.dropout > 0.0},
      norm_{spec, parameters.norm_weight, parameters.norm_bias},
      up_{context, layer_tensor_name(layer, "mlp.up"), parameters.up, parameters.up_bias},
      down_{context,
            layer_tensor_name(layer, "mlp.down"),
            parameters.down,
            parameters.down_bias,
            mlp_site(layer)} {}

template <class T>
typename MlpBlock<T>::Saved MlpBlock<T>::make_saved(Arena& arena, std::int64_t rows) const {
  Saved saved;
  saved.norm = norm_.make_saved(arena, rows);
  saved.normed = arena.make<T>("motley::model::MlpBlock::normed", rows, shape_.hidden);
  saved.up = arena.make<T>("motley::model::MlpBlock::up", rows, up_width());
  saved.activated = arena.make<T>("motley::model::MlpBlock::activated", rows, shape_.ffn);
  return saved;
}

template <class T>
typename MlpBlock<T>::Pending MlpBlock<T>::make_pending(Arena& arena, std::int64_t rows) const {
  Pending pending;
  pending.d_up = arena.make<T>("motley::model::MlpBlock::d_up", rows, up_width());
  if (has_dropout_) {
    pending.d_branch = arena.make<T>("motley::model::MlpBlock::d_branch", rows, shape_.hidden);
  }
  return pending;
}

template <class T>
void MlpBlock<T>::pack(Exec const& exec) {
  up_.pack(exec);
  down_.pack(exec);
}

template <class T>
void MlpBlock<T>::activate(Pass const& pass, View2<T const> x, Saved const& saved) {
  norm_.forward(pass.exec, x, saved.normed, saved.norm);
  if (family_ == Family::gpt2) {
    up_.forward_gelu(pass.exec, saved.normed, saved.up, saved.activated);
  } else {
    up_.forward(pass.exec, saved.normed, saved.up);
    kernels::swiglu_forward<T>(pass.exec, saved.up, saved.activated);
  }
}

template <class T>
void MlpBlock<T>::project(Pass const& pass, View2<T const> x, Saved const& saved, View2<T> y) {
  down_.forward(pass, saved.activated, x, y);
}

template <class T>
void MlpBlock<T>::backward_input(Pass const& pass,
                                 View2<T const> x,
                                 Saved const& saved,
                                 View2<T const> dy,
                                 Pending const& pending,
                                 LayerScratch<T> const& scratch,
                                 View2<T> dx) {
  if (family_ == Family::gpt2) {
    down_.backward_input(pass, dy, pending.d_branch, pending.d_up);
    kernels::gelu_backward<T>(pass.exec, saved.up, pending.d_up, pending.d_up);
  } else {
    down_.backward_input(pass, dy, pending.d_branch, scratch.d_activated);
    kernels::swiglu_backward<T>(pass.exec, saved.up, scratch.d_activated, pending.d_up);
  }
  up_.backward_input(pass.exec, pending.d_up, scratch.d_normed);
  norm_.backward(pass.exec, x, saved.norm, {scratch.d_normed, dy}, dx, scratch.norm_workspace);
}

template <class T>
void MlpBlock<T>::backward_weight(Pass const& pass,
                                  Saved const& saved,
                                  View2<T const> dy,
                                  Pending const& pending) {
  down_.backward_weight(pass, saved.activated, dy, pending.d_branch);
  up_.backward_weight(pass, saved.normed, pending.d_up);
}

template class MlpBlock<float>;
template class MlpBlock<BFloat16>;
template class MlpBlock<double>;

}  // namespace motley::model
