#include "kernels/detail/matmul_backend.hpp"

#include <string>
#include <utility>

#include "kernels/cpu/library_linear.hpp"
#include "kernels/cpu/library_matmul.hpp"
#include "kernels/cpu/tiled_linear.hpp"

namespace motley::kernels::detail {
namespace {

using cpu::LibraryLinear;
using cpu::LibraryReport;
using cpu::TiledLinear;

/// Who multiplies matrices of one dtype.
struct Choice {
  bool is_library = false;
  LibraryReport report;
};

/// The library is chosen where it packs weights: those of its implementations are the fast ones.
/// Without one (measured on AVX2) its products are no faster than ours and allocate in each call.
Choice choose(cpu::Library const& library, ProductMode mode, DType dtype) {
  if (mode == ProductMode::portable) return {};
  LibraryReport const report = cpu::ask_library(library, dtype);
  if (mode == ProductMode::library) {
    MOTLEY_VALIDATE(device,
                    report.is_supported,
                    "oneDNN has no " << to_string(dtype) << " products for this CPU (it lacks the "
                                     << "instructions); leave the choice of products automatic");
    return {true, report};
  }
  bool const is_native = dtype != DType::bf16 || cpu::has_bf16_instructions();
  return {report.is_packing && is_native, report};
}

std::string describe(Choice const& choice, std::string const& ours) {
  if (!choice.is_library) return ours;
  return "oneDNN " + cpu::library_version() + " (" + choice.report.implementation + ")" +
         (choice.report.is_packing ? ", weights packed" : "");
}

class CpuMatmulBackend final : public MatmulBackend {
 public:
  explicit CpuMatmulBackend(MatmulConfig config) : mode_{config.mode} {
    shared_.between_tiles = std::move(config.between_tiles);
    fp32_ = choose(library_, mode_, DType::fp32);
    // A CPU may have no bf16 products at all; that is an error only if they are made.
    if (mode_ != ProductMode::library) bf16_ = choose(library_, mode_, DType::bf16);
  }

  void allocate_workspace(Arena& arena) override { shared_.workspace.allocate(arena); }

  [[nodiscard]] std::string description() const override {
    std::string const tile = std::to_string(RegisterTile<float>::rows) + "x" +
                             std::to_string(RegisterTile<float>::columns);
    std::string const ours = "own tiles of " + tile;
    return "fp32: " + describe(fp32_, ours) +
           "; bf16: " + describe(bf16_, "widened to fp32, " + ours) + "; fp64: own tiles";
  }

  std::unique_ptr<LinearBackend<float>> make_fp32(Arena& arena, LinearSpec const& spec) override {
    return make<float>(fp32_, arena, spec);
  }
  std::unique_ptr<LinearBackend<BFloat16>> make_bf16(Arena& arena,
                                                     LinearSpec const& spec) override {
    if (mode_ == ProductMode::library) bf16_ = choose(library_, mode_, DType::bf16);
    return make<BFloat16>(bf16_, arena, spec);
  }
  std::unique_ptr<LinearBackend<double>> make_fp64(Arena& arena, LinearSpec const& spec) override {
    return std::make_unique<TiledLinear<double>>(shared_, arena, spec);
  }

 private:
  template <class T>
  std::unique_ptr<LinearBackend<T>> make(Choice const& choice,
                                         Arena& arena,
                                         LinearSpec const& spec) {
    if (choice.is_library) {
      return std::make_unique<LibraryLinear<T>>(shared_, library_, arena, spec);
    }
    return std::make_unique<TiledLinear<T>>(shared_, arena, spec);
  }

  ProductMode mode_;
  cpu::Library library_;
  cpu::Shared shared_;
  Choice fp32_;
  Choice bf16_;
};

}  // namespace

std::unique_ptr<MatmulBackend> make_matmul_backend(MatmulConfig config) {
  return std::make_unique<CpuMatmulBackend>(std::move(config));
}

}  // namespace motley::kernels::detail
