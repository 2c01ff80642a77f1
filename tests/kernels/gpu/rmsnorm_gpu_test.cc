#include "kernels/rmsnorm/rmsnorm_gpu.h"

#include <limits>

#include "kernels/rmsnorm/rmsnorm.h"
#include "tests/kernels/gpu/grid.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t rows, n, padding;
  bool weight, plus_one;
  uint32_t mean_of = 0;
};

// bf16 bits of the normalised rows, dense.
std::vector<uint16_t> Normalised(simt::Device& device, const Case& c, const Rounded& x, const Rounded& weight) {
  simt::Buffer<uint16_t> dx(device, x.bits, "x"), dw(device, weight.bits, "weight"),
      y(device, size_t{c.rows} * c.n, "y");
  const RmsNormGpuArgs args{.x = dx.data(),
                            .weight = c.weight ? dw.data() : nullptr,
                            .y = y.data(),
                            .rows = c.rows,
                            .n = c.n,
                            .ldx = c.n + c.padding,
                            .ldy = c.n,
                            .eps = 1e-5f,
                            .weight_plus_one = c.plus_one,
                            .mean_of = c.mean_of};
  EXPECT_EQ(RmsNormGpu(args, &device), 0) << device.report().message;
  return y.ToHost();
}

struct Inputs {
  Case c;
  Rounded x, weight;
};
Inputs Make(const Case& c) { return {c, RandomBF16(size_t{c.rows} * (c.n + c.padding), 1, 3), RandomBF16(c.n, 2, 2)}; }
std::vector<double> Reference(const Inputs& in) {
  const Case& c = in.c;
  std::vector<double> want(size_t{c.rows} * c.n);
  RmsNormRef({c.rows, c.n, c.n + c.padding, c.n, 1e-5f, c.plus_one}, in.x.values.data(),
             c.weight ? in.weight.values.data() : nullptr, want.data());
  return want;
}
void ExpectWithinBound(simt::Device& device, const Inputs& in, const std::vector<double>& want) {
  const Case& c = in.c;
  // Squares: chains of 32, then 5 and at most 32 sums of non-negative terms, halved by the root: 35 * 2^-24; root
  // below 2^-21, three products and a sum 2^-22: together below 2^-18. 1 + weight may cancel to 2^-24 of 1.
  ExpectClose(WidenAll(Normalised(device, c, in.x, in.weight)), want, kBF16 + 0x1p-18, [&](size_t i) {
    return c.plus_one && std::isfinite(want[i])
               ? 0x1p-23 * std::fabs(want[i]) / std::max(1e-9, std::fabs(1.0 + in.weight.values[i % c.n]))
               : 0.0;
  });
  // One read of x, one write of y, and the weights once a row (n > 1024: a block a row; else a warp a row).
  const uint64_t bytes = uint64_t{c.rows} * c.n * 2;
  EXPECT_EQ(device.report().counters.global_read_bytes, bytes * (c.weight ? 2 : 1));
  EXPECT_EQ(device.report().counters.global_written_bytes, bytes);
}

TEST(RmsNormGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : {Case{1, 8, 0, true, false}, Case{5, 64, 8, true, true}, Case{7, 128, 0, false, false},
                        Case{3, 1024, 0, true, false}, Case{3, 1032, 8, true, true}, Case{2, 2560, 0, false, false},
                        Case{1, 32768, 0, true, false}}) {
    SCOPED_TRACE(std::to_string(c.rows) + " x " + std::to_string(c.n));
    const Inputs in = Make(c);
    const std::vector<double> want = Reference(in);
    ForEachSchedule([&](simt::Device& device) { ExpectWithinBound(device, in, want); });
  }
}

// Every pair of: rows, columns, elements between rows, weights (none, w, 1 + w), what is not finite, a row of zeros.
TEST(RmsNormGpu, GridOfShapes) {
  const std::array<uint32_t, 5> rows{1, 3, 4, 5, 9};
  const std::array<uint32_t, 8> columns{8, 64, 72, 256, 1024, 1032, 2048, 2568};
  OverGrid(grid_share::kNone, {5, 8, 2, 3, 4, 2}, [&](const std::vector<size_t>& row, uint32_t number) {
    Inputs in = Make({rows[row[0]], columns[row[1]], row[2] == 0 ? 0u : 8u, row[3] != 0, row[3] == 2});
    const size_t ld = in.c.n + in.c.padding, zeros = number % in.c.rows;
    PutNotFinite(in.x, (number + 1) % in.c.rows * ld + number * 7919 % in.c.n, row[4]);
    for (size_t i = 0; row[5] == 1 && i < in.c.n; ++i) in.x.bits[zeros * ld + i] = in.x.values[zeros * ld + i] = 0;
    return [in, want = Reference(in)](simt::Device& device) {
      SCOPED_TRACE(std::to_string(in.c.rows) + " x " + std::to_string(in.c.n));
      ExpectWithinBound(device, in, want);
    };
  });
}

TEST(RmsNormGpu, RowsDoNotSeeTheBatch) {
  for (const uint32_t n : {128u, 2560u}) {
    const Rounded x = RandomBF16(size_t{64} * n, 3, 3), weight = RandomBF16(n, 4);
    simt::Device device;
    const std::vector<uint16_t> all = Normalised(device, {64, n, 0, true, false}, x, weight);
    for (const uint32_t rows : {1u, 7u}) {
      const Rounded part{{x.bits.begin() + 20 * n, x.bits.begin() + (20 + rows) * n}, {}};
      const std::vector<uint16_t> some = Normalised(device, {rows, n, 0, true, false}, part, weight);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 20 * n));
    }
  }
}

// Zeros that pad a row change nothing when the mean leaves them out.
TEST(RmsNormGpu, ThePaddingOfARowDoesNotCount) {
  for (const auto& [n, padded] : {std::pair<uint32_t, uint32_t>{8, 64}, {72, 128}}) {
    const Rounded x = RandomBF16(n, 5, 3), weight = RandomBF16(n, 6, 2);
    Rounded wide = x, wide_weight = weight;
    wide.bits.resize(padded);
    wide_weight.bits.resize(padded);
    simt::Device device;
    std::vector<uint16_t> want = Normalised(device, {1, n, 0, true, false}, x, weight);
    want.resize(padded);
    simt::Buffer<uint16_t> dx(device, wide.bits, "x"), dw(device, wide_weight.bits, "weight"), y(device, padded, "y");
    ASSERT_EQ(RmsNormGpu({.x = dx.data(),
                          .weight = dw.data(),
                          .y = y.data(),
                          .rows = 1,
                          .n = padded,
                          .ldx = padded,
                          .ldy = padded,
                          .eps = 1e-5f,
                          .mean_of = n},
                         &device),
              0)
        << device.report().message;
    EXPECT_EQ(y.ToHost(), want);
  }
}

TEST(RmsNormGpu, NanAndInfinityStayInTheirRows) {
  Rounded x = RandomBF16(4 * 64, 5);
  const auto put = [&](size_t i, float v) { x.bits[i] = RoundToBF16(x.values[i] = v); };
  put(64 + 3, std::numeric_limits<float>::quiet_NaN());
  put(128 + 9, std::numeric_limits<float>::infinity());
  std::vector<double> want(4 * 64);
  RmsNormRef({4, 64, 64, 64, 1e-5f, false}, x.values.data(), nullptr, want.data());
  simt::Device device;
  ExpectClose(WidenAll(Normalised(device, {4, 64, 0, false, false}, x, x)), want, kBF16 + 0x1p-18,
              [](size_t) { return 0.0; });
}

TEST(RmsNormGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(RmsNormGpu({.rows = 1, .n = 12, .ldx = 16, .ldy = 16}, &device), 1);
  EXPECT_EQ(RmsNormGpu({.rows = 1, .n = kMaxRmsNormGpu + 8, .ldx = 65536, .ldy = 65536}, &device), 1);
  EXPECT_EQ(RmsNormGpu({.rows = 0, .n = 8, .ldx = 8, .ldy = 8}, &device), 0);
}

static_assert(RmsNormTileFor(8).rows == 4 && RmsNormTileFor(1024).threads == 32);
static_assert(RmsNormTileFor(1032).threads == 64 && RmsNormTileFor(2560).threads == 96);
static_assert(RmsNormTileFor(kMaxRmsNormGpu).threads == 1024);

}  // namespace
}  // namespace iha::kernels
