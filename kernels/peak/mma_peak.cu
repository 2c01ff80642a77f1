#include "kernels/peak/mma_peak_gpu.h"
#include "kernels/simt/device_math.h"
#include "kernels/simt/launch.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kSums = 8;

IHA_KERNEL void IHA_LAUNCH_BOUNDS(kMmaPeakGpuThreads, 1) MmaPeak(MmaPeakGpuArgs p) {
  // Operands whose bits differ between lanes, as of real products: power depends on them.
  const float x = 1.0f + static_cast<float>(ptx::Lane()) * 0x1p-6f;
  const uint32_t a[4] = {ptx::PackBF16(x, -x), ptx::PackBF16(-0.5f * x, x), ptx::PackBF16(x, 0.25f * x),
                         ptx::PackBF16(-x, x)};
  float c[kSums][4] = {};
  IHA_UNROLL_NEVER
  for (uint32_t round = 0; round < p.rounds; ++round) {
    IHA_UNROLL
    for (uint32_t i = 0; i < kSums; ++i) {
      const uint32_t b[2] = {a[i % 4], a[(i + 1) % 4]};
      ptx::MmaBF16(c[i], a, b);
    }
  }
  float sum = 0.0f;
  IHA_UNROLL
  for (uint32_t i = 0; i < kSums; ++i) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
  ptx::Store(ptx::Global<float>(p.out) + (size_t{ptx::BlockX()} * kMmaPeakGpuThreads + ptx::ThreadX()), sum);
}

}  // namespace

GpuStatus MmaPeakGpu(const MmaPeakGpuArgs& args, GpuStream stream) {
  if (args.blocks == 0) return 0;
  return LaunchKernel("mma_peak", MmaPeak, {args.blocks, 1, 1, kMmaPeakGpuThreads, 0}, stream, args);
}

}  // namespace iha::kernels
