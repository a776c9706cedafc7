#include "model/layers/embedding.hpp"

#include <utility>

#include "kernels/embedding.hpp"

namespace motley::model {
namespace {

constexpr std::uint64_t dropout_site = 0;

}  // namespace

template <class T>
Embedding<T>::Embedding(comm::Group const& group,
                        EmbeddingParameters<T> parameters,
                        std::int64_t first_row)
    : group_{group}, parameters_{std::move(parameters)}, first_row_{first_row} {}

template <class T>
void Embedding<T>::forward(Pass const& pass, View1<std::int32_t const> ids, View2<T> y) const {
  // The group sums: one rank brings the positions.
  View2<T const> const positions =
      group_.rank() == 0 ? parameters_.positions.value : View2<T const>{};
  kernels::embedding_forward<T>(
      pass.exec, {pass.tokens, first_row_}, ids, parameters_.tokens.value, positions, y);
  group_.all_reduce_sum(pass.exec, y);
  apply_dropout(pass, dropout_site, y);
}

template <class T>
void Embedding<T>::backward_weight(Pass const& pass,
                                   View1<std::int32_t const> ids,
                                   View2<T> dy) const {
  apply_dropout(pass, dropout_site, dy);
  kernels::embedding_backward<T>(pass.exec,
                                 {pass.tokens, first_row_},
                                 ids,
                                 dy,
                                 parameters_.tokens.gradient,
                                 parameters_.positions.gradient);
}

template class Embedding<float>;
template class Embedding<BFloat16>;
template class Embedding<double>;

}  // namespace motley::model
