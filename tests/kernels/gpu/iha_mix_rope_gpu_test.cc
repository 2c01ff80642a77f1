#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"

#include <cmath>

#include "kernels/iha_mix_rope/iha_mix_rope.h"
#include "kernels/rope/rope.h"
#include "tests/kernels/gpu/grid.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t tokens, heads, pseudo, d;
  bool exact_alpha;  // bf16 holds alpha
  RopePairing pairing = RopePairing::kHalf;
};
// Columns of the i-th pair.
std::array<size_t, 2> PairOf(RopePairing pairing, size_t d, size_t i) {
  if (pairing == RopePairing::kHalf) return {i, i + d / 2};
  return {2 * i, 2 * i + 1};
}
size_t AngleOf(RopePairing pairing, size_t d, size_t column) {
  return pairing == RopePairing::kHalf ? column % (d / 2) : column / 2;
}

// A case's inputs, on the host.
struct Inputs {
  IhaMixGpuShape shape;
  Rounded x[3];
  uint32_t stride = 0;
  std::vector<float> alpha[3];  // [h][j][m]
  uint32_t terms = 0;
  std::vector<uint32_t> positions;  // of the first pseudo token
  std::vector<double> frequency;
  std::vector<float> cos, sin;  // rows 0 ..
  Rounded norm[2];              // of queries and keys; empty: none
  uint32_t mean_of = 0;
  RopePairing pairing = RopePairing::kHalf;
};
constexpr float kEps = 1e-3f;

Inputs Make(const Case& c) {
  Inputs in;
  in.shape = {c.tokens, c.heads, c.pseudo, c.d};
  in.pairing = c.pairing;
  in.stride = c.heads * c.d + 16;
  const size_t n = size_t{c.heads} * c.heads * c.pseudo;
  for (uint32_t part = 0; part < 3; ++part) {
    in.x[part] = RandomBF16(size_t{c.tokens} * in.stride, 10 + part, 2);
    in.alpha[part] = RandomFloats(n, 20 + part);
    if (c.exact_alpha) in.alpha[part] = RoundAll(in.alpha[part]).values;
  }
  in.terms = MixGpuTerms(in.alpha[0].data(), n);
  EXPECT_EQ(in.terms, c.exact_alpha ? 1u : 2u);
  in.frequency.resize(c.d / 2);
  RopeFrequencies(10000, c.d, in.frequency.data());
  const size_t rows = size_t{c.tokens + 5} * c.pseudo;
  in.cos.resize(rows * c.d / 2);
  in.sin.resize(rows * c.d / 2);
  FillRopeTable(in.frequency.data(), c.d / 2, 0, rows, 1.0, in.cos.data(), in.sin.data());
  for (uint32_t t = 0; t < c.tokens; ++t) in.positions.push_back((c.tokens + 3 - t) * c.pseudo);
  return in;
}

struct Outputs {
  std::vector<uint16_t> y[3];  // [(t P + j) H + h][d]
};

Outputs Mixed(simt::Device& device, const Inputs& in) {
  const IhaMixGpuShape& s = in.shape;
  const size_t n = size_t{s.tokens} * s.pseudo * s.heads * s.d;
  std::vector<std::unique_ptr<simt::Buffer<uint16_t>>> x, alpha, y, norm;
  simt::Buffer<uint32_t> rows(device, in.positions, "first_row");
  simt::Buffer<float> cos(device, in.cos, "cos"), sin(device, in.sin, "sin");
  IhaMixGpuArgs args{.shape = s,
                     .terms = in.terms,
                     .count = 3,
                     .parts = {},
                     .first_row = rows.data(),
                     .cos = cos.data(),
                     .sin = sin.data(),
                     .shift_cos = cos.data(),
                     .shift_sin = sin.data(),
                     .norm_eps = kEps,
                     .norm_mean_of = in.mean_of,
                     .pairing = in.pairing};
  for (uint32_t part = 0; part < 3; ++part) {
    std::vector<uint16_t> packed(MixGpuAlphaLayoutFor(s, in.terms).elements());
    MixGpuPackAlpha(s, in.terms, in.alpha[part].data(), packed.data());
    x.push_back(std::make_unique<simt::Buffer<uint16_t>>(device, in.x[part].bits, "x"));
    alpha.push_back(std::make_unique<simt::Buffer<uint16_t>>(device, packed, "alpha"));
    y.push_back(std::make_unique<simt::Buffer<uint16_t>>(device, n, "y"));
    args.parts[part] = {x[part]->data(), in.stride, part < 2 ? 1u : 0u, alpha[part]->data(), y[part]->data()};
    if (part == 2 || in.norm[part].bits.empty()) continue;
    norm.push_back(std::make_unique<simt::Buffer<uint16_t>>(device, in.norm[part].bits, "norm"));
    args.parts[part].norm = norm.back()->data();
  }
  EXPECT_EQ(IhaMixRopeGpu(args, &device), 0) << device.report().message;
  return {{y[0]->ToHost(), y[1]->ToHost(), y[2]->ToHost()}};
}

double Round(double x) { return WidenBF16(RoundToBF16(static_cast<float>(x))); }

// The rule of the header, written plainly in double with its three roundings. y as the kernel lays it out.
std::vector<double> Rule(const Inputs& in, uint32_t part) {
  const IhaMixGpuShape& s = in.shape;
  const uint32_t half = s.d / 2;
  std::vector<double> y(size_t{s.tokens} * s.pseudo * s.heads * s.d);
  const auto turn = [&](double* x, size_t row) {
    for (size_t i = 0; i < half; ++i) {
      const auto [u, v] = PairOf(in.pairing, s.d, i);
      const double c = in.cos[row * half + i], sn = in.sin[row * half + i], was = x[u];
      x[u] = Round(x[u] * c - x[v] * sn);
      x[v] = Round(x[v] * c + was * sn);
    }
  };
  std::vector<double> k(size_t{s.heads} * s.d);
  for (uint32_t t = 0; t < s.tokens; ++t) {
    for (uint32_t m = 0; m < s.heads; ++m) {
      for (uint32_t i = 0; i < s.d; ++i) k[m * s.d + i] = in.x[part].values[size_t{t} * in.stride + m * s.d + i];
      if (part < 2) turn(&k[m * s.d], in.positions[t]);
    }
    for (uint32_t h = 0; h < s.heads; ++h) {
      for (uint32_t j = 0; j < s.pseudo; ++j) {
        double* out = &y[((size_t{t} * s.pseudo + j) * s.heads + h) * s.d];
        for (uint32_t i = 0; i < s.d; ++i) {
          double sum = 0;
          for (uint32_t m = 0; m < s.heads; ++m) {
            sum += double{in.alpha[part][(h * s.pseudo + j) * s.heads + m]} * k[m * s.d + i];
          }
          out[i] = Round(sum);
        }
        if (part < 2 && j > 0) turn(out, j);
      }
    }
  }
  return y;
}

constexpr Case kCases[] = {
    {1, 1, 1, 64, true},   {3, 4, 2, 64, true},    {5, 4, 3, 128, false},
    {33, 2, 4, 64, false}, {2, 20, 2, 128, false}, {1, 20, 20, 64, true},
    {2, 9, 8, 128, true},  {2, 40, 2, 64, false},  {3, 4, 2, 128, false, RopePairing::kInterleaved},
    {1, 64, 12, 64, false}};  // the last: alpha in two parts

std::string Name(const Case& c) {
  return "T" + std::to_string(c.tokens) + " H" + std::to_string(c.heads) + " P" + std::to_string(c.pseudo) + " d" +
         std::to_string(c.d) + (c.pairing == RopePairing::kHalf ? "" : " interleaved");
}

using Wanted = std::array<std::vector<double>, 3>;
Wanted RuleOf(const Inputs& in) { return {Rule(in, 0), Rule(in, 1), Rule(in, 2)}; }

void ExpectRule(simt::Device& device, const Inputs& in, const Wanted& want) {
  const Outputs got = Mixed(device, in);
  for (uint32_t part = 0; part < 3; ++part) {
    // Sums in fp32 differ from sums in double by less than 2^-17 of the terms' magnitudes, so a rounding to bf16 (2^-8)
    // falls on the other side of a tie with probability 2^-9 or so, and then differs by one step; two elements meet in
    // a rotation. More than 2 % of differing elements, or a difference beyond two steps of the largest magnitude that
    // can occur, 4 heads 2, is another rule.
    size_t different = 0;
    for (size_t i = 0; i < want[part].size(); ++i) {
      const double value = WidenBF16(got.y[part][i]);
      if (!std::isfinite(want[part][i])) {
        ASSERT_TRUE(std::isnan(want[part][i]) ? std::isnan(value) : value == want[part][i])
            << value << " for " << want[part][i] << ", part " << part << " at " << i;
        continue;
      }
      different += value != want[part][i] ? 1 : 0;
      ASSERT_LE(std::fabs(value - want[part][i]), 2 * 0x1p-7 * 4 * in.shape.heads) << "part " << part << " at " << i;
    }
    EXPECT_LE(different, want[part].size() / 50) << "part " << part;
  }
}

TEST(IhaMixRopeGpu, FollowsTheRule) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    const Wanted want = RuleOf(in);
    ForEachSchedule([&](simt::Device& device) { ExpectRule(device, in, want); });
  }
}

constexpr std::array<uint32_t, 5> kTokens{1, 2, 5, 32, 33}, kHeads{1, 4, 9, 16, 20};
constexpr std::array<uint32_t, 6> kPseudo{1, 2, 3, 4, 8, 20};
constexpr std::array<uint32_t, 3> kManyHeads{33, 40, 64}, kFewPseudo{1, 2, 3};

// Not finite in one of q, k, v: NaN, or an infinity.
void PutSpecial(Inputs& in, size_t kind, uint32_t number) {
  const size_t heads = size_t{in.shape.heads} * in.shape.d, token = number % in.shape.tokens;
  PutNotFinite(in.x[number % 3], token * in.stride + number * 7919 % heads, kind);
}
Case CaseOf(const std::vector<size_t>& row, bool many) {
  return {kTokens[row[0]],
          (many ? kManyHeads[row[1]] : kHeads[row[1]]),
          (many ? kFewPseudo[row[2]] : kPseudo[row[2]]),
          64u << row[3],
          row[4] == 0,
          row[5] == 0 ? RopePairing::kHalf : RopePairing::kInterleaved};
}

GridCost CostOf(bool many) {
  return [many](const std::vector<size_t>& row) {
    const Case c = CaseOf(row, many);
    const MixGpuAlphaLayout a = MixGpuAlphaLayoutFor({c.tokens, c.heads, c.pseudo, c.d}, c.exact_alpha ? 1 : 2);
    return static_cast<double>(c.tokens * a.elements() * c.d);
  };
}

// Every pair of: tokens, heads, pseudo heads, head size, parts of alpha, pairing, what is not finite.
TEST(IhaMixRopeGpu, GridOfShapes) {
  for (const bool many : {false, true}) {
    const auto prepare = [many](const std::vector<size_t>& row, uint32_t number) -> GridCheck {
      Inputs in = Make(CaseOf(row, many));
      PutSpecial(in, row[6], number);
      return [in, want = RuleOf(in), name = Name(CaseOf(row, many))](simt::Device& device) {
        SCOPED_TRACE(name);
        ExpectRule(device, in, want);
      };
    };
    OverGrid(grid_share::kMix, {many ? 3u : 5u, many ? 3u : 5u, many ? 3u : 6u, 2, 2, 2, 3}, prepare, CostOf(many));
  }
}

TEST(IhaMixRopeGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    simt::Device device;
    const Outputs got = Mixed(device, in);
    const IhaMixGpuShape& s = in.shape;
    for (uint32_t part = 0; part < 3; ++part) {
      std::vector<float> x(size_t{s.tokens} * s.heads * s.d);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = in.x[part].values[i / (s.heads * s.d) * in.stride + i % (s.heads * s.d)];
      const IhaMixRefArgs ref{.layout = IhaAlphaLayout::kTargetPseudoSource,
                              .alpha = in.alpha[part].data(),
                              .x = x.data(),
                              .frequency = part < 2 ? in.frequency.data() : nullptr,
                              .first_position = in.positions.data(),
                              .step = 1,
                              .pairing = in.pairing};
      std::vector<double> dense(size_t{s.tokens} * s.heads * s.pseudo * s.d), want(dense.size()), bound(dense.size());
      IhaMixRef({s.heads, s.pseudo, s.d}, ref, s.tokens, dense.data());
      for (size_t i = 0; i < dense.size(); ++i) {
        const size_t e = i % s.d, j = i / s.d % s.pseudo, h = i / s.d / s.pseudo % s.heads,
                     t = i / s.d / s.pseudo / s.heads;
        // S = sum |alpha| |x pair|. Rounding of k_m: 2^-8 S; fp32 and alpha's second part: 2^-16 S; of the mix: 2^-8 of
        // at most S; a rotation joins the errors of two elements. The result's own rounding is relative.
        double magnitude = 0;
        for (size_t m = 0; m < s.heads; ++m) {
          const size_t at = (t * s.heads + m) * s.d;
          const auto pair = PairOf(in.pairing, s.d, AngleOf(in.pairing, s.d, e));
          const double u = x[at + pair[0]], v = x[at + pair[1]];
          magnitude += std::fabs(in.alpha[part][(h * s.pseudo + j) * s.heads + m]) *
                       (part < 2 ? std::hypot(u, v) : std::fabs(x[at + e]));
        }
        const size_t to = ((t * s.pseudo + j) * s.heads + h) * s.d + e;
        want[to] = dense[i];
        bound[to] = part < 2 ? 2 * (2 * 0x1p-8 + 0x1p-15) * magnitude : 0x1p-16 * magnitude;
      }
      ExpectClose(WidenAll(got.y[part]), want, kBF16, [&](size_t i) { return bound[i]; });
    }
  }
}

// Bytes and mma of the design: an element of x is read once and of y written once; constants once a block. Where alpha
// comes in parts, x and the angles are read once a part.
TEST(IhaMixRopeGpu, BytesAndMatrixOperations) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    simt::Device device;
    Mixed(device, in);
    const uint64_t t = c.tokens, hd = uint64_t{c.heads} * c.d, slices = c.d / 64, blocks = (t + 31) / 32 * slices;
    const MixGpuAlphaLayout a = MixGpuAlphaLayoutFor(in.shape, in.terms);
    const uint32_t block_rows = MixGpuRowsFor(in.shape, in.terms, false);
    const uint64_t parts = (a.rows + block_rows - 1) / block_rows;
    EXPECT_EQ(parts, c.pseudo == 12 ? 2u : 1u);
    const uint64_t constants = 3 * a.elements() * 2 + parts * 2 * uint64_t{c.pseudo} * 32 * 8;
    const uint64_t angles = 2 * t * slices * 32 * (4 + 2 * 32);  // a row number, 8 cosines and 8 sines a lane
    const simt::Counters& n = device.report().counters;
    EXPECT_EQ(n.global_read_bytes, parts * (3 * t * hd * 2 + angles) + blocks * constants);
    EXPECT_EQ(n.global_written_bytes, 3 * t * hd * 2 * c.pseudo);
    EXPECT_EQ(n.mma, 3 * t * slices * (a.rows / 16) * (a.columns / 16) * in.terms * 8);
    EXPECT_EQ(n.matrix_bank_conflicts, 0u);
  }
}

// Post-mix norms: against the reference in double.
Inputs MakeNormed(const Case& c) {
  Inputs in = Make(c);
  for (uint32_t part = 0; part < 2; ++part) in.norm[part] = RandomBF16(c.d, 30 + part, 2);
  return in;
}
void ExpectNormed(simt::Device& device, const Inputs& in) {
  const IhaMixGpuShape& s = in.shape;
  const Outputs got = Mixed(device, in);
  for (uint32_t part = 0; part < 3; ++part) {
    std::vector<float> x(size_t{s.tokens} * s.heads * s.d);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = in.x[part].values[i / (s.heads * s.d) * in.stride + i % (s.heads * s.d)];
    }
    IhaMixRefArgs ref{.layout = IhaAlphaLayout::kTargetPseudoSource, .alpha = in.alpha[part].data(), .x = x.data()};
    std::vector<double> mixed(size_t{s.tokens} * s.heads * s.pseudo * s.d), dense(mixed.size());
    IhaMixRef({s.heads, s.pseudo, s.d}, ref, s.tokens, mixed.data());
    if (part < 2) {
      ref.norm = in.norm[part].values.data();
      ref.norm_eps = kEps;
      ref.frequency = in.frequency.data();
      ref.first_position = in.positions.data();
      ref.step = 1;
      ref.pairing = in.pairing;
    }
    IhaMixRef({s.heads, s.pseudo, s.d}, ref, s.tokens, dense.data());
    std::vector<double> want(dense.size()), bound(dense.size());
    for (size_t i = 0; i < dense.size(); ++i) {
      const size_t e = i % s.d, row = i / s.d, j = row % s.pseudo, h = row / s.pseudo % s.heads,
                   t = row / s.pseudo / s.heads;
      // A mix is off by 2^-16 of S = sum |alpha| |x| (|x| <= 2). With a norm that is divided by r = rms of the mix, and
      // r, too, is off by as much of S; the norm's own chain and root, the product, the tables and two rotations add
      // 2^-19 of the largest |y| / r <= sqrt(d); weights are at most 2, a rotation joins two elements.
      double sum = 0, square = 0;
      for (size_t m = 0; m < s.heads; ++m) sum += 2 * std::fabs(in.alpha[part][(h * s.pseudo + j) * s.heads + m]);
      for (size_t k = 0; k < s.d; ++k) square += mixed[row * s.d + k] * mixed[row * s.d + k];
      const double r = std::sqrt(square / s.d + kEps), largest = std::sqrt(static_cast<double>(s.d));
      const size_t to = ((t * s.pseudo + j) * s.heads + h) * s.d + e;
      want[to] = dense[i];
      bound[to] = part < 2 ? 2 * 2 * (0x1p-16 * sum / r * (1 + largest) + 0x1p-19 * largest) : 0x1p-16 * sum;
    }
    ExpectClose(WidenAll(got.y[part]), want, kBF16, [&](size_t i) { return bound[i]; });
  }
}

TEST(IhaMixRopeGpu, PostMixNormWithinTheBoundOfTheReference) {
  for (const Case& c : {Case{1, 1, 1, 64, true}, Case{5, 4, 3, 128, false}, Case{33, 2, 4, 64, false},
                        Case{2, 20, 2, 128, false}, Case{3, 9, 8, 256, true}, Case{1, 20, 20, 64, true},
                        Case{2, 40, 2, 128, false}, Case{5, 4, 3, 256, false, RopePairing::kInterleaved}}) {
    SCOPED_TRACE(Name(c));
    const Inputs in = MakeNormed(c);
    ForEachSchedule([&](simt::Device& device) { ExpectNormed(device, in); });
  }
}

TEST(IhaMixRopeGpu, PostMixNormGridOfShapes) {
  for (const bool many : {false, true}) {
    const auto prepare = [many](const std::vector<size_t>& row, uint32_t number) -> GridCheck {
      Inputs in = MakeNormed(CaseOf(row, many));
      PutSpecial(in, row[6], number);
      return [in, name = Name(CaseOf(row, many))](simt::Device& device) {
        SCOPED_TRACE(name);
        ExpectNormed(device, in);
      };
    };
    OverGrid(grid_share::kMixNorm, {many ? 3u : 5u, many ? 3u : 5u, many ? 3u : 6u, 3, 2, 2, 3}, prepare, CostOf(many));
  }
}

// Heads of 40 in rows of 64: each half of 20 begins a half of 32, the rest is zeros. The norm is over the 40, and the
// padding stays 0.
TEST(IhaMixRopeGpu, PostMixNormOfPaddedHeads) {
  const uint32_t d = 40;
  Inputs in = MakeNormed({3, 4, 2, 64, true});
  const IhaMixGpuShape& s = in.shape;
  in.mean_of = d;
  const auto padding = [](size_t e) { return e % 32 >= d / 2; };
  std::vector<double> frequency(d / 2);
  RopeFrequencies(10000, d, frequency.data());
  for (size_t i = 0; i < in.cos.size(); ++i) {
    // Tables of d / 2 angles a row, spread over rows of 32.
    if (i % 32 >= d / 2) {
      in.cos[i] = 1;
      in.sin[i] = 0;
    } else {
      FillRopeTable(&frequency[i % 32], 1, i / 32, 1, 1.0, &in.cos[i], &in.sin[i]);
    }
  }
  const auto dense = [&](const std::vector<float>& row, size_t from, std::vector<float>& to) {
    for (size_t e = 0; e < 64; ++e) {
      if (!padding(e)) to.push_back(row[from + e]);
    }
  };
  std::vector<float> x, weight;
  for (uint32_t t = 0; t < s.tokens; ++t) {
    for (uint32_t h = 0; h < s.heads; ++h) {
      const size_t at = size_t{t} * in.stride + h * 64;
      for (size_t e = 0; e < 64; ++e) {
        if (padding(e)) in.x[0].bits[at + e] = in.x[0].values[at + e] = 0;
      }
      dense(in.x[0].values, at, x);
    }
  }
  dense(in.norm[0].values, 0, weight);
  std::vector<double> want(size_t{s.tokens} * s.heads * s.pseudo * d);
  IhaMixRef({s.heads, s.pseudo, d},
            {.layout = IhaAlphaLayout::kTargetPseudoSource,
             .alpha = in.alpha[0].data(),
             .x = x.data(),
             .norm = weight.data(),
             .norm_eps = kEps,
             .frequency = frequency.data(),
             .first_position = in.positions.data(),
             .step = 1},
            s.tokens, want.data());
  simt::Device device;
  const std::vector<float> got = WidenAll(Mixed(device, in).y[0]);
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t e = i % 64, h = i / 64 % s.heads, j = i / 64 / s.heads % s.pseudo, t = i / 64 / s.heads / s.pseudo;
    if (padding(e)) {
      ASSERT_EQ(got[i], 0.0f) << i;
      continue;
    }
    const double value = want[((t * s.heads + h) * s.pseudo + j) * d + e % 32 + e / 32 * (d / 2)];
    // As above: sums of 4 heads, |alpha| <= 1, |x| <= 2; r is about 1, above 1/4; |y| / r <= sqrt(40) < 7.
    ASSERT_NEAR(got[i], value, kBF16 * std::fabs(value) + 4 * (0x1p-16 * 8 * 4 * 8 + 0x1p-19 * 7)) << i;
  }
}

// As without a norm, but a block has all columns: alpha and shifts of all columns once for 32 tokens, and 16 weights a
// lane. mma as without.
TEST(IhaMixRopeGpu, PostMixNormBytesAndMatrixOperations) {
  for (const Case& c : {Case{3, 4, 2, 64, true}, Case{35, 2, 3, 128, false}, Case{2, 20, 4, 256, true}}) {
    SCOPED_TRACE(Name(c));
    const Inputs in = MakeNormed(c);
    simt::Device device;
    Mixed(device, in);
    const uint64_t t = c.tokens, hd = uint64_t{c.heads} * c.d, slices = c.d / 64, blocks = (t + 31) / 32;
    const MixGpuAlphaLayout a = MixGpuAlphaLayoutFor(in.shape, in.terms);
    const uint64_t constants =
        3 * a.elements() * 2 + 2 * (uint64_t{c.pseudo} * slices * 32 * 8 + kMixGpuWarps * 32 * 32);
    const uint64_t angles = 2 * t * slices * 32 * (4 + 2 * 32);
    const simt::Counters& n = device.report().counters;
    EXPECT_EQ(n.global_read_bytes, 3 * t * hd * 2 + blocks * constants + angles);
    EXPECT_EQ(n.global_written_bytes, 3 * t * hd * 2 * c.pseudo);
    EXPECT_EQ(n.mma, 3 * t * slices * (a.rows / 16) * (a.columns / 16) * in.terms * 8);
    EXPECT_EQ(n.matrix_bank_conflicts, 0u);
  }
}

TEST(IhaMixRopeGpu, TokensDoNotSeeTheBatch) {
  const Inputs all = Make({40, 4, 2, 64, false});
  simt::Device device;
  const Outputs whole = Mixed(device, all);
  for (const uint32_t first : {0u, 7u, 39u}) {
    Inputs one = all;
    one.shape.tokens = 1;
    one.positions = {all.positions[first]};
    for (Rounded& x : one.x) {
      x.bits.erase(x.bits.begin(), x.bits.begin() + first * all.stride);
      x.bits.resize(all.stride);
    }
    const Outputs alone = Mixed(device, one);
    for (uint32_t part = 0; part < 3; ++part) {
      const size_t n = alone.y[part].size();
      EXPECT_TRUE(std::equal(alone.y[part].begin(), alone.y[part].end(),
                             whole.y[part].begin() + static_cast<ptrdiff_t>(first * n)));
    }
  }
}

TEST(IhaMixRopeGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  IhaMixGpuArgs args{.shape = {1, 65, 2, 64}, .count = 1, .parts = {}};
  EXPECT_EQ(IhaMixRopeGpu(args, &device), 1);
  args.shape = {1, 4, 1000, 64};
  EXPECT_EQ(IhaMixRopeGpu(args, &device), 1);
  args.shape = {1, 4, 2, 96};
  EXPECT_EQ(IhaMixRopeGpu(args, &device), 1);
  args.shape = {1, 4, 2, 64};
  args.parts[0].token_stride = 4;
  EXPECT_EQ(IhaMixRopeGpu(args, &device), 1);
  // A norm without a rotation, a rotation without the norm that another part has, and columns that 4 warps do not
  // share.
  const uint16_t norm[1] = {};
  args.parts[0] = {.token_stride = 8, .rotate = 0, .norm = norm};
  EXPECT_EQ(IhaMixRopeGpu(args, &device), 1);
  args.parts[0].rotate = 1;
  args.count = 2;
  args.parts[1] = {.token_stride = 8, .rotate = 1};
  EXPECT_EQ(IhaMixRopeGpu(args, &device), 1);
  args.count = 1;
  args.shape = {1, 4, 2, 192};
  EXPECT_EQ(IhaMixRopeGpu(args, &device), 1);
}

}  // namespace
}  // namespace iha::kernels
