#include "kernels/rope/rope_gpu.h"

#include "tests/kernels/gpu/grid.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t tokens, heads, d, rotary;
  RopePairing pairing;
};

struct Inputs {
  Case c;
  uint32_t token_stride = 0;
  Rounded x;
  std::vector<uint32_t> positions;
  std::vector<float> cos, sin;
};
Inputs Make(const Case& c) {
  const uint32_t half = c.rotary / 2, rows = 50;
  Inputs in{c, c.heads * c.d + 8, {}, {}, std::vector<float>(rows * half), std::vector<float>(rows * half)};
  std::vector<double> frequency(half);
  RopeFrequencies(10000, c.rotary, frequency.data());
  FillRopeTable(frequency.data(), half, 0, rows, 1.0, in.cos.data(), in.sin.data());
  for (uint32_t t = 0; t < c.tokens; ++t) in.positions.push_back((t * 17 + 3) % rows);
  in.x = RandomBF16(size_t{c.tokens} * in.token_stride, 1, 2);
  return in;
}
std::vector<double> Reference(const Inputs& in) {
  const Case& c = in.c;
  std::vector<double> rotated(size_t{c.tokens} * c.heads * c.rotary), want(in.x.values.begin(), in.x.values.end());
  RopeRef({c.tokens, c.heads, in.token_stride, c.d, c.rotary, c.pairing}, in.x.values.data(), in.positions.data(),
          in.cos.data(), in.sin.data(), rotated.data());
  for (size_t i = 0; i < rotated.size(); ++i) {
    const size_t token = i / (c.heads * c.rotary), head = i / c.rotary % c.heads;
    want[token * in.token_stride + head * c.d + i % c.rotary] = rotated[i];
  }
  return want;
}
void ExpectWithinBound(simt::Device& device, const Inputs& in, const std::vector<double>& want) {
  const Case& c = in.c;
  simt::Buffer<uint16_t> dx(device, in.x.bits.size(), "x");
  std::copy(in.x.bits.begin(), in.x.bits.end(), dx.data());
  device.Find(dx.data())->MarkWritten();
  simt::Buffer<uint32_t> dp(device, in.positions, "positions");
  simt::Buffer<float> dc(device, in.cos, "cos"), ds(device, in.sin, "sin");
  ASSERT_EQ(RopeGpu({.x = dx.data(),
                     .positions = dp.data(),
                     .cos = dc.data(),
                     .sin = ds.data(),
                     .tokens = c.tokens,
                     .heads = c.heads,
                     .token_stride = in.token_stride,
                     .head_stride = c.d,
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
}
std::string Name(const Case& c) {
  return std::to_string(c.tokens) + " x " + std::to_string(c.heads) + " x " + std::to_string(c.rotary) + " of " +
         std::to_string(c.d) + (c.pairing == RopePairing::kHalf ? "" : " interleaved");
}

TEST(RopeGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : {Case{1, 1, 64, 64, RopePairing::kHalf}, Case{9, 4, 128, 128, RopePairing::kHalf},
                        Case{3, 9, 64, 32, RopePairing::kHalf}, Case{5, 20, 64, 64, RopePairing::kInterleaved},
                        Case{2, 3, 128, 8, RopePairing::kInterleaved}}) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    const std::vector<double> want = Reference(in);
    ForEachSchedule([&](simt::Device& device) { ExpectWithinBound(device, in, want); });
  }
}

// Every pair of: tokens, heads, head size, what of it is rotated, pairing, what is not finite. Sines may be 0, so that
// an infinity is a NaN beside it, in both.
TEST(RopeGpu, GridOfShapes) {
  const std::array<uint32_t, 4> tokens{1, 2, 5, 33};
  const std::array<uint32_t, 5> heads{1, 4, 9, 20, 40};
  OverGrid(grid_share::kNone, {4, 5, 3, 4, 2, 4}, [&](const std::vector<size_t>& row, uint32_t number) {
    const uint32_t d = 64u << row[2];
    const std::array<uint32_t, 4> rotary{d, d / 2, 16, 48};
    Inputs in = Make({tokens[row[0]], heads[row[1]], d, rotary[row[3]],
                      row[4] == 0 ? RopePairing::kHalf : RopePairing::kInterleaved});
    PutNotFinite(in.x, number % in.c.tokens * in.token_stride + number * 7919 % (in.c.heads * d), row[5]);
    return [in, want = Reference(in)](simt::Device& device) {
      SCOPED_TRACE(Name(in.c));
      ExpectWithinBound(device, in, want);
    };
  });
}

TEST(RopeGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(RopeGpu({.tokens = 1, .heads = 1, .token_stride = 64, .head_stride = 64, .rotary_dim = 24}, &device), 1);
  EXPECT_EQ(RopeGpu({.tokens = 1, .heads = 1, .token_stride = 60, .head_stride = 64, .rotary_dim = 32}, &device), 1);
}

}  // namespace
}  // namespace iha::kernels
