#pragma once

// The only place that talks to oneDNN, which this folder calls "the library".

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include <dnnl.hpp>

#include "kernels/base/dtype.hpp"
#include "kernels/detail/tile_product.hpp"

namespace motley::kernels::cpu {

/// oneDNN's objects for the CPU of this process.
struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// What the library would do with products of a dtype on this CPU.
struct LibraryReport {
  bool is_supported = false;   ///< there is an implementation at all
  bool is_packing = false;     ///< weights have a layout of their own: the fast implementations
  std::string implementation;  ///< as the library names it, e.g. "brg:avx512_core_bf16"
};
[[nodiscard]] LibraryReport ask_library(Library const& library, DType dtype);

/// Whether the CPU multiplies bf16 itself; the library emulates it where not, slowly.
[[nodiscard]] bool has_bf16_instructions();

/// "2.6.3"
[[nodiscard]] std::string library_version();

/// While it lives, the library uses this many threads in the calling thread's products.
class ThreadCount {
 public:
  explicit ThreadCount(int threads);
  ThreadCount(ThreadCount const&) = delete;
  ThreadCount& operator=(ThreadCount const&) = delete;
  ThreadCount(ThreadCount&&) = delete;
  ThreadCount& operator=(ThreadCount&&) = delete;
  ~ThreadCount();

 private:
  int before_;
};

/// What is added to a product: nothing, what the result holds before, or another matrix.
enum class Addend { none, result, other };

/// C [m, n] = gelu(A [m, k] · B [k, n] + bias) + addend.
struct MatmulProblem {
  detail::TileShape shape{};
  DType operands = DType::fp32;  ///< of A, B, bias and another addend
  DType result = DType::fp32;
  detail::Strided<void> a{};  ///< strides only
  detail::Strided<void> b{};  ///< strides only; unused where B is packed
  std::int64_t c_stride = 0;
  Addend addend = Addend::none;
  std::int64_t addend_stride = 0;
  bool has_bias = false;
  bool has_gelu = false;

  /// An order for maps.
  [[nodiscard]] bool operator<(MatmulProblem const& other) const;
};

/// A matrix B in the layout that the library wants for a kind of product.
class PackedMatrix {
 public:
  /// Asks for the layout of B in products like this one. `stored` has the strides of the matrix it
  /// is packed from. Throws Error{device} if the library cannot do them.
  PackedMatrix(Library const& library, MatmulProblem const& problem);

  /// False where the library has no layout of its own and B is better read where it lies.
  [[nodiscard]] bool is_used() const { return is_used_; }
  [[nodiscard]] std::size_t bytes() const { return is_used_ ? layout_.get_size() : 0; }
  [[nodiscard]] dnnl::memory::desc const& layout() const { return layout_; }

  /// Packs B into `to`, which has `bytes()`; both stay where they are.
  void pack(Library const& library, detail::Strided<void const> from, void* to);
  [[nodiscard]] dnnl::memory const& memory() const { return to_; }

 private:
  DType dtype_;
  std::int64_t k_, n_;
  bool is_used_ = false;
  dnnl::memory::desc layout_;
  dnnl::memory from_, to_;
  dnnl::reorder reorder_;
  detail::Strided<void const> packed_from_{};
};

/// One primitive, made for a problem and run on any memory.
class LibraryMatmul {
 public:
  struct Operands {
    void const* a = nullptr;
    void const* b = nullptr;  ///< unused where B is packed
    void const* bias = nullptr;
    void const* addend = nullptr;
    void* c = nullptr;
    std::byte* scratch = nullptr;
  };

  /// Throws Error{device} if the library cannot do it.
  LibraryMatmul(Library const& library, MatmulProblem const& problem, PackedMatrix const* packed);

  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// Runs it on the threads of the caller's ThreadCount and returns when it is done.
  void run(Library const& library, Operands const& operands) const;

 private:
  dnnl::matmul primitive_;
  std::size_t scratch_bytes_;
  dnnl::memory a_, b_, c_, scratch_, bias_, addend_;
  bool is_packed_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace motley::kernels::cpu
