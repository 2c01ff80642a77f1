#include "kernels/attention/flash.cuh"

namespace iha::kernels {

GpuStatus AttentionGpu64x128(const AttentionGpuArgs& args, GpuStream stream) {
  return LaunchFlash<64, 128>(args, stream);
}

}  // namespace iha::kernels
