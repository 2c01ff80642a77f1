#include "kernels/rope/rope_gpu.h"

#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t tokens, heads, d, rotary;
  RopePairing pairing;
};

TEST(RopeGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : {Case{1, 1, 64, 64, RopePairing::kHalf}, Case{9, 4, 128, 128, RopePairing::kHalf},
                        Case{3, 9, 64, 32, RopePairing::kHalf}, Case{5, 20, 64, 64, RopePairing::kInterleaved},
                        Case{2, 3, 128, 8, RopePairing::kInterleaved}}) {
    SCOPED_TRACE(std::to_string(c.tokens) + " x " + std::to_string(c.heads) + " x " + std::to_string(c.d));
    const uint32_t half = c.rotary / 2, rows = 50;
    std::vector<double> frequency(half);
    RopeFrequencies(10000, c.rotary, frequency.data());
    std::vector<float> cos(rows * half), sin(rows * half);
    FillRopeTable(frequency.data(), half, 0, rows, 1.0, cos.data(), sin.data());
    std::vector<uint32_t> positions;
    for (uint32_t t = 0; t < c.tokens; ++t) positions.push_back((t * 17 + 3) % rows);
    const uint32_t head_stride = c.d, token_stride = c.heads * c.d + 8;
    const Rounded x = RandomBF16(size_t{c.tokens} * token_stride, 1, 2);
    const RopeShape shape{c.tokens, c.heads, token_stride, head_stride, c.rotary, c.pairing};
    std::vector<double> rotated(size_t{c.tokens} * c.heads * c.rotary), want(x.values.begin(), x.values.end());
    RopeRef(shape, x.values.data(), positions.data(), cos.data(), sin.data(), rotated.data());
    for (size_t i = 0; i < rotated.size(); ++i) {
      const size_t token = i / (c.heads * c.rotary), head = i / c.rotary % c.heads;
      want[token * token_stride + head * head_stride + i % c.rotary] = rotated[i];
    }
    ForEachSchedule([&](simt::Device& device) {
      simt::Buffer<uint16_t> dx(device, x.bits.size(), "x");
      std::copy(x.bits.begin(), x.bits.end(), dx.data());
      device.Find(dx.data())->MarkWritten();
      simt::Buffer<uint32_t> dp(device, positions, "positions");
      simt::Buffer<float> dc(device, cos, "cos"), ds(device, sin, "sin");
      ASSERT_EQ(RopeGpu({.x = dx.data(),
                         .positions = dp.data(),
                         .cos = dc.data(),
                         .sin = ds.data(),
                         .tokens = c.tokens,
                         .heads = c.heads,
                         .token_stride = token_stride,
                         .head_stride = head_stride,
                         .rotary_dim = c.rotary,
                         .pairing = c.pairing},
                        &device),
                0)
          << device.report().message;
      // Two fp32 roundings of terms below 2 * 2 in magnitude: 2^-22; then bf16.
      ExpectClose(WidenAll(dx.ToHost()), want, kBF16, [](size_t) { return 0x1p-22; });
      const uint64_t elements = uint64_t{c.tokens} * c.heads * c.rotary;
      // A block of 128 threads reads its position; each pair of values reads 4 bytes of cos and of sin.
      EXPECT_EQ(device.report().counters.global_read_bytes, elements * 2 + elements / 2 * 8 + c.tokens * 128 * 4);
      EXPECT_EQ(device.report().counters.global_written_bytes, elements * 2);
    });
  }
}

TEST(RopeGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(RopeGpu({.tokens = 1, .heads = 1, .token_stride = 64, .head_stride = 64, .rotary_dim = 24}, &device), 1);
  EXPECT_EQ(RopeGpu({.tokens = 1, .heads = 1, .token_stride = 60, .head_stride = 64, .rotary_dim = 32}, &device), 1);
}

}  // namespace
}  // namespace iha::kernels
