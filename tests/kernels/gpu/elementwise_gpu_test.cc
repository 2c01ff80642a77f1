#include "kernels/elementwise/elementwise_gpu.h"

#include <limits>

#include "kernels/logits/argmax_gpu.h"
#include "kernels/logits/logits.h"
#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

TEST(ElementwiseGpu, AddsWithOneRounding) {
  const uint32_t rows = 5, n = 72, padding = 8;
  const Rounded x = RandomBF16(rows * (n + padding), 1, 4), y = RandomBF16(rows * n, 2, 4);
  for (const bool bias : {false, true}) {
    ForEachSchedule([&](simt::Device& device) {
      simt::Buffer<uint16_t> dx(device, x.bits.size(), "x"), dy(device, y.bits, "y");
      std::copy(x.bits.begin(), x.bits.end(), dx.data());
      device.Find(dx.data())->MarkWritten();
      ASSERT_EQ(AddInPlaceGpu({dx.data(), dy.data(), rows, n, n + padding, bias ? 0 : n}, &device), 0)
          << device.report().message;
      for (size_t i = 0; i < x.bits.size(); ++i) {
        const size_t row = i / (n + padding), column = i % (n + padding);
        const float sum = column < n ? x.values[i] + y.values[(bias ? 0 : row * n) + column] : x.values[i];
        ASSERT_EQ(dx.data()[i], RoundToBF16(sum)) << i;
      }
      EXPECT_EQ(device.report().counters.global_read_bytes, uint64_t{rows} * n * 4);
    });
  }
}

TEST(ElementwiseGpu, EmbedsRowsOfTheTable) {
  const uint32_t vocabulary = 11, n = 24;
  const Rounded table = RandomBF16(vocabulary * n, 3, 2);
  const std::vector<int32_t> ids{0, 10, 3, 3, 7};
  for (const float scale : {1.0f, 5.65625f}) {
    ForEachSchedule([&](simt::Device& device) {
      simt::Buffer<uint16_t> dt(device, table.bits, "table"), out(device, ids.size() * n, "out");
      simt::Buffer<int32_t> di(device, ids, "ids");
      ASSERT_EQ(EmbedGpu({dt.data(), di.data(), out.data(), static_cast<uint32_t>(ids.size()), n, scale}, &device), 0)
          << device.report().message;
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out.data()[i], RoundToBF16(table.values[static_cast<size_t>(ids[i / n]) * n + i % n] * scale));
      }
    });
  }
}

TEST(ElementwiseGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(AddInPlaceGpu({nullptr, nullptr, 1, 12, 16, 16}, &device), 1);
  EXPECT_EQ(EmbedGpu({nullptr, nullptr, nullptr, 1, 12}, &device), 1);
}

// Ties, zeros of both signs, NaN, infinities; lengths around the block and the warp.
TEST(ArgmaxGpu, TheSameTokenAsTheCpu) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const uint32_t n : {1u, 2u, 31u, 33u, 255u, 256u, 257u, 1000u}) {
    const uint32_t rows = 8, ld = n + 3;
    std::vector<float> x = RandomFloats(rows * ld, n, 3);
    const auto row = [&](uint32_t r) { return &x[size_t{r} * ld]; };
    for (uint32_t i = 0; i < n; ++i) {
      row(1)[i] = std::floor(row(1)[i]);      // many ties
      row(2)[i] = i % 2 == 0 ? -0.0f : 0.0f;  // all equal
      row(3)[i] = -kInf;
      row(4)[i] = -1.0f;
    }
    row(4)[n - 1] = kInf;
    row(5)[n / 2] = kNan;
    row(6)[0] = kNan;
    row(7)[n - 1] = -kInf;
    ForEachSchedule([&](simt::Device& device) {
      simt::Buffer<float> logits(device, x, "logits");
      simt::Buffer<int32_t> tokens(device, rows, "tokens");
      ASSERT_EQ(ArgmaxGpu({logits.data(), tokens.data(), rows, n, ld}, &device), 0) << device.report().message;
      for (uint32_t r = 0; r < rows; ++r) EXPECT_EQ(tokens.data()[r], Argmax({row(r), n})) << "row " << r << " n " << n;
      EXPECT_EQ(device.report().counters.global_read_bytes, uint64_t{rows} * n * 4);
    });
  }
}

}  // namespace
}  // namespace iha::kernels
