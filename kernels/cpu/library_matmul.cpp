#include "kernels/cpu/library_matmul.hpp"

#include <tuple>
#include <utility>

#include <omp.h>

#include "kernels/base/error.hpp"

namespace motley::kernels::cpu {
namespace {

using Desc = dnnl::memory::desc;
using detail::Strided;

/// Turns the library's exceptions into ours.
template <class Call>
auto checked(char const* what, Call const& call) -> decltype(call()) {
  try {
    return call();
  } catch (dnnl::error const& error) {
    MOTLEY_FAIL(device,
                "oneDNN could not " << what << " (" << error.message << ", status " << error.status
                                    << "); check that the library fits this CPU, or choose the "
                                    << "portable products");
  }
}

dnnl::memory::data_type data_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

Desc strided_desc(std::int64_t rows, std::int64_t columns, DType dtype, Strided<void> strides) {
  // A dim of extent 1 may come with any stride; the library wants those of a dense matrix.
  std::int64_t const row_stride = rows == 1 ? columns * strides.column_stride : strides.row_stride;
  return {{rows, columns}, data_type(dtype), dnnl::memory::dims{row_stride, strides.column_stride}};
}

Desc left_desc(MatmulProblem const& p) {
  return strided_desc(p.shape.m, p.shape.k, p.operands, p.a);
}
Desc right_desc(MatmulProblem const& p) {
  return strided_desc(p.shape.k, p.shape.n, p.operands, p.b);
}
Desc result_desc(MatmulProblem const& p) {
  return strided_desc(p.shape.m, p.shape.n, p.result, {nullptr, p.c_stride, 1});
}
Desc addend_desc(MatmulProblem const& p) {
  return strided_desc(p.shape.m, p.shape.n, p.operands, {nullptr, p.addend_stride, 1});
}
Desc bias_desc(MatmulProblem const& p) {
  return {{1, p.shape.n}, data_type(p.operands), dnnl::memory::format_tag::ab};
}

dnnl::primitive_attr attributes(MatmulProblem const& p) {
  dnnl::post_ops steps;
  if (p.has_gelu) steps.append_eltwise(1.0F, dnnl::algorithm::eltwise_gelu_tanh, 0.0F, 0.0F);
  if (p.addend == Addend::result) steps.append_sum(1.0F);
  if (p.addend == Addend::other) {
    steps.append_binary(dnnl::algorithm::binary_add, addend_desc(p));
  }
  dnnl::primitive_attr attr;
  attr.set_post_ops(steps);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::matmul::primitive_desc primitive_desc(Library const& library,
                                            MatmulProblem const& p,
                                            Desc const& right) {
  return checked("prepare a matrix product", [&] {
    dnnl::matmul::desc const desc =
        p.has_bias ? dnnl::matmul::desc(left_desc(p), right, bias_desc(p), result_desc(p))
                   : dnnl::matmul::desc(left_desc(p), right, result_desc(p));
    return dnnl::matmul::primitive_desc(desc, attributes(p), library.engine);
  });
}

Desc any_layout(MatmulProblem const& p) {
  return {{p.shape.k, p.shape.n}, data_type(p.operands), dnnl::memory::format_tag::any};
}

bool is_plain(Desc const& layout, MatmulProblem const& p) {
  std::int64_t const k = p.shape.k;
  std::int64_t const n = p.shape.n;
  return layout == strided_desc(k, n, p.operands, {nullptr, n, 1}) ||
         layout == Desc{{k, n}, data_type(p.operands), dnnl::memory::format_tag::ba};
}

/// A memory object whose address is set later.
dnnl::memory unplaced(Library const& library, Desc const& desc) {
  return {desc, library.engine, DNNL_MEMORY_NONE};
}

/// The library's objects do not know const; operands are read only.
void* mutable_address(void const* address) { return const_cast<void*>(address); }

}  // namespace

LibraryReport ask_library(Library const& library, DType dtype) {
  constexpr std::int64_t width = 768;
  MatmulProblem const problem{.shape = {512, width, width},
                              .operands = dtype,
                              .result = dtype,
                              .a = {nullptr, width, 1},
                              .c_stride = width};
  try {
    auto const desc = primitive_desc(library, problem, any_layout(problem));
    return {true, !is_plain(desc.weights_desc(), problem), desc.impl_info_str()};
  } catch (Error const&) {
    return {};
  }
}

bool has_bf16_instructions() {
  // Values of the enumeration are sets of features.
  auto const found = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  auto const needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (found & needed) == needed;
}

std::string library_version() {
  dnnl_version_t const* const version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

ThreadCount::ThreadCount(int threads) : before_{omp_get_max_threads()} {
  omp_set_num_threads(threads);
}
ThreadCount::~ThreadCount() { omp_set_num_threads(before_); }

bool MatmulProblem::operator<(MatmulProblem const& other) const {
  auto const key = [](MatmulProblem const& p) {
    return std::tuple{p.shape.m,
                      p.shape.n,
                      p.shape.k,
                      p.operands,
                      p.result,
                      p.a.row_stride,
                      p.a.column_stride,
                      p.b.row_stride,
                      p.b.column_stride,
                      p.c_stride,
                      p.addend,
                      p.addend_stride,
                      p.has_bias,
                      p.has_gelu};
  };
  return key(*this) < key(other);
}

PackedMatrix::PackedMatrix(Library const& library, MatmulProblem const& problem)
    : dtype_{problem.operands}, k_{problem.shape.k}, n_{problem.shape.n} {
  layout_ = primitive_desc(library, problem, any_layout(problem)).weights_desc();
  is_used_ = !is_plain(layout_, problem);
  if (is_used_) to_ = checked("place a packed matrix", [&] { return unplaced(library, layout_); });
}

void PackedMatrix::pack(Library const& library, Strided<void const> from, void* to) {
  bool const is_same = packed_from_.row_stride == from.row_stride &&
                       packed_from_.column_stride == from.column_stride && reorder_;
  checked("pack a matrix", [&] {
    if (!is_same) {
      from_ = unplaced(
          library, strided_desc(k_, n_, dtype_, {nullptr, from.row_stride, from.column_stride}));
      reorder_ = dnnl::reorder(from_, to_);
      packed_from_ = from;
    }
    from_.set_data_handle(mutable_address(from.data));
    if (to_.get_data_handle() != to) to_.set_data_handle(to);
    dnnl::stream stream = library.stream;
    reorder_.execute(stream, from_, to_);
    stream.wait();
  });
}

LibraryMatmul::LibraryMatmul(Library const& library,
                             MatmulProblem const& problem,
                             PackedMatrix const* packed)
    : is_packed_{packed != nullptr && packed->is_used()} {
  auto const desc =
      primitive_desc(library, problem, is_packed_ ? packed->layout() : right_desc(problem));
  checked("make a matrix product", [&] {
    primitive_ = dnnl::matmul(desc);
    a_ = unplaced(library, desc.src_desc());
    b_ = is_packed_ ? packed->memory() : unplaced(library, desc.weights_desc());
    c_ = unplaced(library, desc.dst_desc());
    scratch_ = unplaced(library, desc.scratchpad_desc());
    arguments_ = {{DNNL_ARG_SRC, a_},
                  {DNNL_ARG_WEIGHTS, b_},
                  {DNNL_ARG_DST, c_},
                  {DNNL_ARG_SCRATCHPAD, scratch_}};
    if (problem.has_bias) {
      bias_ = unplaced(library, bias_desc(problem));
      arguments_.emplace(DNNL_ARG_BIAS, bias_);
    }
    if (problem.addend == Addend::other) {
      addend_ = unplaced(library, addend_desc(problem));
      int const step = problem.has_gelu ? 1 : 0;
      arguments_.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(step) | DNNL_ARG_SRC_1, addend_);
    }
  });
  scratch_bytes_ = desc.scratchpad_desc().get_size();
}

void LibraryMatmul::run(Library const& library, Operands const& operands) const {
  checked("multiply matrices", [&] {
    a_.set_data_handle(mutable_address(operands.a));
    if (!is_packed_) b_.set_data_handle(mutable_address(operands.b));
    c_.set_data_handle(operands.c);
    if (scratch_bytes_ > 0) scratch_.set_data_handle(operands.scratch);
    if (bias_) bias_.set_data_handle(mutable_address(operands.bias));
    if (addend_) addend_.set_data_handle(mutable_address(operands.addend));
    dnnl::stream stream = library.stream;
    primitive_.execute(stream, arguments_);
    stream.wait();
  });
}

}  // namespace motley::kernels::cpu
