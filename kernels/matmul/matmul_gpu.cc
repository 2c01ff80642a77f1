#include "kernels/matmul/matmul_gpu.h"

namespace iha::kernels {
namespace {

struct TileKernel {
  MatmulGpuTile tile;
  GpuStatus (*launch)(const MatmulGpuArgs&, GpuStream);
};
constexpr TileKernel kKernels[] = {{{16, 64, 4}, LaunchMatmul<1, 4, 1, 1>}, {{128, 128, 8}, LaunchMatmul<4, 2, 2, 4>}};

}  // namespace

GpuStatus MatmulGpu(const MatmulGpuArgs& args, GpuStream stream) {
  if (args.k == 0 || args.k % 8 != 0 || args.ldx % 8 != 0 || args.ldw % 8 != 0) return 1;
  if (args.n % 2 != 0 || args.ldy % 2 != 0 || (args.y == nullptr) == (args.y_float == nullptr)) return 1;
  if (args.m == 0 || args.n == 0) return 0;
  for (const TileKernel& kernel : kKernels) {
    if (kernel.tile == MatmulGpuTileFor(args.m)) return kernel.launch(args, stream);
  }
  return 1;
}

}  // namespace iha::kernels
