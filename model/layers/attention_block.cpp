#include "model/layers/attention_block.hpp"

#include <utility>

#include "kernels/attention.hpp"
#include "model/spec/logical_tensors.hpp"

namespace motley::model {

template <class T>
AttentionBlock<T>::AttentionBlock(LayerContext const& context,
                                  ModelSpec const& spec,
                                  LayerShape const& shape,
                                  std::int64_t layer,
                                  AttentionParameters<T> const& parameters,
                                  kernels::RopeTable<A> rope)
    : family_{spec.family},
      shape_{shape},
      has_dropout_{spec.dropout > 0.0},
      rope_{std::move(rope)},
      norm_{spec, parameters.norm_weight, parameters.norm_bias},
      qkv_{context, layer_tensor_name(layer, "attention.qkv"), parameters.qkv, parameters.qkv_bias},
      output_{context,
              layer_tensor_name(layer, "attention.output"),
              parameters.output,
              parameters.output_bias,
              attention_site(layer)} {}

template <class T>
typename AttentionBlock<T>::Saved AttentionBlock<T>::make_saved(Arena& arena,
                                                                std::int64_t batch,
                                                                std::int64_t tokens) const {
  std::int64_t const rows = batch * tokens;
  Saved saved;
  saved.norm = norm_.make_saved(arena, rows);
  saved.normed = arena.make<T>("motley::model::AttentionBlock::normed", rows, shape_.hidden);
  saved.qkv = arena.make<T>("motley::model::AttentionBlock::qkv", rows, shape_.qkv_width());
  saved.attended =
      arena.make<T>("motley::model::AttentionBlock::attended", rows, shape_.attention_width());
  saved.lse = arena.make<A>("motley::model::AttentionBlock::lse", batch, shape_.heads, tokens);
  return saved;
}

template <class T>
typename AttentionBlock<T>::Pending AttentionBlock<T>::make_pending(Arena& arena,
                                                                    std::int64_t rows) const {
  Pending pending;
  pending.d_qkv = arena.make<T>("motley::model::AttentionBlock::d_qkv", rows, shape_.qkv_width());
  if (has_dropout_) {
    pending.d_branch =
        arena.make<T>("motley::model::AttentionBlock::d_branch", rows, shape_.hidden);
  }
  return pending;
}

template <class T>
void AttentionBlock<T>::pack(Exec const& exec) {
  qkv_.pack(exec);
  output_.pack(exec);
}

template <class T>
void AttentionBlock<T>::forward(Pass const& pass,
                                View2<T const> x,
                                Saved const& saved,
                                LayerScratch<T> const& scratch,
                                View2<T> y) {
  kernels::AttentionShape const shape = shape_.attention(pass.batch, pass.tokens);
  norm_.forward(pass.exec, x, saved.normed, saved.norm);
  qkv_.forward(pass.exec, saved.normed, saved.qkv);
  if (family_ == Family::llama) kernels::rope_forward<T>(pass.exec, shape, rope_, saved.qkv);
  kernels::attention_forward<T>(
      pass.exec, shape, saved.qkv, saved.attended, saved.lse, scratch.attention_workspace);
  output_.forward(pass, saved.attended, x, y);
}

template <class T>
void AttentionBlock<T>::backward_input(Pass const& pass,
                                       View2<T const> x,
                                       Saved const& saved,
                                       View2<T const> dy,
                                       Pending const& pending,
                                       LayerScratch<T> const& scratch,
                                       View2<T> dx) {
  kernels::AttentionShape const shape = shape_.attention(pass.batch, pass.tokens);
  output_.backward_input(pass, dy, pending.d_branch, scratch.d_attended);
  kernels::attention_backward<T>(pass.exec,
                                 shape,
                                 {saved.qkv, saved.attended, saved.lse},
                                 scratch.d_attended,
                                 pending.d_qkv,
                                 scratch.attention_workspace);
  if (family_ == Family::llama) kernels::rope_backward<T>(pass.exec, shape, rope_, pending.d_qkv);
  qkv_.backward_input(pass.exec, pending.d_qkv, scratch.d_normed);
  norm_.backward(pass.exec, x, saved.norm, {scratch.d_normed, dy}, dx, scratch.norm_workspace);
}

template <class T>
void AttentionBlock<T>::backward_weight(Pass const& pass,
                                        Saved const& saved,
                                        View2<T const> dy,
                                        Pending const& pending) {
  output_.backward_weight(pass, saved.attended, dy, pending.d_branch);
  qkv_.backward_weight(pass, saved.normed, pending.d_qkv);
}

template class AttentionBlock<float>;
template class AttentionBlock<BFloat16>;
template class AttentionBlock<double>;

}  // namespace motley::model
