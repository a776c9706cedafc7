#include "kernels/attention.hpp"

#include <type_traits>

#include "kernels/cpu/attention.hpp"
#include "kernels/detail/portable_attention.hpp"

namespace motley::kernels {
namespace {

/// Whether T on this device has kernels of its own in kernels/cpu.
template <class T>
constexpr bool is_tiled =
    std::is_same_v<Exec, Kokkos::DefaultHostExecutionSpace> && !std::is_same_v<T, double>;

void expect_valid(AttentionShape const& shape) {
  bool const is_positive = shape.batch > 0 && shape.tokens > 0 && shape.heads > 0 &&
                           shape.kv_heads > 0 && shape.head_width > 0;
  MOTLEY_VALIDATE(bug,
                  is_positive && shape.heads % shape.kv_heads == 0,
                  "an attention of batch "
                      << shape.batch << ", tokens " << shape.tokens << ", heads " << shape.heads
                      << ", kv_heads " << shape.kv_heads << ", head_width " << shape.head_width
                      << " was asked for (sizes must be positive and heads a multiple of kv_heads)"
                      << "; check the model before the first step");
}

template <class T>
void expect_workspace(AttentionShape const& shape, View1<std::byte> const& workspace) {
  std::size_t const needed = attention_workspace_bytes<T>(shape);
  MOTLEY_VALIDATE(bug,
                  workspace.size() >= needed,
                  "the attention workspace has "
                      << workspace.size() << " bytes (" << needed
                      << " are needed); size it with attention_workspace_bytes");
}

}  // namespace

template <class T>
std::size_t attention_workspace_bytes(AttentionShape const& shape) {
  expect_valid(shape);
  if constexpr (is_tiled<T>) {
    return cpu::attention_workspace_bytes<T>(shape);
  } else {
    return detail::portable_attention_workspace_bytes<T>(shape);
  }
}

template <class T>
void attention_forward(Exec const& exec,
                       AttentionShape const& shape,
                       View2<T const> const& qkv,
                       View2<T> const& out,
                       View3<Accumulator<T>> const& lse,
                       View1<std::byte> const& workspace) {
  expect_workspace<T>(shape, workspace);
  expect_shape(qkv, {shape.rows(), shape.qkv_columns()});
  expect_shape(out, {shape.rows(), shape.heads * shape.head_width});
  expect_shape(lse, {shape.batch, shape.heads, shape.tokens});
  if constexpr (is_tiled<T>) {
    cpu::attention_forward<T>(exec, shape, qkv, out, lse, workspace);
  } else {
    detail::portable_attention_forward<T>(exec, shape, qkv, out, lse);
  }
}

template <class T>
void attention_backward(Exec const& exec,
                        AttentionShape const& shape,
                        AttentionSaved<T> const& saved,
                        View2<T const> const& dout,
                        View2<T> const& dqkv,
                        View1<std::byte> const& workspace) {
  expect_workspace<T>(shape, workspace);
  expect_shape(saved.qkv, {shape.rows(), shape.qkv_columns()});
  expect_shape(saved.out, {shape.rows(), shape.heads * shape.head_width});
  expect_shape(saved.lse, {shape.batch, shape.heads, shape.tokens});
  expect_shape(dout, {shape.rows(), shape.heads * shape.head_width});
  expect_shape(dqkv, {shape.rows(), shape.qkv_columns()});
  if constexpr (is_tiled<T>) {
    cpu::attention_backward<T>(exec, shape, saved, dout, dqkv, workspace);
  } else {
    detail::portable_attention_backward<T>(exec, shape, saved, dout, dqkv, workspace);
  }
}

template std::size_t attention_workspace_bytes<float>(AttentionShape const&);
template std::size_t attention_workspace_bytes<BFloat16>(AttentionShape const&);
template std::size_t attention_workspace_bytes<double>(AttentionShape const&);

template void attention_forward<float>(Exec const&,
                                       AttentionShape const&,
                                       View2<float const> const&,
                                       View2<float> const&,
                                       View3<float> const&,
                                       View1<std::byte> const&);
template void attention_forward<BFloat16>(Exec const&,
                                          AttentionShape const&,
                                          View2<BFloat16 const> const&,
                                          View2<BFloat16> const&,
                                          View3<float> const&,
                                          View1<std::byte> const&);
template void attention_forward<double>(Exec const&,
                                        AttentionShape const&,
                                        View2<double const> const&,
                                        View2<double> const&,
                                        View3<double> const&,
                                        View1<std::byte> const&);

template void attention_backward<float>(Exec const&,
                                        AttentionShape const&,
                                        AttentionSaved<float> const&,
                                        View2<float const> const&,
                                        View2<float> const&,
                                        View1<std::byte> const&);
template void attention_backward<BFloat16>(Exec const&,
                                           AttentionShape const&,
                                           AttentionSaved<BFloat16> const&,
                                           View2<BFloat16 const> const&,
                                           View2<BFloat16> const&,
                                           View1<std::byte> const&);
template void attention_backward<double>(Exec const&,
                                         AttentionShape const&,
                                         AttentionSaved<double> const&,
                                         View2<double const> const&,
                                         View2<double> const&,
                                         View1<std::byte> const&);

}  // namespace motley::kernels
