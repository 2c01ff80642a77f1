#include "kernels/mlp/mlp_gpu.h"

namespace iha::kernels {

GpuStatus ActivationMulGpu(const MlpGpuArgs& args, GpuStream stream) {
  if (args.n == 0 || args.n % 8 != 0 || args.ld_gate % 8 != 0 || args.ld_up % 8 != 0 || args.ld_out % 8 != 0) return 1;
  if (args.rows == 0) return 0;
  switch (args.activation) {
    case Activation::kSilu:
      return LaunchActivationMul<Activation::kSilu>(args, stream);
    case Activation::kGeluTanh:
      return LaunchActivationMul<Activation::kGeluTanh>(args, stream);
    case Activation::kGeluErf:
      return LaunchActivationMul<Activation::kGeluErf>(args, stream);
    case Activation::kRelu:
      return LaunchActivationMul<Activation::kRelu>(args, stream);
  }
  return 1;
}

}  // namespace iha::kernels
