#include "kernels/cpu/library_linear.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/detail/gelu.hpp"
#include "kernels/detail/loops.hpp"

namespace motley::kernels::cpu {
namespace {

using detail::Strided;

// Rows of one call of the library: its rate no longer grows beyond them, and the hook between them
// comes often enough.
constexpr std::int64_t row_block = 512;
// The same for a weight gradient, which reads and writes its whole result in each block.
constexpr std::int64_t gradient_row_block = 1024;

constexpr std::size_t forward_weight = 0;
constexpr std::size_t backward_weight_index = 1;

template <class View>
std::int64_t extent(View const& view, std::size_t dim) {
  return static_cast<std::int64_t>(view.extent(dim));
}
template <class View>
std::int64_t stride(View const& view) {
  return static_cast<std::int64_t>(view.stride(0));
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + Arena::alignment_bytes - 1) / Arena::alignment_bytes * Arena::alignment_bytes;
}

/// The address `rows` rows further on; null stays null.
template <class Void>
Void* advance(Void* address, std::int64_t rows, std::int64_t row_stride, DType dtype) {
  using Byte = std::conditional_t<std::is_const_v<Void>, std::byte const, std::byte>;
  if (address == nullptr) return nullptr;
  return static_cast<Byte*>(address) +
         static_cast<std::size_t>(rows * row_stride) * size_bytes(dtype);
}

/// y = gelu(before_gelu) + residual.
template <class T>
void finish_gelu(Exec const& exec, Epilogue<T> const& epilogue, View2<T> y) {
  using A = Accumulator<T>;
  auto const width = static_cast<int>(y.extent(1));
  bool const has_residual = epilogue.residual.data() != nullptr;
  auto const row_of = [=](detail::HostLanes const& lanes, std::int64_t row) {
    T const* const kept = &epilogue.before_gelu(row, 0);
    T* const to = &y(row, 0);
    T const* const residual = has_residual ? &epilogue.residual(row, 0) : to;
    A const weight = has_residual ? A{1} : A{0};
    lanes.for_each(width, [=](int j) {
      A const value = static_cast<A>(kept[j]);
      A const active = epilogue.gelu ? detail::gelu(value) : value;
      to[j] = static_cast<T>(weight == A{0} ? active : active + static_cast<A>(residual[j]));
    });
  };
  detail::for_each_row(exec, "motley::kernels::LinearOperator::gelu", extent(y, 0), width, row_of);
}

}  // namespace

template <class T>
LibraryLinear<T>::LibraryLinear(Shared& shared,
                                Library const& library,
                                Arena& arena,
                                LinearSpec const& spec)
    : shared_{shared}, library_{library}, spec_{spec} {
  ThreadCount const threads{Exec{}.concurrency()};
  std::int64_t const rows = std::min(row_block, spec.max_rows);
  weights_.push_back(
      make_weight(arena, spec.label + ".packed", forward_problem(rows, dtype_of<T>)));
  if (spec.needs_backward) {
    weights_.push_back(make_weight(arena, spec.label + ".packed_transposed", input_problem(rows)));
  }
  reserve_workspace();
}

template <class T>
Strided<T const> LibraryLinear<T>::weight_operand(bool is_transposed) const {
  bool const is_out_in = spec_.order == WeightOrder::out_in;
  std::int64_t const dense = is_out_in ? spec_.in : spec_.out;
  std::int64_t const row_stride = weight_.data() == nullptr ? dense : stride(weight_);
  if (is_out_in != is_transposed) return {weight_.data(), 1, row_stride};
  return {weight_.data(), row_stride, 1};
}

template <class T>
MatmulProblem LibraryLinear<T>::forward_problem(std::int64_t rows, DType result) const {
  Strided<T const> const w = weight_operand(false);
  return {.shape = {rows, spec_.out, spec_.in},
          .operands = dtype_of<T>,
          .result = result,
          .a = {nullptr, spec_.in, 1},
          .b = {nullptr, w.row_stride, w.column_stride},
          .c_stride = spec_.out};
}

template <class T>
MatmulProblem LibraryLinear<T>::input_problem(std::int64_t rows) const {
  Strided<T const> const w = weight_operand(true);
  return {.shape = {rows, spec_.in, spec_.out},
          .operands = dtype_of<T>,
          .result = dtype_of<T>,
          .a = {nullptr, spec_.out, 1},
          .b = {nullptr, w.row_stride, w.column_stride},
          .c_stride = spec_.in};
}

template <class T>
MatmulProblem LibraryLinear<T>::weight_problem(std::int64_t rows) const {
  bool const is_out_in = spec_.order == WeightOrder::out_in;
  std::int64_t const left = is_out_in ? spec_.out : spec_.in;
  std::int64_t const right = is_out_in ? spec_.in : spec_.out;
  return {.shape = {left, right, rows},
          .operands = dtype_of<T>,
          .result = dtype_of<A>,
          .a = {nullptr, 1, left},
          .b = {nullptr, right, 1},
          .c_stride = right,
          .addend = Addend::result};
}

template <class T>
auto LibraryLinear<T>::make_weight(Arena& arena,
                                   std::string const& label,
                                   MatmulProblem const& problem) const -> Weight {
  Weight weight{PackedMatrix{library_, problem}, nullptr};
  if (weight.packed.is_used()) {
    weight.storage = static_cast<std::byte*>(arena.take(label, weight.packed.bytes()));
  }
  return weight;
}

template <class T>
void LibraryLinear<T>::reserve_workspace() {
  std::int64_t const rows = std::min(row_block, spec_.max_rows);
  auto const reserve = [&](MatmulProblem const& problem, PackedMatrix const& packed) {
    return matmul(problem, packed).scratch_bytes();
  };
  std::size_t bytes = reserve(forward_problem(rows, dtype_of<T>), weights_[forward_weight].packed);
  if (spec_.needs_backward) {
    bytes = std::max(bytes, reserve(input_problem(rows), weights_[backward_weight_index].packed));
    std::int64_t const gradient_rows = std::min(gradient_row_block, spec_.max_rows);
    MatmulProblem const problem = weight_problem(gradient_rows);
    PackedMatrix const& right =
        right_operands_.try_emplace(gradient_rows, library_, problem).first->second;
    bytes = std::max(bytes, round_up(right.bytes()) + reserve(problem, right));
  }
  shared_.workspace.reserve(bytes);
}

template <class T>
LibraryMatmul const& LibraryLinear<T>::matmul(MatmulProblem const& problem,
                                              PackedMatrix const& packed) {
  MatmulProblem key = problem;
  if (packed.is_used()) key.b = {};
  auto const found = products_.find(key);
  if (found != products_.end()) return found->second;
  return products_.try_emplace(key, library_, key, &packed).first->second;
}

template <class T>
void LibraryLinear<T>::pack(Exec const& exec, View2<T const> weight) {
  ThreadCount const threads{exec.concurrency()};
  weight_ = weight;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (!weights_[i].packed.is_used()) continue;
    Strided<T const> const from = weight_operand(i == backward_weight_index);
    weights_[i].packed.pack(
        library_, {from.data, from.row_stride, from.column_stride}, weights_[i].storage);
  }
}

template <class T>
void LibraryLinear<T>::run_rows(MatmulProblem problem,
                                std::size_t weight,
                                LibraryMatmul::Operands operands) {
  std::int64_t const rows = problem.shape.m;
  for (std::int64_t begin = 0; begin < rows; begin += row_block) {
    if (begin > 0 && shared_.between_tiles) shared_.between_tiles();
    problem.shape.m = std::min(row_block, rows - begin);
    LibraryMatmul const& product = matmul(problem, weights_[weight].packed);
    product.run(library_,
                {advance(operands.a, begin, problem.a.row_stride, problem.operands),
                 weight_.data(),
                 operands.bias,
                 advance(operands.addend, begin, problem.addend_stride, problem.operands),
                 advance(operands.c, begin, problem.c_stride, problem.result),
                 shared_.workspace.take_or_grow(product.scratch_bytes())});
  }
}

template <class T>
void LibraryLinear<T>::forward(Exec const& exec,
                               View2<T const> x,
                               Epilogue<T> const& epilogue,
                               View2<T> y) {
  ThreadCount const threads{exec.concurrency()};
  bool const is_kept = epilogue.before_gelu.data() != nullptr;
  bool const has_residual = epilogue.residual.data() != nullptr && !is_kept;
  View2<T> const result = is_kept ? epilogue.before_gelu : y;
  MatmulProblem problem = forward_problem(extent(x, 0), dtype_of<T>);
  problem.a.row_stride = stride(x);
  problem.c_stride = stride(result);
  problem.has_bias = epilogue.bias.data() != nullptr;
  problem.has_gelu = epilogue.gelu && !is_kept;
  if (has_residual) {
    bool const is_in_place = epilogue.residual.data() == y.data();
    problem.addend = is_in_place ? Addend::result : Addend::other;
    problem.addend_stride = is_in_place ? 0 : stride(epilogue.residual);
  }
  run_rows(problem,
           forward_weight,
           {.a = x.data(),
            .bias = epilogue.bias.data(),
            .addend = has_residual ? epilogue.residual.data() : nullptr,
            .c = result.data()});
  if (is_kept) finish_gelu(exec, epilogue, y);
}

template <class T>
void LibraryLinear<T>::forward_wide(Exec const& exec, View2<T const> x, View2<A> y) {
  ThreadCount const threads{exec.concurrency()};
  MatmulProblem problem = forward_problem(extent(x, 0), dtype_of<A>);
  problem.a.row_stride = stride(x);
  problem.c_stride = stride(y);
  run_rows(problem, forward_weight, {.a = x.data(), .c = y.data()});
}

template <class T>
void LibraryLinear<T>::backward_input(Exec const& exec,
                                      View2<T const> dy,
                                      View2<T> dx,
                                      Accumulate accumulate) {
  ThreadCount const threads{exec.concurrency()};
  MatmulProblem problem = input_problem(extent(dy, 0));
  problem.a.row_stride = stride(dy);
  problem.c_stride = stride(dx);
  if (accumulate == Accumulate::yes) problem.addend = Addend::result;
  run_rows(problem, backward_weight_index, {.a = dy.data(), .c = dx.data()});
}

template <class T>
void LibraryLinear<T>::backward_weight(Exec const& exec,
                                       View2<T const> x,
                                       View2<T const> dy,
                                       View2<A> dweight,
                                       Accumulate accumulate) {
  ThreadCount const threads{exec.concurrency()};
  bool const is_out_in = spec_.order == WeightOrder::out_in;
  View2<T const> const left = is_out_in ? dy : x;
  View2<T const> const right = is_out_in ? x : dy;
  std::int64_t const rows = extent(x, 0);
  for (std::int64_t begin = 0; begin < rows; begin += gradient_row_block) {
    if (begin > 0 && shared_.between_tiles) shared_.between_tiles();
    MatmulProblem problem = weight_problem(std::min(gradient_row_block, rows - begin));
    problem.a.column_stride = stride(left);
    problem.b.row_stride = stride(right);
    problem.c_stride = stride(dweight);
    if (begin == 0 && accumulate == Accumulate::no) problem.addend = Addend::none;
    PackedMatrix& packed =
        right_operands_.try_emplace(problem.shape.k, library_, problem).first->second;
    LibraryMatmul const& product = matmul(problem, packed);
    std::size_t const packed_bytes = round_up(packed.bytes());
    std::byte* const scratch =
        shared_.workspace.take_or_grow(packed_bytes + product.scratch_bytes());
    T const* const right_block = right.data() + begin * stride(right);
    if (packed.is_used()) packed.pack(library_, {right_block, stride(right), 1}, scratch);
    product.run(library_,
                {.a = left.data() + begin * stride(left),
                 .b = right_block,
                 .c = dweight.data(),
                 .scratch = scratch + packed_bytes});
  }
}

template class LibraryLinear<float>;
template class LibraryLinear<BFloat16>;

}  // namespace motley::kernels::cpu
