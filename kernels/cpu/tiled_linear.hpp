#pragma once

#include <cstddef>

#include "kernels/cpu/shared.hpp"
#include "kernels/cpu/tiled_product.hpp"
#include "kernels/detail/matmul_backend.hpp"

namespace motley::kernels::cpu {

/// Linear operator on our own tile product, for any dtype: bf16 is widened to fp32 on the way into
/// the tiles, so its products run at fp32 speed.
///
/// The weight is kept twice, packed for y = x W and for dx = dy Wᵀ; for a weight gradient the
/// operand on the right is packed into the workspace. Tiles of C are handed out dynamically.
///
/// Bits     do not depend on the number of threads
template <class T>
class TiledLinear final : public detail::LinearBackend<T> {
 public:
  using A = Accumulator<T>;

  TiledLinear(Shared& shared, Arena& arena, LinearSpec const& spec);

  void pack(Exec const& exec, View2<T const> weight) override;
  void forward(Exec const& exec,
               View2<T const> x,
               Epilogue<T> const& epilogue,
               View2<T> y) override;
  void forward_wide(Exec const& exec, View2<T const> x, View2<A> y) override;
  void backward_input(Exec const& exec,
                      View2<T const> dy,
                      View2<T> dx,
                      Accumulate accumulate) override;
  void backward_weight(Exec const& exec,
                       View2<T const> x,
                       View2<T const> dy,
                       View2<A> dweight,
                       Accumulate accumulate) override;

 private:
  [[nodiscard]] TiledProduct<A, T> forward_product(View2<T const> x) const;

  Shared& shared_;
  LinearSpec spec_;
  A* forward_weight_ = nullptr;   ///< W [in, out], packed
  A* backward_weight_ = nullptr;  ///< Wᵀ [out, in], packed
};

}  // namespace motley::kernels::cpu
