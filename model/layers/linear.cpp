#include "model/layers/linear.hpp"

#include <utility>

#include "kernels/cast.hpp"
#include "kernels/reduce.hpp"

namespace motley::model {
namespace {

using kernels::Accumulate;
using kernels::WeightOrder;

template <class T>
kernels::LinearOperator<T> make_product(LayerContext const& context,
                                        std::string const& label,
                                        WeightOrder order,
                                        View2<T const> const& weight) {
  auto const rows = static_cast<std::int64_t>(weight.extent(0));
  auto const columns = static_cast<std::int64_t>(weight.extent(1));
  bool const is_out_in = order == WeightOrder::out_in;
  return {context.engine,
          context.arena,
          {label,
           order,
           is_out_in ? columns : rows,
           is_out_in ? rows : columns,
           context.max_rows,
           context.needs_backward}};
}

}  // namespace

template <class T>
ColumnLinear<T>::ColumnLinear(LayerContext const& context,
                              std::string const& label,
                              MatrixParameter<T> weight,
                              VectorParameter<T> bias)
    : group_{context.group},
      weight_{std::move(weight)},
      bias_{std::move(bias)},
      product_{make_product<T>(context, label, WeightOrder::out_in, weight_.value)} {}

template <class T>
void ColumnLinear<T>::pack(Exec const& exec) {
  product_.pack(exec, weight_.value);
}

template <class T>
void ColumnLinear<T>::forward(Exec const& exec, View2<T const> x, View2<T> y) {
  kernels::Epilogue<T> epilogue;
  epilogue.bias = bias_.value;
  product_.forward(exec, x, epilogue, y);
}

template <class T>
void ColumnLinear<T>::forward_gelu(Exec const& exec,
                                   View2<T const> x,
                                   View2<T> before_gelu,
                                   View2<T> y) {
  kernels::Epilogue<T> epilogue;
  epilogue.bias = bias_.value;
  epilogue.gelu = true;
  epilogue.before_gelu = before_gelu;
  product_.forward(exec, x, epilogue, y);
}

template <class T>
void ColumnLinear<T>::backward_input(Exec const& exec, View2<T const> dy, View2<T> dx) {
  product_.backward_input(exec, dy, dx, Accumulate::no);
  group_.all_reduce_sum(exec, dx);
}

template <class T>
void ColumnLinear<T>::backward_weight(Pass const& pass, View2<T const> x, View2<T const> dy) {
  product_.backward_weight(pass.exec, x, dy, weight_.gradient, pass.weight_gradients);
  if (!bias_.is_empty()) kernels::column_sum<T>(pass.exec, dy, bias_.gradient);
}

template <class T>
ResidualOutput<T>::ResidualOutput(LayerContext const& context,
                                  std::string const& label,
                                  MatrixParameter<T> weight,
                                  VectorParameter<T> bias,
                                  std::uint64_t dropout_site)
    : group_{context.group},
      weight_{std::move(weight)},
      bias_{std::move(bias)},
      dropout_site_{dropout_site},
      product_{make_product<T>(context, label, WeightOrder::in_out, weight_.value)} {}

template <class T>
void ResidualOutput<T>::pack(Exec const& exec) {
  product_.pack(exec, weight_.value);
}

template <class T>
void ResidualOutput<T>::forward(Pass const& pass,
                                View2<T const> x,
                                View2<T const> residual,
                                View2<T> y) {
  bool const has_dropout = pass.dropout > 0.0;
  kernels::Epilogue<T> epilogue;
  if (group_.rank() == 0) {  // the group sums: one rank brings what is not a product
    epilogue.bias = bias_.value;
    if (!has_dropout) epilogue.residual = residual;
  }
  product_.forward(pass.exec, x, epilogue, y);
  group_.all_reduce_sum(pass.exec, y);
  if (!has_dropout) return;
  apply_dropout(pass, dropout_site_, y);
  kernels::axpy<T>(pass.exec, 1, flat_of(residual), flat_of(y));
}

template <class T>
void ResidualOutput<T>::backward_input(Pass const& pass,
                                       View2<T const> dy,
                                       View2<T> d_branch,
                                       View2<T> dx) {
  if (pass.dropout > 0.0) {
    kernels::cast<T, T>(pass.exec, flat_of(dy), flat_of(d_branch));
    apply_dropout(pass, dropout_site_, d_branch);
    dy = d_branch;
  }
  product_.backward_input(pass.exec, dy, dx, Accumulate::no);
}

template <class T>
void ResidualOutput<T>::backward_weight(Pass const& pass,
                                        View2<T const> x,
                                        View2<T const> dy,
                                        View2<T const> d_branch) {
  if (pass.dropout > 0.0) dy = d_branch;
  product_.backward_weight(pass.exec, x, dy, weight_.gradient, pass.weight_gradients);
  if (!bias_.is_empty()) kernels::column_sum<T>(pass.exec, dy, bias_.gradient);
}

template class ColumnLinear<float>;
template class ColumnLinear<BFloat16>;
template class ColumnLinear<double>;
template class ResidualOutput<float>;
template class ResidualOutput<BFloat16>;
template class ResidualOutput<double>;

}  // namespace motley::model
