#pragma once

// What every way of multiplying must do, as functions that the tests of each way call.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/linear.hpp"
#include "kernels/reference/matmul.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels::test {

using motley::test::is_close;
using motley::test::random_view;
using motley::test::Tolerance;
using motley::test::values_of;
using reference::Matrix;

struct Sizes {
  std::int64_t rows, in, out;
};

// Around one and several register tiles, and of one row, one input, one output.
inline constexpr Sizes odd_sizes[] = {
    {1, 1, 1}, {1, 37, 53}, {7, 64, 1}, {33, 1, 65}, {130, 131, 259}, {65, 800, 17}};
inline constexpr WeightOrder orders[] = {WeightOrder::out_in, WeightOrder::in_out};

/// An operator with its engine and memory, and random operands with padded rows.
template <class T>
struct Linear {
  using A = Accumulator<T>;

  Linear(MatmulConfig const& config, WeightOrder order, Sizes const& s, std::int64_t max_rows = 0)
      : engine{config}, arena{Arena::counting()} {
    LinearSpec const spec{"test", order, s.in, s.out, max_rows == 0 ? s.rows : max_rows};
    {
      LinearOperator<T> const sizes{engine, arena, spec};
      engine.allocate_workspace(arena);
    }
    arena = Arena{arena.used_bytes()};
    product.emplace(engine, arena, spec);
    engine.allocate_workspace(arena);
    bool const is_out_in = order == WeightOrder::out_in;
    weight = random_view<T>("weight", is_out_in ? s.out : s.in, is_out_in ? s.in : s.out, 1, 5);
    x = random_view<T>("x", s.rows, s.in, 2, 3);
    dy = random_view<T>("dy", s.rows, s.out, 3, 1);
    product->pack(exec, weight);
    Matrix const stored = reference::matrix_of(weight);
    w = is_out_in ? reference::transpose(stored) : stored;
  }

  void fence() const { exec.fence("motley::tests::Linear::fence"); }

  /// xᵀ dy in the order of the weight.
  [[nodiscard]] Matrix expected_gradient() const {
    Matrix const in_out = reference::multiply(reference::transpose(reference::matrix_of(x)),
                                              reference::matrix_of(dy));
    return product->spec().order == WeightOrder::out_in ? reference::transpose(in_out) : in_out;
  }

  Exec exec;
  MatmulEngine engine;
  Arena arena;
  std::optional<LinearOperator<T>> product;
  View2<T> weight, x, dy;
  Matrix w{0, 0};  ///< [in, out]
};

template <class T>
void check_forward(MatmulConfig const& config) {
  for (Sizes const& s : odd_sizes) {
    for (WeightOrder const order : orders) {
      Linear<T> linear{config, order, s};
      View2<T> const y = random_view<T>("y", s.rows, s.out, 9, 2);
      linear.product->forward(linear.exec, linear.x, {}, y);
      linear.fence();
      Matrix const expected = reference::multiply(reference::matrix_of(linear.x), linear.w);
      EXPECT_TRUE(is_close("y", values_of(y), expected.values, {dtype_of<T>, s.in}));
    }
  }
}

template <class T>
void check_forward_wide(MatmulConfig const& config) {
  using A = Accumulator<T>;
  for (Sizes const& s : odd_sizes) {
    Linear<T> linear{config, WeightOrder::out_in, s};
    View2<A> const y = random_view<A>("y", s.rows, s.out, 9, 2);
    linear.product->forward_wide(linear.exec, linear.x, y);
    linear.fence();
    Matrix const expected = reference::multiply(reference::matrix_of(linear.x), linear.w);
    EXPECT_TRUE(is_close("y", values_of(y), expected.values, {dtype_of<A>, s.in}));
  }
}

/// One forward product with the parts of an epilogue that are asked for.
struct EpilogueCase {
  bool bias, gelu, residual, in_place, keep;
};

template <class T>
void check_epilogue(MatmulConfig const& config, EpilogueCase const& c) {
  Sizes const s{70, 45, 131};
  Linear<T> linear{config, WeightOrder::out_in, s};
  View1<T> const bias = random_view<T>("bias", s.out, 5);
  View2<T> const y = random_view<T>("y", s.rows, s.out, 6, 2);
  View2<T> const kept = random_view<T>("kept", s.rows, s.out, 7, 4);
  View2<T> const residual = c.in_place ? y : random_view<T>("residual", s.rows, s.out, 8, 6);
  Matrix const residual_before = reference::matrix_of(residual);
  Matrix bias_row{1, s.out};
  bias_row.values = values_of(bias);

  Epilogue<T> epilogue;
  if (c.bias) epilogue.bias = bias;
  if (c.residual) epilogue.residual = residual;
  if (c.keep) epilogue.before_gelu = kept;
  epilogue.gelu = c.gelu;
  linear.product->forward(linear.exec, linear.x, epilogue, y);
  linear.fence();

  Matrix const x = reference::matrix_of(linear.x);
  Matrix const* const b = c.bias ? &bias_row : nullptr;
  Matrix const expected =
      reference::linear_forward(x, linear.w, b, c.residual ? &residual_before : nullptr, c.gelu);
  EXPECT_TRUE(is_close("y", values_of(y), expected.values, {dtype_of<T>, s.in}));
  if (!c.keep) return;
  Matrix const before = reference::linear_forward(x, linear.w, b, nullptr, false);
  EXPECT_TRUE(is_close("kept", values_of(kept), before.values, {dtype_of<T>, s.in}));
}

template <class T>
void check_epilogues(MatmulConfig const& config) {
  for (unsigned bits = 0; bits < 32; ++bits) {
    EpilogueCase const c{
        (bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0, (bits & 8U) != 0, (bits & 16U) != 0};
    if (c.in_place && !c.residual) continue;
    SCOPED_TRACE("epilogue " + std::to_string(bits));
    check_epilogue<T>(config, c);
  }
}

template <class T>
void check_backward_input(MatmulConfig const& config) {
  for (Sizes const& s : odd_sizes) {
    for (WeightOrder const order : orders) {
      Linear<T> linear{config, order, s};
      View2<T> const dx = random_view<T>("dx", s.rows, s.in, 9, 2);
      Matrix expected =
          reference::multiply(reference::matrix_of(linear.dy), reference::transpose(linear.w));
      linear.product->backward_input(linear.exec, linear.dy, dx, Accumulate::no);
      linear.fence();
      EXPECT_TRUE(is_close("dx", values_of(dx), expected.values, {dtype_of<T>, s.out}));
      Matrix const before = reference::matrix_of(dx);
      for (std::size_t i = 0; i < before.values.size(); ++i) {
        expected.values[i] += before.values[i];
      }
      linear.product->backward_input(linear.exec, linear.dy, dx, Accumulate::yes);
      linear.fence();
      EXPECT_TRUE(is_close("sum", values_of(dx), expected.values, {dtype_of<T>, s.out}));
    }
  }
}

template <class T>
void check_backward_weight(MatmulConfig const& config) {
  using A = Accumulator<T>;
  for (Sizes const& s : odd_sizes) {
    for (WeightOrder const order : orders) {
      Linear<T> linear{config, order, s};
      Matrix expected = linear.expected_gradient();
      auto const dweight = random_view<A>("dweight", expected.rows, expected.columns, 9, 3);
      linear.product->backward_weight(linear.exec, linear.x, linear.dy, dweight, Accumulate::no);
      linear.fence();
      EXPECT_TRUE(is_close("once", values_of(dweight), expected.values, {dtype_of<A>, s.rows}));
      linear.product->backward_weight(linear.exec, linear.x, linear.dy, dweight);
      linear.fence();
      for (double& value : expected.values) value *= 2;
      EXPECT_TRUE(is_close("twice", values_of(dweight), expected.values, {dtype_of<A>, s.rows}));
    }
  }
}

/// More rows than one block of any implementation, then fewer, with one operator; the hook runs.
template <class T>
void check_many_and_few_rows(MatmulConfig config) {
  using A = Accumulator<T>;
  std::int64_t calls = 0;
  config.between_tiles = [&calls] { ++calls; };
  Sizes const s{1100, 24, 40};
  Linear<T> linear{config, WeightOrder::in_out, s};
  View2<T> const y = random_view<T>("y", s.rows, s.out, 4);
  View2<T> const dx = random_view<T>("dx", s.rows, s.in, 5);
  View2<A> const dweight = random_view<A>("dweight", s.in, s.out, 6);
  Matrix const w_transposed = reference::transpose(linear.w);
  for (std::int64_t const rows : {s.rows, std::int64_t{1}, std::int64_t{513}, s.rows}) {
    auto const first = Kokkos::pair<std::size_t, std::size_t>{0, static_cast<std::size_t>(rows)};
    View2<T> const x_part = Kokkos::subview(linear.x, first, Kokkos::ALL);
    View2<T> const dy_part = Kokkos::subview(linear.dy, first, Kokkos::ALL);
    View2<T> const y_part = Kokkos::subview(y, first, Kokkos::ALL);
    View2<T> const dx_part = Kokkos::subview(dx, first, Kokkos::ALL);
    calls = 0;
    linear.product->forward(linear.exec, x_part, {}, y_part);
    EXPECT_GE(calls, (rows - 1) / 512);
    linear.product->backward_input(linear.exec, dy_part, dx_part, Accumulate::no);
    linear.product->backward_weight(linear.exec, x_part, dy_part, dweight, Accumulate::no);
    linear.fence();
    Matrix const x = reference::matrix_of(x_part);
    Matrix const dy = reference::matrix_of(dy_part);
    Matrix const y_expected = reference::multiply(x, linear.w);
    Matrix const dx_expected = reference::multiply(dy, w_transposed);
    Matrix const dw_expected = reference::multiply(reference::transpose(x), dy);
    EXPECT_TRUE(is_close("y", values_of(y_part), y_expected.values, {dtype_of<T>, s.in}));
    EXPECT_TRUE(is_close("dx", values_of(dx_part), dx_expected.values, {dtype_of<T>, s.out}));
    EXPECT_TRUE(is_close("dw", values_of(dweight), dw_expected.values, {dtype_of<A>, rows}));
  }
}

template <class T>
void check_repeats_bit_for_bit(MatmulConfig const& config) {
  using A = Accumulator<T>;
  Sizes const s{100, 300, 200};
  Linear<T> linear{config, WeightOrder::out_in, s};
  View2<T> const y = random_view<T>("y", s.rows, s.out, 4);
  View2<T> const dx = random_view<T>("dx", s.rows, s.in, 5);
  View2<A> const dweight = random_view<A>("dweight", s.out, s.in, 6);
  auto const results = [&] {
    linear.product->forward(linear.exec, linear.x, {}, y);
    linear.product->backward_input(linear.exec, linear.dy, dx, Accumulate::no);
    linear.product->backward_weight(linear.exec, linear.x, linear.dy, dweight, Accumulate::no);
    linear.fence();
    return std::vector{values_of(y), values_of(dx), values_of(dweight)};
  };
  EXPECT_EQ(results(), results());
}

/// A weight that changed is seen after it is packed again, from another place too.
template <class T>
void check_packing_again(MatmulConfig const& config) {
  Sizes const s{20, 70, 50};
  Linear<T> linear{config, WeightOrder::out_in, s};
  View2<T> const other = random_view<T>("other", s.out, s.in, 11, 9);
  View2<T> const y = random_view<T>("y", s.rows, s.out, 4);
  linear.product->forward(linear.exec, linear.x, {}, y);
  linear.product->pack(linear.exec, other);
  linear.product->forward(linear.exec, linear.x, {}, y);
  linear.fence();
  Matrix const expected = reference::multiply(reference::matrix_of(linear.x),
                                              reference::transpose(reference::matrix_of(other)));
  EXPECT_TRUE(is_close("y", values_of(y), expected.values, {dtype_of<T>, s.in}));
}

}  // namespace motley::kernels::test
