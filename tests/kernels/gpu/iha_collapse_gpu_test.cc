#include "kernels/iha_collapse/iha_collapse_gpu.h"

#include <limits>

#include "kernels/iha_collapse/iha_collapse.h"
#include "tests/kernels/gpu/grid.h"

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

// Per head: its inputs, and what they come to.
struct PerHead {
  Case c;
  Rounded a, v;
  std::vector<float> r;  // [H][P]
};
PerHead MakePerHead(const Case& c) {
  const size_t n = size_t{c.tokens} * c.pseudo * c.heads * c.d;
  return {c, RandomBF16(n, 1, 2), RandomBF16(n, 2, 2), RandomFloats(size_t{c.heads} * c.pseudo, 3)};
}
std::vector<double> Reference(const PerHead& in) {
  const Case& c = in.c;
  const std::vector<float> a = ByHead(c, in.a.values), v = ByHead(c, in.v.values);
  std::vector<double> want(size_t{c.tokens} * c.heads * c.d);
  IhaCollapseRef({c.tokens, c.heads, c.pseudo, c.d, false}, in.r.data(), a.data(), c.xsa ? v.data() : nullptr,
                 want.data());
  return want;
}
void ExpectWithinBound(const PerHead& in, const std::vector<uint16_t>& got, const std::vector<double>& want) {
  // The chain over j: P roundings of terms below 2 |R|; XSA: dot and square are chains of 8 and 5 sums, relative to
  // |a| |v|: 16 * 2^-24, times |u| <= 1, with |a| <= 2 sqrt(d).
  const Case& c = in.c;
  ExpectClose(WidenAll(got), want, kBF16, [&](size_t i) {
    double weights = 0;
    for (size_t j = 0; j < c.pseudo; ++j) weights += std::fabs(in.r[i / c.d % c.heads * c.pseudo + j]);
    return weights * 2 * (c.pseudo + (c.xsa ? 40 * std::sqrt(c.d) : 0.0)) * 0x1p-24;
  });
}
std::string Name(const Case& c) {
  return "T" + std::to_string(c.tokens) + " H" + std::to_string(c.heads) + " P" + std::to_string(c.pseudo) + " d" +
         std::to_string(c.d) + (c.xsa ? " XSA" : "");
}

TEST(IhaCollapseGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : {Case{1, 1, 1, 64, false}, Case{3, 4, 2, 64, true}, Case{2, 9, 3, 128, true},
                        Case{3, 20, 4, 128, false}, Case{1, 4, 20, 256, true}, Case{2, 20, 8, 64, false}}) {
    SCOPED_TRACE(Name(c));
    const PerHead in = MakePerHead(c);
    const std::vector<double> want = Reference(in);
    ForEachSchedule([&](simt::Device& device) {
      ExpectWithinBound(in, Collapsed(device, c, in.a, in.v, in.r), want);
      const uint64_t n = in.a.bits.size(), rows = n * 2;
      EXPECT_EQ(device.report().counters.global_read_bytes, rows * (c.xsa ? 2 : 1) + n / 8 * 4);
      EXPECT_EQ(device.report().counters.global_written_bytes, rows / c.pseudo);
      EXPECT_EQ(device.report().counters.mma, 0u);
    });
  }
}

constexpr std::array<uint32_t, 4> kTokens{1, 2, 16, 17};
constexpr std::array<uint32_t, 7> kHeads{1, 4, 9, 20, 33, 40, 64};  // per head: as many as one likes
constexpr std::array<uint32_t, 6> kPseudo{1, 2, 3, 4, 8, 20};

// Every pair of: tokens, heads, pseudo heads, head size, XSA, what is not finite. An infinity of a or v with XSA may be
// a NaN or not by the last bit of a product: NaN only.
TEST(IhaCollapseGpu, GridOfShapes) {
  OverGrid(grid_share::kNone, {4, 7, 6, 3, 2, 3}, [](const std::vector<size_t>& row, uint32_t number) {
    const Case c{kTokens[row[0]], kHeads[row[1]], kPseudo[row[2]], 64u << row[3], row[4] == 1};
    PerHead in = MakePerHead(c);
    PutNotFinite(c.xsa && number % 2 == 1 ? in.v : in.a, number * 7919, c.xsa ? std::min<size_t>(row[5], 1) : row[5]);
    return [in, want = Reference(in)](simt::Device& device) {
      SCOPED_TRACE(Name(in.c));
      ExpectWithinBound(in, Collapsed(device, in.c, in.a, in.v, in.r), want);
    };
  });
}

// A global collapse: its inputs, and what the device makes of them.
struct Global {
  Case c;
  uint32_t terms;
  Rounded a, v;
  std::vector<float> r;  // [H][H P]
  std::vector<uint16_t> packed;
};
Global MakeGlobal(const Case& c, uint32_t terms) {
  const size_t rows = size_t{c.pseudo} * c.heads, n = c.tokens * rows * c.d;
  Global g{c, terms, RandomBF16(n, 1, 2), RandomBF16(n, 2, 2), RandomFloats(c.heads * rows, 3), {}};
  if (terms == 1) g.r = RoundAll(g.r).values;
  g.packed.resize(CollapseGpuLayoutFor(c.heads, c.pseudo, terms).elements());
  CollapseGpuPack(c.heads, c.pseudo, terms, g.r.data(), g.packed.data());
  return g;
}
std::vector<uint16_t> Collapsed(simt::Device& device, const Global& g) {
  const Case& c = g.c;
  simt::Buffer<uint16_t> a(device, g.a.bits, "a"), v(device, g.v.bits, "v"), r(device, g.packed, "collapse"),
      out(device, size_t{c.tokens} * c.heads * c.d, "out");
  EXPECT_EQ(IhaCollapseGlobalGpu({.a = a.data(),
                                  .collapse = r.data(),
                                  .out = out.data(),
                                  .terms = g.terms,
                                  .tokens = c.tokens,
                                  .heads = c.heads,
                                  .pseudo = c.pseudo,
                                  .d = c.d,
                                  .v = c.xsa ? v.data() : nullptr},
                                 &device),
            0)
      << device.report().message;
  return out.ToHost();
}
std::vector<double> Reference(const Global& g) {
  const Case& c = g.c;
  const std::vector<float> a = ByHead(c, g.a.values), v = ByHead(c, g.v.values);
  std::vector<double> want(size_t{c.tokens} * c.heads * c.d);
  IhaCollapseRef({c.tokens, c.heads, c.pseudo, c.d, true}, g.r.data(), a.data(), c.xsa ? v.data() : nullptr,
                 want.data());
  return want;
}
void ExpectWithinBound(const Global& g, const std::vector<uint16_t>& got, const std::vector<double>& want) {
  // |a| <= 2: R is off by 2^-17, and H P (twice: two terms) additions by 2^-24 of sums below 2 sum |R|. XSA: |a . u| <=
  // ||a|| <= 2 sqrt(d), so that |z| is below 2 + 2 sqrt(d) and its own error as of the collapse per head; then it is
  // rounded to bf16.
  const Case& c = g.c;
  const size_t rows = size_t{c.pseudo} * c.heads;
  const double norm = 2 * std::sqrt(c.d), largest = c.xsa ? 2 + norm : 2;
  const double z = c.xsa ? largest * 0x1p-8 + 40 * norm * 0x1p-24 : 0;
  ExpectClose(WidenAll(got), want, kBF16, [&](size_t i) {
    double weights = 0;
    for (size_t k = 0; k < rows; ++k) weights += std::fabs(g.r[i / c.d % c.heads * rows + k]);
    return weights * (largest * (0x1p-17 + 2 * static_cast<double>(rows) * 0x1p-24) + z);
  });
}

// Rows of a (and v) once, R once by each block: of 16 tokens and 64 columns, with XSA of 16 tokens. Where blocks hold a
// part of the heads, a (and v) once for each part.
TEST(IhaCollapseGpu, GlobalWithinTheBoundOfTheReference) {
  for (const auto& [c, terms] : {std::pair{Case{1, 1, 1, 64, false}, 1u},
                                 {Case{18, 4, 3, 64, false}, 2u},
                                 {Case{2, 20, 2, 128, false}, 2u},
                                 {Case{1, 20, 20, 64, false}, 1u},
                                 {Case{3, 9, 8, 128, false}, 2u},
                                 {Case{1, 1, 1, 64, true}, 1u},
                                 {Case{18, 4, 3, 64, true}, 2u},
                                 {Case{2, 20, 2, 128, true}, 2u},
                                 {Case{1, 20, 20, 64, true}, 1u},
                                 {Case{3, 9, 8, 256, true}, 1u},
                                 {Case{1, 17, 4, 256, true}, 2u},
                                 {Case{2, 64, 12, 64, false}, 2u},  // R of 32 heads a block
                                 {Case{1, 40, 20, 128, true}, 2u},  // the same
                                 {Case{1, 64, 2, 256, true}, 1u}}) {
    SCOPED_TRACE(Name(c));
    const Global g = MakeGlobal(c, terms);
    const std::vector<double> want = Reference(g);
    ForEachSchedule([&](simt::Device& device) {
      ExpectWithinBound(g, Collapsed(device, g), want);
      const CollapseGpuLayout layout = CollapseGpuLayoutFor(c.heads, c.pseudo, terms);
      const uint64_t slices = c.d / 64, blocks = (c.tokens + 15) / 16 * (c.xsa ? 1 : slices);
      const uint64_t parts = layout.rows / 16 / CollapseGpuTilesFor(layout, c.xsa ? c.d : 0);
      EXPECT_EQ(parts, c.heads * c.pseudo >= 64 * 12 ? 2u : 1u);
      const simt::Counters& count = device.report().counters;
      EXPECT_EQ(count.global_read_bytes, parts * g.a.bits.size() * (c.xsa ? 4 : 2) + blocks * layout.elements() * 2);
      EXPECT_EQ(count.global_written_bytes, want.size() * 2);
      EXPECT_EQ(count.mma, c.tokens * slices * (layout.columns / 16) * terms * (layout.rows / 16) * 8);
      EXPECT_EQ(count.matrix_bank_conflicts, 0u);
    });
  }
}

// Every pair of: tokens, heads, pseudo heads, head size, parts of R, XSA, what is not finite in a or v (with XSA NaN
// only, as above); 0 times a NaN is NaN in all heads of its token.
TEST(IhaCollapseGpu, GlobalGridOfShapes) {
  const GridCost cost = [](const std::vector<size_t>& row) {
    const CollapseGpuLayout r = CollapseGpuLayoutFor(kHeads[row[1]], kPseudo[row[2]], row[4] == 0 ? 1 : 2);
    return static_cast<double>(kTokens[row[0]] * r.elements() * (64u << row[3]));
  };
  const auto prepare = [](const std::vector<size_t>& row, uint32_t number) -> GridCheck {
    const Case c{kTokens[row[0]], kHeads[row[1]], kPseudo[row[2]], 64u << row[3], row[5] == 1};
    Global g = MakeGlobal(c, row[4] == 0 ? 1 : 2);
    PutNotFinite(c.xsa && number % 2 == 1 ? g.v : g.a, number * 7919, c.xsa ? std::min<size_t>(row[6], 1) : row[6]);
    return [g, want = Reference(g)](simt::Device& device) {
      SCOPED_TRACE(Name(g.c));
      ExpectWithinBound(g, Collapsed(device, g), want);
    };
  };
  OverGrid(grid_share::kCollapseGlobal, {4, 7, 6, 3, 2, 2, 3}, prepare, cost);
}

// A row of a or v that is NaN makes its token NaN in all heads (0 times NaN), and no other token.
TEST(IhaCollapseGpu, GlobalXsaKeepsTokensApart) {
  Global g = MakeGlobal({3, 4, 2, 64, true}, 2);
  simt::Device device;
  const std::vector<uint16_t> clean = Collapsed(device, g);
  g.v.bits[((1 * 2 + 1) * 4 + 2) * 64 + 5] = RoundToBF16(std::numeric_limits<float>::quiet_NaN());
  const std::vector<uint16_t> dirty = Collapsed(device, g);
  ExpectNanOnlyIn(dirty, clean, [](size_t i) { return i / 64 / 4 == 1; });
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
  ExpectNanOnlyIn(dirty, clean, [&](size_t i) { return i / c.d == 1 * c.heads + 2; });
}

TEST(IhaCollapseGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(IhaCollapseGpu({.tokens = 1, .heads = 1, .pseudo = 1, .d = 96}, &device), 1);
  EXPECT_EQ(IhaCollapseGpu({.tokens = 1, .heads = 0, .pseudo = 1, .d = 64}, &device), 1);
  EXPECT_EQ(IhaCollapseGlobalGpu({.tokens = 1, .heads = 65, .pseudo = 1, .d = 64}, &device), 1);
  EXPECT_EQ(IhaCollapseGlobalGpu({.tokens = 1, .heads = 64, .pseudo = 120, .d = 64}, &device), 1);
  const uint16_t v[1] = {};
  EXPECT_EQ(IhaCollapseGlobalGpu({.tokens = 1, .heads = 4, .pseudo = 1, .d = 192, .v = v}, &device), 1);
}

}  // namespace
}  // namespace iha::kernels
