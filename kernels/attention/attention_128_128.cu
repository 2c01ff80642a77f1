#include "kernels/attention/flash.cuh"

namespace iha::kernels {

GpuStatus AttentionGpu128x128(const AttentionGpuArgs& args, GpuStream stream) {
  return LaunchFlash<128, 128>(args, stream);
}

}  // namespace iha::kernels
