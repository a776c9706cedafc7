#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/cpu/library_matmul.hpp"
#include "kernels/cpu/shared.hpp"
#include "kernels/detail/matmul_backend.hpp"

namespace motley::kernels::cpu {

/// Linear operator on oneDNN's matrix products, for float and BFloat16.
///
/// Weights are packed where oneDNN has a layout of its own for them, and read where they lie
/// otherwise; so is the operand on the right of a weight gradient. A product of many rows is done
/// in blocks of rows, between which the hook of the configuration runs.
///
/// Bits     are the same for the same number of threads
template <class T>
class LibraryLinear final : public detail::LinearBackend<T> {
 public:
  using A = Accumulator<T>;

  LibraryLinear(Shared& shared, Library const& library, Arena& arena, LinearSpec const& spec);

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
  /// A weight as one operation reads it; `storage` has the bytes that its packed form takes.
  struct Weight {
    PackedMatrix packed;
    std::byte* storage;
  };

  // Problems of the four operations; those of weights with a dense one.
  [[nodiscard]] MatmulProblem forward_problem(std::int64_t rows, DType result) const;
  [[nodiscard]] MatmulProblem input_problem(std::int64_t rows) const;
  [[nodiscard]] MatmulProblem weight_problem(std::int64_t rows) const;
  [[nodiscard]] detail::Strided<T const> weight_operand(bool is_transposed) const;

  [[nodiscard]] Weight make_weight(Arena& arena,
                                   std::string const& label,
                                   MatmulProblem const& problem) const;
  void reserve_workspace();
  LibraryMatmul const& matmul(MatmulProblem const& problem, PackedMatrix const& packed);
  /// Runs a product with a weight on the right, block by block of its rows.
  void run_rows(MatmulProblem problem, std::size_t weight, LibraryMatmul::Operands operands);

  Shared& shared_;
  Library const& library_;
  LinearSpec spec_;
  View2<T const> weight_;
  std::vector<Weight> weights_;  ///< of forward, and of backward_input if needed
  std::map<MatmulProblem, LibraryMatmul> products_;
  std::map<std::int64_t, PackedMatrix> right_operands_;  ///< of weight gradients, by rows
};

}  // namespace motley::kernels::cpu
