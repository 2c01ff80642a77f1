#include "kernels/peak/mma_peak_gpu.h"

#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

// As many products as it says, none of them left out: twice the rounds double each sum, where no addition rounds.
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
      // Sums of 8 accumulators of at most 8 x 16 products below 4.
      ASSERT_NEAR(twice[i], 2 * once[i], 8 * 8 * 16 * 4 * 8 * 0x1p-24 * 128);
    }
  });
}

}  // namespace
}  // namespace iha::kernels
