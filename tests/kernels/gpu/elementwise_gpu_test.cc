#include "kernels/elementwise/elementwise_gpu.h"

#include "kernels/elementwise/elementwise.h"
#include "tests/kernels/gpu/grid.h"

namespace iha::kernels {
namespace {

// `want` was rounded once; every NaN is one.
void ExpectRounded(uint16_t got, double want, size_t at) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(WidenBF16(got))) << at;
  } else {
    ASSERT_EQ(got, RoundToBF16(static_cast<float>(want))) << at;
  }
}

// x + y, of a bias or of as many rows, bit for bit; what lies between rows stays.
struct Sum {
  uint32_t rows, n, padding;
  bool bias;
  Rounded x, y;
};
Sum MakeSum(uint32_t rows, uint32_t n, uint32_t padding, bool bias) {
  return {rows, n, padding, bias, RandomBF16(size_t{rows} * (n + padding), 1, 4), RandomBF16(size_t{rows} * n, 2, 4)};
}
void ExpectSum(simt::Device& device, const Sum& s) {
  simt::Buffer<uint16_t> dx(device, s.x.bits.size(), "x"), dy(device, s.y.bits, "y");
  std::copy(s.x.bits.begin(), s.x.bits.end(), dx.data());
  device.Find(dx.data())->MarkWritten();
  ASSERT_EQ(AddInPlaceGpu({dx.data(), dy.data(), s.rows, s.n, s.n + s.padding, s.bias ? 0 : s.n}, &device), 0)
      << device.report().message;
  std::vector<double> want(size_t{s.rows} * s.n);
  AddRef({s.rows, s.n, s.n + s.padding}, s.x.values.data(), s.y.values.data(), s.bias ? 0 : s.n, want.data());
  const std::vector<uint16_t> got = dx.ToHost();
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t row = i / (s.n + s.padding), column = i % (s.n + s.padding);
    ExpectRounded(got[i], column < s.n ? want[row * s.n + column] : static_cast<double>(s.x.values[i]), i);
  }
  EXPECT_EQ(device.report().counters.global_read_bytes, uint64_t{s.rows} * s.n * 4);
  EXPECT_EQ(device.report().counters.global_written_bytes, uint64_t{s.rows} * s.n * 2);
}

TEST(ElementwiseGpu, AddsWithOneRounding) {
  for (const bool bias : {false, true}) {
    const Sum sum = MakeSum(5, 72, 8, bias);
    ForEachSchedule([&](simt::Device& device) { ExpectSum(device, sum); });
  }
}

constexpr std::array<uint32_t, 4> kRows{1, 3, 20, 33};
constexpr std::array<uint32_t, 5> kColumns{8, 24, 72, 1032, 2560};

// Every pair of: rows, columns, elements between rows, bias or rows, what is not finite.
TEST(ElementwiseGpu, GridOfSums) {
  OverGrid(grid_share::kNone, {4, 5, 2, 2, 4}, [](const std::vector<size_t>& row, uint32_t number) {
    Sum sum = MakeSum(kRows[row[0]], kColumns[row[1]], row[2] == 0 ? 0 : 8, row[3] == 1);
    PutNotFinite(sum.x, number * 7919, row[4]);
    PutNotFinite(sum.y, number * 131, row[4]);
    return [sum](simt::Device& device) { ExpectSum(device, sum); };
  });
}

void ExpectEmbedded(simt::Device& device, const Rounded& table, uint32_t n, const std::vector<int32_t>& ids,
                    float scale) {
  simt::Buffer<uint16_t> dt(device, table.bits, "table"), out(device, ids.size() * n, "out");
  simt::Buffer<int32_t> di(device, ids, "ids");
  ASSERT_EQ(EmbedGpu({dt.data(), di.data(), out.data(), static_cast<uint32_t>(ids.size()), n, scale}, &device), 0)
      << device.report().message;
  std::vector<double> want(ids.size() * n);
  EmbedRef({ids.size(), n, n}, table.values.data(), ids.data(), scale, want.data());
  const std::vector<uint16_t> got = out.ToHost();
  for (size_t i = 0; i < got.size(); ++i) ExpectRounded(got[i], want[i], i);
  // A row of the table and of the result once each; a thread of 8 columns reads its id.
  EXPECT_EQ(device.report().counters.global_read_bytes, got.size() * 2 + got.size() / 8 * 4);
  EXPECT_EQ(device.report().counters.global_written_bytes, got.size() * 2);
}

TEST(ElementwiseGpu, EmbedsRowsOfTheTable) {
  const Rounded table = RandomBF16(11 * 24, 3, 2);
  for (const float scale : {1.0f, 5.65625f}) {
    ForEachSchedule([&](simt::Device& device) { ExpectEmbedded(device, table, 24, {0, 10, 3, 3, 7}, scale); });
  }
}

// Every pair of: rows, columns, vocabulary, scale, what of the table is not finite.
TEST(ElementwiseGpu, GridOfEmbeddings) {
  const std::array<uint32_t, 3> vocabularies{1, 11, 64};
  OverGrid(grid_share::kNone, {4, 5, 3, 2, 4}, [&](const std::vector<size_t>& row, uint32_t number) {
    const uint32_t n = kColumns[row[1]], vocabulary = vocabularies[row[2]];
    Rounded table = RandomBF16(size_t{vocabulary} * n, number, 2);
    PutNotFinite(table, number * 7919, row[4]);
    std::vector<int32_t> ids;
    for (uint32_t r = 0; r < kRows[row[0]]; ++r) ids.push_back(static_cast<int32_t>((r * 7 + number) % vocabulary));
    return [=, scale = row[3] == 0 ? 1.0f : 5.65625f](simt::Device& device) {
      ExpectEmbedded(device, table, n, ids, scale);
    };
  });
}

TEST(ElementwiseGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(AddInPlaceGpu({nullptr, nullptr, 1, 12, 16, 16}, &device), 1);
  EXPECT_EQ(EmbedGpu({nullptr, nullptr, nullptr, 1, 12}, &device), 1);
}

}  // namespace
}  // namespace iha::kernels
