#include "kernels/peak/mma_peak_gpu.h"

#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

// As many products as it says, none of them left out: twice the rounds double each sum, exactly. Operands are multiples
// of 2^-8 below 1.5 in magnitude, one of each pair of 2^-6, so each accumulator is a multiple of 2^-14 below
// 8 x 16 x 2.25 < 2^9: 23 bits, nothing rounds; and the sum of doubled accumulators rounds to the doubled sum.
TEST(MmaPeakGpu, DoesWhatItSays) {
  const auto run = [](simt::Device& device, uint32_t rounds) {
    simt::Buffer<float> out(device, 3 * kMmaPeakGpuThreads, "out");
    const MmaPeakGpuArgs args{out.data(), 3, rounds};
    EXPECT_EQ(MmaPeakGpu(args, &device), 0) << device.report().message;
    EXPECT_EQ(device.report().counters.mma_multiply_adds, MmaPeakGpuMultiplyAdds(args));
    EXPECT_EQ(device.report().counters.global_written_bytes, 3 * kMmaPeakGpuThreads * 4u);
    return out.ToHost();
  };
  ForEachSchedule([&](simt::Device& device) {
    const std::vector<float> once = run(device, 4), twice = run(device, 8);
    for (size_t i = 0; i < once.size(); ++i) {
      ASSERT_NE(once[i], 0.0f);
      ASSERT_EQ(twice[i], 2 * once[i]) << i;
    }
  });
}

}  // namespace
}  // namespace iha::kernels
