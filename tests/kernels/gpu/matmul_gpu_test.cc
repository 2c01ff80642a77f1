#include "kernels/matmul/matmul_gpu.h"

#include <limits>

#include "tests/kernels/gpu/grid.h"

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

struct Inputs {
  Case c;
  Rounded x, w;
};
Inputs Make(const Case& c) {
  return {c, RandomBF16(size_t{c.m} * (c.k + 8), 1, 2), RandomBF16(size_t{c.n} * c.k, 2, 2)};
}
struct Wanted {
  std::vector<double> y, magnitude;  // the latter: sums of the products' magnitudes
};
Wanted Reference(const Inputs& in) {
  const Case& c = in.c;
  Wanted want{std::vector<double>(size_t{c.m} * c.n), std::vector<double>(size_t{c.m} * c.n)};
  for (size_t i = 0; i < want.y.size(); ++i) {
    for (size_t k = 0; k < c.k; ++k) {
      const double product = double{in.x.values[i / c.n * (c.k + 8) + k]} * in.w.values[i % c.n * c.k + k];
      want.y[i] += product;
      want.magnitude[i] += std::fabs(product);
    }
  }
  return want;
}
void ExpectWithinBound(simt::Device& device, const Inputs& in, const Wanted& want) {
  const Outputs got = Multiplied(device, in.c, in.x.bits, in.w.bits);
  // Products are exact; k additions, each at most 2^-24 of a partial sum below the sum of magnitudes.
  ExpectClose(got.y_float, want.y, 0, [&](size_t i) { return in.c.k * 0x1p-24 * want.magnitude[i]; });
  for (size_t i = 0; i < got.y.size(); ++i) {
    if (std::isnan(got.y_float[i])) {
      ASSERT_TRUE(std::isnan(WidenBF16(got.y[i])));
    } else {
      ASSERT_EQ(got.y[i], RoundToBF16(got.y_float[i]));
    }
  }
}

TEST(MatmulGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    const Wanted want = Reference(in);
    ForEachSchedule([&](simt::Device& device) { ExpectWithinBound(device, in, want); });
  }
}

// Every pair of: rows, columns, k, what is not finite in x or w. NaN and infinities reach their row or column.
TEST(MatmulGpu, GridOfShapes) {
  constexpr std::array<uint32_t, 7> rows{1, 7, 16, 17, 64, 129, 300};
  constexpr std::array<uint32_t, 4> columns{2, 64, 66, 130}, depths{8, 64, 72, 264};
  const auto cost = [&](const std::vector<size_t>& row) {
    return (rows[row[0]] + 64.0) * (columns[row[1]] + 64) * (depths[row[2]] + 64);
  };
  const auto prepare = [&](const std::vector<size_t>& row, uint32_t number) -> GridCheck {
    Inputs in = Make({rows[row[0]], columns[row[1]], depths[row[2]]});
    const size_t k = number * 7919 % in.c.k;
    if (row[4] == 0) PutNotFinite(in.x, number * 131 % in.c.m * (in.c.k + 8) + k, row[3]);
    if (row[4] == 1) PutNotFinite(in.w, number * 131 % in.c.n * in.c.k + k, row[3]);
    return [in, want = Reference(in)](simt::Device& device) {
      SCOPED_TRACE(Name(in.c));
      ExpectWithinBound(device, in, want);
    };
  };
  OverGrid(grid_share::kMatmul, {7, 4, 4, 4, 2}, prepare, cost);
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
