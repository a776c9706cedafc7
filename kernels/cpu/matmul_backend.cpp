#include "kernels/detail/matmul_backend.hpp"

#include <utility>

#include "kernels/cpu/tiled_linear.hpp"

namespace motley::kernels::detail {
namespace {

class CpuMatmulBackend final : public MatmulBackend {
 public:
  explicit CpuMatmulBackend(MatmulConfig config) {
    shared_.between_tiles = std::move(config.between_tiles);
  }

  void allocate_workspace(Arena& arena) override { shared_.workspace.allocate(arena); }
  [[nodiscard]] std::string description() const override { return "portable"; }
  std::unique_ptr<LinearBackend<float>> make_fp32(Arena& arena, LinearSpec const& spec) override {
    return std::make_unique<cpu::TiledLinear<float>>(shared_, arena, spec);
  }
  std::unique_ptr<LinearBackend<BFloat16>> make_bf16(Arena& arena,
                                                     LinearSpec const& spec) override {
    return std::make_unique<cpu::TiledLinear<BFloat16>>(shared_, arena, spec);
  }
  std::unique_ptr<LinearBackend<double>> make_fp64(Arena& arena, LinearSpec const& spec) override {
    return std::make_unique<cpu::TiledLinear<double>>(shared_, arena, spec);
  }

 private:
  cpu::Shared shared_;
};

}  // namespace

std::unique_ptr<MatmulBackend> make_matmul_backend(MatmulConfig config) {
  return std::make_unique<CpuMatmulBackend>(std::move(config));
}

}  // namespace motley::kernels::detail
