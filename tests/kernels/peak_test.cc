// The machine's roof: what holds whatever the machine and however busy it is.
#include "kernels/peak/peak.h"

#include <gtest/gtest.h>

namespace iha::kernels {
namespace {

TEST(Peak, MeasuresPlausibleNumbers) {
  // No CPU that this builds for does less than a tenth of a scalar fma a nanosecond, and none has 100 TFLOP/s a thread.
  for (const int threads : {1, 2}) {
    const double gflops = FmaPeakGflops(threads, 0);
    EXPECT_GT(gflops, 0.1);
    EXPECT_LT(gflops, 1e5);
    const double read = ReadBandwidthGBs(threads, size_t{1} << 20, 0);
    EXPECT_GT(read, 0.01);
    EXPECT_LT(read, 1e5);
  }
}

}  // namespace
}  // namespace iha::kernels
