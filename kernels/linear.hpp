#pragma once

// Shapes   R rows (batch times tokens), K width going in, C width going out

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/base/arena.hpp"
#include "kernels/base/dtype.hpp"
#include "kernels/base/view.hpp"

namespace motley::kernels {

/// How a weight lies in memory: the split dim first (column-parallel: out, row-parallel: in).
enum class WeightOrder { out_in, in_out };

enum class Accumulate { no, yes };

/// Which program multiplies. fp64 is always multiplied by ours, which widens bf16 to fp32.
enum class ProductMode {
  automatic,  ///< the library where it knows a fast way for this CPU and dtype, else ours
  library,    ///< oneDNN, however it does it (bf16 needs AVX-512)
  portable,   ///< ours
};

struct MatmulConfig {
  ProductMode mode = ProductMode::automatic;
  /// Called by the thread that started the product, between its tiles: the place to advance
  /// messages. Must not start a kernel. Empty: nothing is called.
  std::function<void()> between_tiles;
};

/// What one operator multiplies with.
struct LinearSpec {
  std::string label;  ///< names its memory, e.g. "layers.3.attention.qkv"
  WeightOrder order = WeightOrder::out_in;
  std::int64_t in = 0;        ///< K
  std::int64_t out = 0;       ///< C
  std::int64_t max_rows = 0;  ///< most rows of one call
  bool needs_backward = true;
};

/// What is done to the product before it is stored: y = gelu(x W + bias) + residual.
template <class T>
struct Epilogue {
  View1<T const> bias;      ///< [C], or empty
  View2<T const> residual;  ///< [R, C], or empty; may be y itself
  bool gelu = false;        ///< tanh form, as GPT-2 has it
  View2<T> before_gelu;     ///< [R, C], or empty: keeps x W + bias for the backward pass
};

namespace detail {
class MatmulBackend;
template <class T>
class LinearBackend;
}  // namespace detail

/// The matrix products of one rank: chooses how to multiply, owns what the operators share.
///
/// Make one, then every LinearOperator, then call `allocate_workspace` once. It must outlive its
/// operators. One thread at a time may use it.
class MatmulEngine {
 public:
  /// Throws Error{device} if the build has no products for its device, or the CPU cannot do the
  /// forced mode.
  explicit MatmulEngine(MatmulConfig config = {});
  MatmulEngine(MatmulEngine&&) noexcept;
  MatmulEngine& operator=(MatmulEngine&&) noexcept;
  MatmulEngine(MatmulEngine const&) = delete;
  MatmulEngine& operator=(MatmulEngine const&) = delete;
  ~MatmulEngine();

  /// Takes the scratch memory that the operators made so far need from the arena.
  void allocate_workspace(Arena& arena);

  /// How products are done, for the start-up report: "fp32: oneDNN 2.6.3 (avx512_core), packed; …".
  [[nodiscard]] std::string description() const;

  /// Rate of the best product of this dtype at a favourable shape: what MFU is measured against.
  /// Takes about 0.3 s and allocates its own memory.
  [[nodiscard]] double measured_peak_flop_per_s(Exec const& exec, DType dtype) const;

  [[nodiscard]] detail::MatmulBackend& backend() const { return *backend_; }

 private:
  MatmulConfig config_;
  std::unique_ptr<detail::MatmulBackend> backend_;
};

/// One linear layer y = x W with its gradients; W is one weight, or adjacent ones seen as one.
///
/// Layout   every view: last dim contiguous, rows may be further apart than their width
/// Types    x, y, dy, dx, W of T (float, BFloat16, double); sums and weight gradients of
///          A = Accumulator<T>
/// Runs on  `exec`, asynchronous; uses the workspace of its engine, so calls of one engine are
///          made on one `exec`
/// Memory   nothing is allocated except at the first call with a new number of rows
/// Bits     the same for the same operands, build, CPU type and number of threads; our own products
///          do not depend on the number of threads
/// Throws   Error{bug} if extents disagree, rows exceed `max_rows`, nothing was packed, or a
///          gradient is asked of a forward-only operator
template <class T>
class LinearOperator {
 public:
  using A = Accumulator<T>;

  /// Takes room for packed weights from the arena, which may be a counting one.
  LinearOperator(MatmulEngine& engine, Arena& arena, LinearSpec spec);
  LinearOperator(LinearOperator&&) noexcept;
  LinearOperator& operator=(LinearOperator&&) noexcept;
  LinearOperator(LinearOperator const&) = delete;
  LinearOperator& operator=(LinearOperator const&) = delete;
  ~LinearOperator();

  [[nodiscard]] LinearSpec const& spec() const { return spec_; }

  /// Prepares the weight, as stored ([C, K] or [K, C]); once after each change of its values. The
  /// view is kept and must stay alive: products may read it.
  void pack(Exec const& exec, View2<T const> weight);

  /// y = gelu(x W + bias) + residual, each part as `epilogue` asks. x [R, K] -> y [R, C].
  void forward(Exec const& exec, View2<T const> x, Epilogue<T> const& epilogue, View2<T> y);

  /// y = x W, kept in A: logits. x [R, K] -> y [R, C].
  void forward_wide(Exec const& exec, View2<T const> x, View2<A> y);

  /// dx (+)= dy Wᵀ. dy [R, C] -> dx [R, K].
  void backward_input(Exec const& exec, View2<T const> dy, View2<T> dx, Accumulate accumulate);

  /// dweight (+)= xᵀ dy, in the order the weight is stored. x [R, K], dy [R, C]. The first product
  /// of a step may write (`Accumulate::no`): that saves a pass of zeros over all gradients.
  void backward_weight(Exec const& exec,
                       View2<T const> x,
                       View2<T const> dy,
                       View2<A> dweight,
                       Accumulate accumulate = Accumulate::yes);

 private:
  [[nodiscard]] Shape weight_shape() const;
  void expect_rows(std::int64_t rows) const;
  void expect_packed() const;
  void expect_backward() const;

  LinearSpec spec_;
  bool is_packed_ = false;
  std::unique_ptr<detail::LinearBackend<T>> backend_;
};

}  // namespace motley::kernels
