#include "model/train/activations.hpp"

#include "kernels/reduce.hpp"

namespace motley::model {

template <class T>
void Activations<T>::make(Arena& arena,
                          Network<T> const& network,
                          std::int64_t batch,
                          std::int64_t tokens,
                          Keep what,
                          MemoryMeter* meter) {
  std::int64_t const rows = batch * tokens;
  bool const has_backward = what != Keep::nothing;
  auto const mark = [meter](char const* row) {
    if (meter != nullptr) meter->mark(row);
  };
  keep = what;
  ids = arena.make<std::int32_t>("motley::model::Activations::ids", rows);
  targets = arena.make<std::int32_t>("motley::model::Activations::targets", rows);
  samples = arena.make<std::uint64_t>("motley::model::Activations::samples", batch);
  loss = arena.make<double>("motley::model::Activations::loss", 1);
  reduce_workspace = arena.make<double>("motley::model::Activations::reduce_workspace",
                                        kernels::reduce_workspace_size(rows));
  mark("micro-batch");
  make_stream(arena, network, batch, tokens);
  mark("activations");
  if (has_backward) {
    pending = network.layers.front().make_pending(arena, rows);
    for (View2<T>& end : d_stream) {
      end = arena.make<T>("motley::model::Activations::d_stream", rows, network.shape.hidden);
    }
    scratch = LayerScratch<T>::make(arena, network.family, network.shape, batch, tokens);
  } else {
    scratch = LayerScratch<T>::make_forward(arena, network.shape, batch, tokens);
  }
  mark("layer workspace");
  head = network.head.make_buffers(
      arena, rows, has_backward ? Head<T>::Mode::forward_backward : Head<T>::Mode::forward);
  mark("head");
}

template <class T>
void Activations<T>::make_stream(Arena& arena,
                                 Network<T> const& network,
                                 std::int64_t batch,
                                 std::int64_t tokens) {
  std::size_t const n_layers = network.layers.size();
  std::size_t const own_boundaries = keep == Keep::nothing ? 2 : n_layers + 1;
  std::size_t const own_saved = keep == Keep::everything ? n_layers : 1;
  boundaries.resize(n_layers + 1);
  saved.resize(n_layers);
  for (std::size_t i = 0; i <= n_layers; ++i) {
    boundaries[i] = i < own_boundaries ? arena.make<T>("motley::model::Activations::boundary",
                                                       batch * tokens,
                                                       network.shape.hidden)
                                       : boundaries[i % own_boundaries];
  }
  for (std::size_t i = 0; i < n_layers; ++i) {
    saved[i] = i < own_saved ? network.layers[i].make_saved(arena, batch, tokens) : saved[0];
  }
}

template struct Activations<float>;
template struct Activations<BFloat16>;
template struct Activations<double>;

}  // namespace motley::model
