#include "kernels/norm.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reference/norm.hpp"
#include "tests/kernels/element_types.hpp"
#include "tests/kernels/finite_differences.hpp"
#include "tests/kernels/random_view.hpp"
#include "tests/kernels/threads.hpp"
#include "tests/kernels/tolerance.hpp"

namespace motley::kernels {
namespace {

using reference::Matrix;
using reference::NormKind;
using test::is_close;
using test::random_view;
using test::values_of;

struct Sizes {
  std::int64_t rows, width;
};

// Widths that are no multiple of a vector or of the four streams of a sum; rows that fill no tile,
// one tile, many tiles (16 rows each), and more than 128 tiles of 16.
constexpr Sizes sizes[] = {{1, 3}, {3, 5}, {16, 64}, {17, 63}, {50, 129}, {33, 768}, {2100, 31}};

/// One norm with its operands in padded rows, and the results of a forward and backward pass.
template <class T>
struct Norm {
  using A = Accumulator<T>;
  static constexpr A eps{1e-5F};

  Norm(NormKind norm_kind, Sizes const& s)
      : kind{norm_kind},
        x{random_view<T>("x", s.rows, s.width, 1, 3)},
        dy{random_view<T>("dy", s.rows, s.width, 2, 1)},
        d_residual{random_view<T>("d_residual", s.rows, s.width, 3, 2)},
        y{random_view<T>("y", s.rows, s.width, 4, 5)},
        dx{random_view<T>("dx", s.rows, s.width, 5, 4)},
        weight{random_view<T>("weight", s.width, 6)},
        bias{random_view<T>("bias", s.width, 7)},
        mean{random_view<A>("mean", s.rows, 8)},
        rstd{random_view<A>("rstd", s.rows, 9)},
        dweight{random_view<A>("dweight", s.width, 10)},
        dbias{random_view<A>("dbias", s.width, 11)},
        workspace{random_view<A>("workspace", norm_workspace_size(s.rows, s.width), 12)} {}

  void forward(Exec const& exec = {}) const {
    if (kind == NormKind::layer) {
      layer_norm_forward<T>(exec, x, weight, bias, eps, y, {mean, rstd});
    } else {
      rms_norm_forward<T>(exec, x, weight, eps, y, rstd);
    }
    exec.fence();
  }
  void backward(View2<T const> around, Exec const& exec = {}) const {
    if (kind == NormKind::layer) {
      layer_norm_backward<T>(
          exec, {dy, x, weight, mean, rstd, around}, dx, dweight, dbias, workspace);
    } else {
      rms_norm_backward<T>(exec, {dy, x, weight, rstd, around}, dx, dweight, workspace);
    }
    exec.fence();
  }
  [[nodiscard]] Matrix weight_row() const { return row_of(weight); }
  /// The bias, or zeros for RMSNorm, which has none.
  [[nodiscard]] Matrix bias_row() const {
    return kind == NormKind::layer ? row_of(bias) : Matrix{1, x.extent_int(1)};
  }
  static Matrix row_of(View1<T> const& view) {
    Matrix result{1, view.extent_int(0)};
    result.values = values_of(view);
    return result;
  }
  void expect_forward_is_reference() const {
    Matrix const expected =
        norm_forward(kind, reference::matrix_of(x), weight_row(), bias_row(), eps);
    EXPECT_TRUE(is_close("y", values_of(y), expected.values, {dtype_of<T>, x.extent_int(1)}));
  }
  /// `before` are dweight and dbias before the backward pass, which adds to them.
  void expect_backward_is_reference(std::vector<double> const& dweight_before,
                                    std::vector<double> const& dbias_before,
                                    bool has_residual) const {
    reference::NormGradients expected =
        norm_backward(kind, reference::matrix_of(dy), reference::matrix_of(x), weight_row(), eps);
    Matrix const around = reference::matrix_of(d_residual);
    for (std::size_t i = 0; has_residual && i < around.values.size(); ++i) {
      expected.dx.values[i] += around.values[i];
    }
    EXPECT_TRUE(is_close("dx", values_of(dx), expected.dx.values, {dtype_of<T>, x.extent_int(1)}));
    for (std::size_t j = 0; j < dweight.extent(0); ++j) {
      expected.dweight.values[j] += dweight_before[j];
      expected.dbias.values[j] += dbias_before[j];
    }
    test::Tolerance const sums{dtype_of<A>, x.extent_int(0)};
    EXPECT_TRUE(is_close("dweight", values_of(dweight), expected.dweight.values, sums));
    if (kind == NormKind::rms) return;
    EXPECT_TRUE(is_close("dbias", values_of(dbias), expected.dbias.values, sums));
  }

  NormKind kind;
  View2<T> x, dy, d_residual, y, dx;
  View1<T> weight, bias;
  View1<A> mean, rstd, dweight, dbias, workspace;
};

template <class T>
class NormTest : public testing::Test {};
TYPED_TEST_SUITE(NormTest, test::ElementTypes, test::ElementTypeNames);

template <class T>
void expect_equals_reference(NormKind kind) {
  for (Sizes const& s : sizes) {
    SCOPED_TRACE(std::to_string(s.rows) + " x " + std::to_string(s.width));
    Norm<T> const norm{kind, s};
    norm.forward();
    norm.expect_forward_is_reference();
    for (bool const has_residual : {false, true}) {
      std::vector<double> const dweight = values_of(norm.dweight);
      std::vector<double> const dbias = values_of(norm.dbias);
      norm.backward(has_residual ? View2<T const>{norm.d_residual} : View2<T const>{});
      norm.expect_backward_is_reference(dweight, dbias, has_residual);
    }
  }
}

TYPED_TEST(NormTest, layer_norm_equals_the_reference) {
  expect_equals_reference<TypeParam>(NormKind::layer);
}

TYPED_TEST(NormTest, rms_norm_equals_the_reference) {
  expect_equals_reference<TypeParam>(NormKind::rms);
}

TYPED_TEST(NormTest, layer_norm_of_rows_far_from_zero_keeps_its_digits) {
  using A = Accumulator<TypeParam>;
  Norm<TypeParam> const norm{NormKind::layer, {2, 96}};
  // E[x²] - E[x]² would leave nothing of a variance of 1 beside a mean of 2¹³ in fp32.
  A const far{sizeof(TypeParam) == 2 ? 8.0F : 8192.0F};
  for (std::size_t i = 0; i < norm.x.extent(0); ++i) {
    for (std::size_t j = 0; j < norm.x.extent(1); ++j) {
      norm.x(i, j) = static_cast<TypeParam>(far + static_cast<A>(j % 2 == 0 ? 1.0F : -1.0F));
    }
  }
  norm.forward();
  norm.expect_forward_is_reference();
}

TYPED_TEST(NormTest, layer_norm_of_one_column_is_the_bias) {
  Norm<TypeParam> const norm{NormKind::layer, {3, 1}};
  norm.forward();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(static_cast<double>(norm.y(i, 0)), static_cast<double>(norm.bias(0)));
  }
}

template <class T>
void expect_in_place_is_the_same(NormKind kind) {
  Norm<T> const apart{kind, {20, 37}};
  apart.forward();
  apart.backward(apart.d_residual);
  Norm<T> in_place{kind, {20, 37}};
  in_place.forward();
  in_place.dx = in_place.d_residual;
  in_place.backward(in_place.d_residual);
  EXPECT_EQ(values_of(in_place.dx), values_of(apart.dx));
  in_place.y = in_place.x;
  in_place.forward();
  EXPECT_EQ(values_of(in_place.y), values_of(apart.y));
}

TYPED_TEST(NormTest, works_in_place) {
  expect_in_place_is_the_same<TypeParam>(NormKind::layer);
  expect_in_place_is_the_same<TypeParam>(NormKind::rms);
}

TYPED_TEST(NormTest, bits_do_not_depend_on_the_number_of_threads) {
  for (NormKind const kind : {NormKind::layer, NormKind::rms}) {
    Norm<TypeParam> const one{kind, {301, 65}};
    Norm<TypeParam> const two{kind, {301, 65}};
    one.forward(test::exec_with_threads(1));
    one.backward(one.d_residual, test::exec_with_threads(1));
    two.forward(test::exec_with_threads(2));
    two.backward(two.d_residual, test::exec_with_threads(2));
    EXPECT_EQ(values_of(one.y), values_of(two.y));
    EXPECT_EQ(values_of(one.rstd), values_of(two.rstd));
    EXPECT_EQ(values_of(one.dx), values_of(two.dx));
    EXPECT_EQ(values_of(one.dweight), values_of(two.dweight));
    EXPECT_EQ(values_of(one.dbias), values_of(two.dbias));
  }
}

void expect_gradients_are_derivatives(NormKind kind) {
  Norm<double> const norm{kind, {5, 11}};
  Kokkos::deep_copy(norm.dweight, 0.0);
  Kokkos::deep_copy(norm.dbias, 0.0);
  norm.forward();
  norm.backward({});
  auto const loss = [&] {
    norm.forward();
    return test::inner_product(norm.dy, norm.y);
  };
  EXPECT_TRUE(test::is_gradient("dx", norm.x, norm.dx, loss));
  EXPECT_TRUE(test::is_gradient("dweight", norm.weight, norm.dweight, loss));
  if (kind == NormKind::layer) {
    EXPECT_TRUE(test::is_gradient("dbias", norm.bias, norm.dbias, loss));
  }
}

TEST(NormGradientTest, layer_norm_gradients_are_derivatives) {
  expect_gradients_are_derivatives(NormKind::layer);
}

TEST(NormGradientTest, rms_norm_gradients_are_derivatives) {
  expect_gradients_are_derivatives(NormKind::rms);
}

template <class Call>
void expect_bug(Call const& call) {
  try {
    call();
    ADD_FAILURE() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bug);
  }
}

TEST(NormShapeTest, wrong_shapes_are_bugs) {
  for (NormKind const kind : {NormKind::layer, NormKind::rms}) {
    Norm<float> const good{kind, {20, 8}};
    auto const broken = [&](auto const& breaking) {
      Norm<float> norm = good;
      breaking(norm);
      return norm;
    };
    expect_bug([&] { broken([](auto& n) { n.y = random_view<float>("y", 20, 7, 1); }).forward(); });
    expect_bug([&] { broken([](auto& n) { n.weight = View1<float>("w", 7); }).forward(); });
    expect_bug([&] { broken([](auto& n) { n.rstd = View1<float>("r", 19); }).forward(); });
    expect_bug([&] { broken([](auto& n) { n.dweight = View1<float>("w", 9); }).backward({}); });
    expect_bug([&] { broken([](auto& n) { n.workspace = View1<float>("w", 31); }).backward({}); });
    expect_bug([&] { good.backward(random_view<float>("d", 19, 8, 1)); });
  }
}

}  // namespace
}  // namespace motley::kernels
