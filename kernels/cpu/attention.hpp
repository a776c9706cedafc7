#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.hpp"

namespace motley::kernels::cpu {

// The attention of kernels/attention.hpp on register-tiled products, for T float and BFloat16;
// same shapes and layouts. The workspace holds a scratch area per thread; an execution space with
// more threads than areas leaves the others idle.

/// Bytes for one scratch area per thread of the default execution space.
template <class T>
[[nodiscard]] std::size_t attention_workspace_bytes(AttentionShape const& shape);

template <class T>
void attention_forward(Exec const& exec,
                       AttentionShape const& shape,
                       View2<T const> const& qkv,
                       View2<T> const& out,
                       View3<float> const& lse,
                       View1<std::byte> const& workspace);

template <class T>
void attention_backward(Exec const& exec,
                        AttentionShape const& shape,
                        AttentionSaved<T> const& saved,
                        View2<T const> const& dout,
                        View2<T> const& dqkv,
                        View1<std::byte> const& workspace);

}  // namespace motley::kernels::cpu
