#include "model/layers/transformer_layer.hpp"

namespace motley::model {

template <class T>
TransformerLayer<T>::TransformerLayer(LayerContext const& context,
                                      ModelSpec const& spec,
                                      LayerShape const& shape,
                                      std::int64_t layer,
                                      LayerParameters<T> const& parameters,
                                      kernels::RopeTable<A> const& rope)
    : hidden_{shape.hidden},
      attention_{context, spec, shape, layer, parameters.attention, rope},
      mlp_{context, spec, shape, layer, parameters.mlp} {}

template <class T>
typename TransformerLayer<T>::Saved TransformerLayer<T>::make_saved(Arena& arena,
                                                                    std::int64_t batch,
                                                                    std::int64_t tokens) const {
  std::int64_t const rows = batch * tokens;
  Saved saved;
  saved.attention = attention_.make_saved(arena, batch, tokens);
  saved.middle = arena.make<T>("motley::model::TransformerLayer::middle", rows, hidden_);
  saved.mlp = mlp_.make_saved(arena, rows);
  return saved;
}

template <class T>
typename TransformerLayer<T>::Pending TransformerLayer<T>::make_pending(Arena& arena,
                                                                        std::int64_t rows) const {
  Pending pending;
  pending.attention = attention_.make_pending(arena, rows);
  pending.d_middle = arena.make<T>("motley::model::TransformerLayer::d_middle", rows, hidden_);
  pending.mlp = mlp_.make_pending(arena, rows);
  return pending;
}

template <class T>
void TransformerLayer<T>::pack(Exec const& exec) {
  attention_.pack(exec);
  mlp_.pack(exec);
}

template <class T>
void TransformerLayer<T>::forward(Pass const& pass,
                                  View2<T const> x,
                                  Saved const& saved,
                                  LayerScratch<T> const& scratch,
                                  View2<T> y) {
  recompute(pass, x, saved, scratch);
  mlp_.project(pass, saved.middle, saved.mlp, y);
}

template <class T>
void TransformerLayer<T>::recompute(Pass const& pass,
                                    View2<T const> x,
                                    Saved const& saved,
                                    LayerScratch<T> const& scratch) {
  attention_.forward(pass, x, saved.attention, scratch, saved.middle);
  mlp_.activate(pass, saved.middle, saved.mlp);
}

template <class T>
void TransformerLayer<T>::backward_input(Pass const& pass,
                                         View2<T const> x,
                                         Saved const& saved,
                                         View2<T const> dy,
                                         Pending const& pending,
                                         LayerScratch<T> const& scratch,
                                         View2<T> dx) {
  mlp_.backward_input(pass, saved.middle, saved.mlp, dy, pending.mlp, scratch, pending.d_middle);
  attention_.backward_input(
      pass, x, saved.attention, pending.d_middle, pending.attention, scratch, dx);
}

template <class T>
void TransformerLayer<T>::backward_weight(Pass const& pass,
                                          Saved const& saved,
                                          View2<T const> dy,
                                          Pending const& pending) {
  mlp_.backward_weight(pass, saved.mlp, dy, pending.mlp);
  attention_.backward_weight(pass, saved.attention, pending.d_middle, pending.attention);
}

template class TransformerLayer<float>;
template class TransformerLayer<BFloat16>;
template class TransformerLayer<double>;

}  // namespace motley::model
