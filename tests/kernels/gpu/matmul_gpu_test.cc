#include "kernels/matmul/matmul_gpu.h"

#include <limits>

#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t m, n, k;
};

struct Outputs {
  std::vector<uint16_t> y;
  std::vector<float> y_float;
};

Outputs Multiplied(simt::Device& device, const Case& c, const std::vector<uint16_t>& x,
                   const std::vector<uint16_t>& w) {
  simt::Buffer<uint16_t> dx(device, x, "x"), dw(device, w, "w"), y(device, size_t{c.m} * c.n, "y");
  simt::Buffer<float> y_float(device, size_t{c.m} * c.n, "y_float");
  MatmulGpuArgs args{.x = dx.data(),
                     .w = dw.data(),
                     .y = nullptr,
                     .y_float = y_float.data(),
                     .m = c.m,
                     .n = c.n,
                     .k = c.k,
                     .ldx = c.k + 8,
                     .ldw = c.k,
                     .ldy = c.n};
  EXPECT_EQ(MatmulGpu(args, &device), 0) << device.report().message;
  args.y = y.data();
  args.y_float = nullptr;
  EXPECT_EQ(MatmulGpu(args, &device), 0) << device.report().message;
  return {y.ToHost(), y_float.ToHost()};
}

constexpr Case kCases[] = {{1, 64, 64}, {16, 70, 200}, {3, 130, 8}, {17, 34, 72}, {130, 136, 264}};

std::string Name(const Case& c) {
  return std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k);
}

TEST(MatmulGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(Name(c));
    const Rounded x = RandomBF16(size_t{c.m} * (c.k + 8), 1, 2), w = RandomBF16(size_t{c.n} * c.k, 2, 2);
    std::vector<double> want(size_t{c.m} * c.n), magnitude(want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      for (size_t k = 0; k < c.k; ++k) {
        const double product = double{x.values[i / c.n * (c.k + 8) + k]} * w.values[i % c.n * c.k + k];
        want[i] += product;
        magnitude[i] += std::fabs(product);
      }
    }
    ForEachSchedule([&](simt::Device& device) {
      const Outputs got = Multiplied(device, c, x.bits, w.bits);
      // Products are exact; k additions, each at most 2^-24 of a partial sum below the sum of magnitudes.
      const auto bound = [&](size_t i) { return c.k * 0x1p-24 * magnitude[i]; };
      ExpectClose(got.y_float, want, 0, bound);
      for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(got.y[i], RoundToBF16(got.y_float[i]));
    });
  }
}

TEST(MatmulGpu, RowsDoNotSeeTheBatchOrTheTile) {
  const Case all{150, 72, 136};
  const Rounded x = RandomBF16(size_t{all.m} * (all.k + 8), 3, 2), w = RandomBF16(size_t{all.n} * all.k, 4, 2);
  simt::Device device;
  const Outputs whole = Multiplied(device, all, x.bits, w.bits);
  for (const uint32_t m : {1u, 7u, 64u}) {
    const ptrdiff_t first = 37;
    const std::vector<uint16_t> rows(x.bits.begin() + first * (all.k + 8), x.bits.begin() + (first + m) * (all.k + 8));
    const Outputs some = Multiplied(device, {m, all.n, all.k}, rows, w.bits);
    EXPECT_TRUE(std::equal(some.y_float.begin(), some.y_float.end(), whole.y_float.begin() + first * all.n)) << m;
  }
}

TEST(MatmulGpu, NanStaysInItsRowAndColumn) {
  const Case c{20, 40, 72};
  Rounded x = RandomBF16(size_t{c.m} * (c.k + 8), 5), w = RandomBF16(size_t{c.n} * c.k, 6);
  x.bits[3 * (c.k + 8) + 70] = w.bits[9 * c.k + 1] = RoundToBF16(std::numeric_limits<float>::quiet_NaN());
  simt::Device device;
  const Outputs got = Multiplied(device, c, x.bits, w.bits);
  for (size_t i = 0; i < got.y.size(); ++i) EXPECT_EQ(std::isnan(got.y_float[i]), i / c.n == 3 || i % c.n == 9) << i;
}

// A tile of rows reads all of W's tile and the other way round; products outside of the matrix are computed, with
// zeros.
TEST(MatmulGpu, BytesAndMatrixOperations) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(Name(c));
    const Rounded x = RandomBF16(size_t{c.m} * (c.k + 8), 1), w = RandomBF16(size_t{c.n} * c.k, 2);
    simt::Device device;
    Multiplied(device, c, x.bits, w.bits);
    const MatmulGpuTile tile = MatmulGpuTileFor(c.m);
    const uint64_t row_tiles = (c.m + tile.rows - 1) / tile.rows,
                   column_tiles = (c.n + tile.columns - 1) / tile.columns;
    const simt::Counters& n = device.report().counters;
    EXPECT_EQ(n.global_read_bytes, (column_tiles * c.m + row_tiles * c.n) * c.k * 2);
    EXPECT_EQ(n.global_written_bytes, uint64_t{c.m} * c.n * 2);
    EXPECT_EQ(n.mma_multiply_adds, row_tiles * tile.rows * column_tiles * tile.columns * ((c.k + 63) / 64 * 64));
    EXPECT_EQ(n.matrix_bank_conflicts, 0u);
  }
}

TEST(MatmulGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  float y[4];
  const MatmulGpuArgs good{.y_float = y, .m = 0, .n = 2, .k = 8, .ldx = 8, .ldw = 8, .ldy = 2};
  EXPECT_EQ(MatmulGpu(good, &device), 0);
  MatmulGpuArgs bad = good;
  bad.k = 12;
  EXPECT_EQ(MatmulGpu(bad, &device), 1);
  bad = good;
  bad.n = 3;
  EXPECT_EQ(MatmulGpu(bad, &device), 1);
  bad = good;
  bad.y_float = nullptr;
  EXPECT_EQ(MatmulGpu(bad, &device), 1);
}

static_assert(MatmulGpuTileFor(16).warps == 4 && MatmulGpuTileFor(17).rows == 128);
static_assert(MatmulGpuTileFor(1000).shared_bytes() <= 227 * 1024);

}  // namespace
}  // namespace iha::kernels
