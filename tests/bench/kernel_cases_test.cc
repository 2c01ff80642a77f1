// The cases of gpu_bench with small shapes on the emulator: each runs, and none claims more bytes or products than its
// kernel moves and does.
#include "bench/gpu/kernel_cases.h"

#include <gtest/gtest.h>

#include "kernels/simt/device.h"
#include "model/device/emulated_runtime.h"

namespace iha::model {
namespace {

TEST(GpuBenchCases, RunAndClaimNoMoreThanTheyDo) {
  const auto runtime = MakeEmulatedRuntime({});
  kernels::simt::Device& device = *runtime->stream();
  size_t cases = 0;
  const KernelCaseSink count = [&](const KernelCase& c) {
    const kernels::simt::Counters before = device.total();
    const absl::Status status = runtime->Check(c.launch(&device), c.name.c_str());
    const kernels::simt::Counters& after = device.total();
    const auto bytes = static_cast<double>(after.global_read_bytes - before.global_read_bytes +
                                           after.global_written_bytes - before.global_written_bytes);
    EXPECT_LE(c.bytes, bytes) << c.name;
    EXPECT_LE(c.flops, 2.0 * static_cast<double>(after.mma_multiply_adds - before.mma_multiply_adds)) << c.name;
    EXPECT_GT(c.bytes + c.flops, 0) << c.name;
    cases++;
    return status;
  };
  absl::Status status = ForEachMatrixCase(*runtime, kTinySizes, count);
  EXPECT_TRUE(status.ok()) << status;
  status = ForEachMemoryCase(*runtime, kTinySizes, count);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(cases, 40u);
}

}  // namespace
}  // namespace iha::model
