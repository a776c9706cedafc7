#include "model/layers/scratch.hpp"

#include "kernels/attention.hpp"
#include "kernels/norm.hpp"

namespace motley::model {

template <class T>
LayerScratch<T> LayerScratch<T>::make_forward(Arena& arena,
                                              LayerShape const& shape,
                                              std::int64_t batch,
                                              std::int64_t tokens) {
  LayerScratch scratch;
  std::size_t const bytes = kernels::attention_workspace_bytes<T>(shape.attention(batch, tokens));
  scratch.attention_workspace = arena.make<std::byte>(
      "motley::model::LayerScratch::attention_workspace", static_cast<std::int64_t>(bytes));
  return scratch;
}

template <class T>
LayerScratch<T> LayerScratch<T>::make(
    Arena& arena, Family family, LayerShape const& shape, std::int64_t batch, std::int64_t tokens) {
  std::int64_t const rows = batch * tokens;
  LayerScratch scratch = make_forward(arena, shape, batch, tokens);
  scratch.d_normed = arena.make<T>("motley::model::LayerScratch::d_normed", rows, shape.hidden);
  scratch.d_attended =
      arena.make<T>("motley::model::LayerScratch::d_attended", rows, shape.attention_width());
  if (family == Family::llama) {
    scratch.d_activated =
        arena.make<T>("motley::model::LayerScratch::d_activated", rows, shape.ffn);
  }
  scratch.norm_workspace =
      arena.make<Accumulator<T>>("motley::model::LayerScratch::norm_workspace",
                                 kernels::norm_workspace_size(rows, shape.hidden));
  return scratch;
}

template struct LayerScratch<float>;
template struct LayerScratch<BFloat16>;
template struct LayerScratch<double>;

}  // namespace motley::model
