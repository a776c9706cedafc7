#include "kernels/base/error.hpp"
#include "kernels/detail/matmul_backend.hpp"

namespace motley::kernels::detail {

std::unique_ptr<MatmulBackend> make_matmul_backend(MatmulConfig /*config*/) {
  MOTLEY_FAIL(device,
              "matrix products are not configured in this build (it is for NVIDIA GPUs, whose "
              "products are not built yet); use the CPU build");
}

}  // namespace motley::kernels::detail
