#include "kernels/rope.hpp"

#include "kernels/detail/loops.hpp"

namespace motley::kernels {
namespace {

template <class A>
void fill_table(Exec const& exec,
                RopeSpec const& spec,
                View2<A> const& cosine,
                View2<A> const& sine) {
  std::int64_t const half = spec.head_width / 2;
  double const theta = spec.theta;
  Kokkos::parallel_for(
      "motley::kernels::RopeTable::fill",
      Kokkos::RangePolicy<Exec>(exec, 0, spec.max_tokens * half),
      KOKKOS_LAMBDA(std::int64_t index) {
        std::int64_t const token = index / half;
        std::int64_t const k = index % half;
        double const exponent = -static_cast<double>(k) / static_cast<double>(half);
        double const angle = static_cast<double>(token) * Kokkos::pow(theta, exponent);
        cosine(token, k) = static_cast<A>(Kokkos::cos(angle));
        sine(token, k) = static_cast<A>(Kokkos::sin(angle));
      });
  exec.fence("motley::kernels::RopeTable::fill");
}

/// Rotates one row by +angle (direction 1) or -angle (direction -1).
template <class T>
struct RopeRotation {
  using A = Accumulator<T>;
  AttentionShape shape;
  A direction;
  RopeTable<A> table;
  View2<T> qkv;

  template <class Lanes>
  MOTLEY_FUNCTION void operator()(Lanes const& lanes, std::int64_t row) const {
    int const half = static_cast<int>(shape.head_width / 2);
    A const sign = direction;
    A const* const cosine = &table.cosine(row % shape.tokens, 0);
    A const* const sine = &table.sine(row % shape.tokens, 0);
    // Query and key heads are adjacent, so one loop covers both.
    for (std::int64_t head = 0; head < shape.heads + shape.kv_heads; ++head) {
      T* const first = &qkv(row, head * shape.head_width);
      T* const second = first + half;
      lanes.for_each(half, [=](int k) {
        A const x = static_cast<A>(first[k]);
        A const y = static_cast<A>(second[k]);
        A const s = sign * sine[k];
        first[k] = static_cast<T>(x * cosine[k] - y * s);
        second[k] = static_cast<T>(y * cosine[k] + x * s);
      });
    }
  }
};

template <class T>
void rotate(Exec const& exec,
            AttentionShape const& shape,
            Accumulator<T> direction,
            RopeTable<Accumulator<T>> const& table,
            View2<T> const& qkv) {
  std::int64_t const half = shape.head_width / 2;
  auto const table_rows = static_cast<std::int64_t>(table.cosine.extent(0));
  MOTLEY_VALIDATE(bug,
                  shape.tokens <= table_rows,
                  "windows of " << shape.tokens << " tokens meet a rotation table of " << table_rows
                                << " (it ends before the window does); make the "
                                << "table as long as the longest window");
  expect_shape(table.cosine, {table_rows, half});
  expect_shape(table.sine, {table_rows, half});
  expect_shape(qkv, {shape.rows(), shape.qkv_columns()});
  detail::for_each_row(exec,
                       "motley::kernels::Rope::rotate",
                       shape.rows(),
                       (shape.heads + shape.kv_heads) * shape.head_width,
                       RopeRotation<T>{shape, direction, table, qkv});
}

}  // namespace

template <class A>
RopeTable<A> make_rope_table(Exec const& exec, Arena& arena, RopeSpec const& spec) {
  MOTLEY_VALIDATE(
      bug,
      spec.theta > 0.0 && spec.max_tokens > 0 && spec.head_width > 0 && spec.head_width % 2 == 0,
      "a rotation table of theta " << spec.theta << ", head_width " << spec.head_width
                                   << ", max_tokens " << spec.max_tokens
                                   << " was asked for (sizes must be positive and the "
                                   << "head width even); check the model");
  auto const cosine =
      arena.make<A>("motley::kernels::RopeTable::cosine", spec.max_tokens, spec.head_width / 2);
  auto const sine =
      arena.make<A>("motley::kernels::RopeTable::sine", spec.max_tokens, spec.head_width / 2);
  if (!arena.is_counting()) fill_table<A>(exec, spec, cosine, sine);
  return {cosine, sine};
}

template <class T>
void rope_forward(Exec const& exec,
                  AttentionShape const& shape,
                  RopeTable<Accumulator<T>> const& table,
                  View2<T> const& qkv) {
  rotate<T>(exec, shape, Accumulator<T>{1}, table, qkv);
}

template <class T>
void rope_backward(Exec const& exec,
                   AttentionShape const& shape,
                   RopeTable<Accumulator<T>> const& table,
                   View2<T> const& dqkv) {
  rotate<T>(exec, shape, Accumulator<T>{-1}, table, dqkv);
}

template RopeTable<float> make_rope_table<float>(Exec const&, Arena&, RopeSpec const&);
template RopeTable<double> make_rope_table<double>(Exec const&, Arena&, RopeSpec const&);

template void rope_forward<float>(Exec const&,
                                  AttentionShape const&,
                                  RopeTable<float> const&,
                                  View2<float> const&);
template void rope_forward<BFloat16>(Exec const&,
                                     AttentionShape const&,
                                     RopeTable<float> const&,
                                     View2<BFloat16> const&);
template void rope_forward<double>(Exec const&,
                                   AttentionShape const&,
                                   RopeTable<double> const&,
                                   View2<double> const&);

template void rope_backward<float>(Exec const&,
                                   AttentionShape const&,
                                   RopeTable<float> const&,
                                   View2<float> const&);
template void rope_backward<BFloat16>(Exec const&,
                                      AttentionShape const&,
                                      RopeTable<float> const&,
                                      View2<BFloat16> const&);
template void rope_backward<double>(Exec const&,
                                    AttentionShape const&,
                                    RopeTable<double> const&,
                                    View2<double> const&);

}  // namespace motley::kernels
