#include "kernels/iha_collapse/iha_collapse_gpu.h"

#include <limits>

#include "kernels/iha_collapse/iha_collapse.h"
#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t tokens, heads, pseudo, d;
  bool xsa;
};

std::vector<uint16_t> Collapsed(simt::Device& device, const Case& c, const Rounded& a, const Rounded& v,
                                const std::vector<float>& r) {
  simt::Buffer<uint16_t> da(device, a.bits, "a"), dv(device, v.bits, "v"),
      out(device, size_t{c.tokens} * c.heads * c.d);
  simt::Buffer<float> dr(device, r, "collapse");
  EXPECT_EQ(IhaCollapseGpu({.a = da.data(),
                            .v = c.xsa ? dv.data() : nullptr,
                            .collapse = dr.data(),
                            .out = out.data(),
                            .tokens = c.tokens,
                            .heads = c.heads,
                            .pseudo = c.pseudo,
                            .d = c.d},
                           &device),
            0)
      << device.report().message;
  return out.ToHost();
}

// Rows [t][j][h] of the device to [t][h][j] of the reference.
std::vector<float> ByHead(const Case& c, const std::vector<float>& rows) {
  std::vector<float> out(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t e = i % c.d, h = i / c.d % c.heads, j = i / c.d / c.heads % c.pseudo, t = i / c.d / c.heads / c.pseudo;
    out[((t * c.heads + h) * c.pseudo + j) * c.d + e] = rows[i];
  }
  return out;
}

TEST(IhaCollapseGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : {Case{1, 1, 1, 64, false}, Case{3, 4, 2, 64, true}, Case{2, 9, 3, 128, true},
                        Case{3, 20, 4, 128, false}, Case{1, 4, 20, 256, true}, Case{2, 20, 8, 64, false}}) {
    SCOPED_TRACE("H" + std::to_string(c.heads) + " P" + std::to_string(c.pseudo) + " d" + std::to_string(c.d));
    const size_t n = size_t{c.tokens} * c.pseudo * c.heads * c.d;
    const Rounded a = RandomBF16(n, 1, 2), v = RandomBF16(n, 2, 2);
    const std::vector<float> r = RandomFloats(size_t{c.heads} * c.pseudo, 3);
    const std::vector<float> a_ref = ByHead(c, a.values), v_ref = ByHead(c, v.values);
    std::vector<double> want(size_t{c.tokens} * c.heads * c.d);
    IhaCollapseRef({c.tokens, c.heads, c.pseudo, c.d, false}, r.data(), a_ref.data(), c.xsa ? v_ref.data() : nullptr,
                   want.data());
    ForEachSchedule([&](simt::Device& device) {
      const std::vector<float> got = WidenAll(Collapsed(device, c, a, v, r));
      // The chain over j: P roundings of terms below 2 |R|; XSA: dot and square are chains of 8 and 5 sums, relative to
      // |a| |v|: 16 * 2^-24, times |u| <= 1, with |a| <= 2 sqrt(d).
      ExpectClose(got, want, kBF16, [&](size_t i) {
        double weights = 0;
        for (size_t j = 0; j < c.pseudo; ++j) weights += std::fabs(r[i / c.d % c.heads * c.pseudo + j]);
        return weights * 2 * (c.pseudo + (c.xsa ? 40 * std::sqrt(c.d) : 0.0)) * 0x1p-24;
      });
      const uint64_t rows = n * 2;
      EXPECT_EQ(device.report().counters.global_read_bytes, rows * (c.xsa ? 2 : 1) + n / 8 * 4);
      EXPECT_EQ(device.report().counters.global_written_bytes, rows / c.pseudo);
    });
  }
}

TEST(IhaCollapseGpu, GlobalWithinTheBoundOfTheReference) {
  for (const auto& [c, exact] : {std::pair{Case{1, 1, 1, 64, false}, true},
                                 {Case{18, 4, 3, 64, false}, false},
                                 {Case{2, 20, 2, 128, false}, false},
                                 {Case{1, 20, 20, 64, false}, true},
                                 {Case{3, 9, 8, 128, false}, false}}) {
    SCOPED_TRACE("H" + std::to_string(c.heads) + " P" + std::to_string(c.pseudo) + " d" + std::to_string(c.d));
    const size_t rows = size_t{c.pseudo} * c.heads, n = c.tokens * rows * c.d;
    const Rounded a = RandomBF16(n, 1, 2);
    std::vector<float> r = RandomFloats(c.heads * rows, 3);
    if (exact) r = RoundAll(r).values;
    const uint32_t terms = exact ? 1 : 2;
    std::vector<uint16_t> packed(CollapseGpuLayoutFor(c.heads, c.pseudo, terms).elements());
    CollapseGpuPack(c.heads, c.pseudo, terms, r.data(), packed.data());
    const std::vector<float> a_ref = ByHead(c, a.values);
    std::vector<double> want(size_t{c.tokens} * c.heads * c.d);
    IhaCollapseRef({c.tokens, c.heads, c.pseudo, c.d, true}, r.data(), a_ref.data(), nullptr, want.data());
    ForEachSchedule([&](simt::Device& device) {
      simt::Buffer<uint16_t> da(device, a.bits, "a"), dr(device, packed, "collapse"), out(device, want.size(), "out");
      ASSERT_EQ(IhaCollapseGlobalGpu({.a = da.data(),
                                      .collapse = dr.data(),
                                      .out = out.data(),
                                      .terms = terms,
                                      .tokens = c.tokens,
                                      .heads = c.heads,
                                      .pseudo = c.pseudo,
                                      .d = c.d},
                                     &device),
                0)
          << device.report().message;
      // |a| <= 2: R is off by 2^-17, and H P (twice: two terms) additions by 2^-24 of sums below 2 sum |R|.
      ExpectClose(WidenAll(out.ToHost()), want, kBF16, [&](size_t i) {
        double weights = 0;
        for (size_t k = 0; k < rows; ++k) weights += std::fabs(r[i / c.d % c.heads * rows + k]);
        return 2 * weights * (0x1p-17 + 2 * static_cast<double>(rows) * 0x1p-24);
      });
      const CollapseGpuLayout layout = CollapseGpuLayoutFor(c.heads, c.pseudo, terms);
      const uint64_t slices = c.d / 64, blocks = (c.tokens + 15) / 16 * slices;
      const simt::Counters& count = device.report().counters;
      EXPECT_EQ(count.global_read_bytes, n * 2 + blocks * layout.elements() * 2);
      EXPECT_EQ(count.global_written_bytes, want.size() * 2);
      EXPECT_EQ(count.mma, c.tokens * slices * (layout.columns / 16) * terms * (layout.rows / 16) * 8);
      EXPECT_EQ(count.matrix_bank_conflicts, 0u);
    });
  }
}

TEST(IhaCollapseGpu, NanStaysInItsRowAndTokensApart) {
  const Case c{3, 4, 2, 64, true};
  const size_t n = size_t{c.tokens} * c.pseudo * c.heads * c.d;
  Rounded a = RandomBF16(n, 4), v = RandomBF16(n, 5);
  const std::vector<float> r = RandomFloats(size_t{c.heads} * c.pseudo, 6);
  simt::Device device;
  const std::vector<uint16_t> clean = Collapsed(device, c, a, v, r);
  const size_t row = ((1 * c.pseudo + 1) * c.heads + 2) * c.d;  // token 1, pseudo 1, head 2
  v.bits[row + 5] = RoundToBF16(std::numeric_limits<float>::quiet_NaN());
  const std::vector<uint16_t> dirty = Collapsed(device, c, a, v, r);
  for (size_t i = 0; i < clean.size(); ++i) {
    if (i / c.d == 1 * c.heads + 2) {
      EXPECT_TRUE(std::isnan(WidenBF16(dirty[i])));
    } else {
      EXPECT_EQ(dirty[i], clean[i]);
    }
  }
}

TEST(IhaCollapseGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(IhaCollapseGpu({.tokens = 1, .heads = 1, .pseudo = 1, .d = 96}, &device), 1);
  EXPECT_EQ(IhaCollapseGpu({.tokens = 1, .heads = 0, .pseudo = 1, .d = 64}, &device), 1);
  EXPECT_EQ(IhaCollapseGlobalGpu({.tokens = 1, .heads = 33, .pseudo = 1, .d = 64}, &device), 1);
}

}  // namespace
}  // namespace iha::kernels
