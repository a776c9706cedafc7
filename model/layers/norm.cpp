#include "model/layers/norm.hpp"

#include <utility>

#include "kernels/norm.hpp"

namespace motley::model {

template <class T>
Norm<T>::Norm(ModelSpec const& spec, VectorParameter<T> weight, VectorParameter<T> bias)
    : family_{spec.family},
      eps_{static_cast<A>(spec.norm_eps)},
      weight_{std::move(weight)},
      bias_{std::move(bias)} {}

template <class T>
NormSaved<T> Norm<T>::make_saved(Arena& arena, std::int64_t rows) const {
  NormSaved<T> saved;
  if (family_ == Family::gpt2) saved.mean = arena.make<A>("motley::model::Norm::mean", rows);
  saved.rstd = arena.make<A>("motley::model::Norm::rstd", rows);
  return saved;
}

template <class T>
void Norm<T>::forward(Exec const& exec,
                      View2<T const> x,
                      View2<T> y,
                      NormSaved<T> const& saved) const {
  if (family_ == Family::gpt2) {
    kernels::layer_norm_forward<T>(
        exec, x, weight_.value, bias_.value, eps_, y, {saved.mean, saved.rstd});
  } else {
    kernels::rms_norm_forward<T>(exec, x, weight_.value, eps_, y, saved.rstd);
  }
}

template <class T>
void Norm<T>::backward(Exec const& exec,
                       View2<T const> x,
                       NormSaved<T> const& saved,
                       NormGradients<T> const& gradients,
                       View2<T> dx,
                       View1<A> workspace) const {
  View2<T const> const dy = gradients.dy;
  View2<T const> const around = gradients.d_residual;
  if (family_ == Family::gpt2) {
    kernels::layer_norm_backward<T>(exec,
                                    {dy, x, weight_.value, saved.mean, saved.rstd, around},
                                    dx,
                                    weight_.gradient,
                                    bias_.gradient,
                                    workspace);
  } else {
    kernels::rms_norm_backward<T>(
        exec, {dy, x, weight_.value, saved.rstd, around}, dx, weight_.gradient, workspace);
  }
}

template class Norm<float>;
template class Norm<BFloat16>;
template class Norm<double>;

}  // namespace motley::model
