#include "kernels/epilogue/epilogue_gpu.h"

#include <limits>

#include "kernels/diff/diff.h"
#include "kernels/gate/gate.h"
#include "kernels/xsa/xsa.h"
#include "tests/kernels/gpu/grid.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t tokens, heads, d;
  EpilogueCombine combine;
  uint32_t value_heads;  // 0: no XSA
  int gate;              // 0: none, 1: a head, 2: an element
};

struct Inputs {
  Rounded a, v, gate;
  std::vector<float> logits, weight;
};
Inputs Make(const Case& c) {
  const size_t rows = size_t{c.tokens} * c.heads;
  return {RandomBF16(rows * 2 * c.d, 1, 2), RandomBF16(size_t{c.tokens} * (c.value_heads * c.d + 8), 2, 2),
          RandomBF16(rows * c.d, 3, 6), RandomFloats(rows, 4, 5), RandomFloats(c.d, 5, 2)};
}

constexpr float kLambda = 0.37f, kEps = 1e-5f, kScale = 0.8f;

std::vector<uint16_t> Finished(simt::Device& device, const Case& c, const Inputs& in) {
  const bool pairs = c.combine != EpilogueCombine::kNone;
  const size_t rows = size_t{c.tokens} * c.heads;
  const std::vector<uint16_t> a(in.a.bits.begin(),
                                in.a.bits.begin() + static_cast<ptrdiff_t>(rows * (pairs ? 2 : 1) * c.d));
  const std::vector<uint16_t> g(in.gate.bits.begin(),
                                in.gate.bits.begin() + static_cast<ptrdiff_t>(c.gate == 1 ? rows : rows * c.d));
  simt::Buffer<uint16_t> da(device, a, "a"), dv(device, in.v.bits, "v"), dg(device, g, "gate"),
      out(device, rows * c.d, "out");
  simt::Buffer<float> logits(device, in.logits, "logits"), weight(device, in.weight, "weight");
  EXPECT_EQ(AttentionEpilogueGpu({.a = da.data(),
                                  .out = out.data(),
                                  .tokens = c.tokens,
                                  .heads = c.heads,
                                  .d = c.d,
                                  .combine = c.combine,
                                  .logits = logits.data(),
                                  .weight = weight.data(),
                                  .lambda = kLambda,
                                  .eps = kEps,
                                  .scale = kScale,
                                  .v = c.value_heads == 0 ? nullptr : dv.data(),
                                  .v_stride = c.value_heads * c.d + 8,
                                  .v_group = c.value_heads == 0 ? 1 : c.heads / c.value_heads,
                                  .gate = c.gate == 0 ? nullptr : dg.data(),
                                  .gate_elementwise = c.gate == 2},
                                 &device),
            0)
      << device.report().message;
  return out.ToHost();
}

// The references of the CPU operations, one after another. Their inputs are fp32: each stage's result is rounded to it.
std::vector<double> Reference(const Case& c, const Inputs& in) {
  const size_t rows = size_t{c.tokens} * c.heads, n = rows * c.d;
  const DiffShape diff{c.tokens, c.heads, c.d};
  std::vector<double> x(n);
  if (c.combine == EpilogueCombine::kNone)
    std::copy(in.a.values.begin(), in.a.values.begin() + static_cast<ptrdiff_t>(n), x.begin());
  if (c.combine == EpilogueCombine::kDiffGated) DiffGatedRef(diff, in.a.values.data(), in.logits.data(), x.data());
  if (c.combine == EpilogueCombine::kDiffNormed) {
    DiffNormedRef(diff, {kLambda, in.weight.data(), kEps, kScale}, in.a.values.data(), x.data());
  }
  if (c.value_heads != 0) {
    const std::vector<float> y(x.begin(), x.end());
    XsaRef({c.tokens, c.heads, c.heads / c.value_heads, c.d, size_t{c.heads} * c.d, size_t{c.value_heads} * c.d + 8},
           y.data(), in.v.values.data(), x.data());
  }
  if (c.gate != 0) {
    const std::vector<float> y(x.begin(), x.end());
    GateRef({c.tokens, c.heads, c.d, c.gate == 2}, y.data(), in.gate.values.data(), x.data());
  }
  return x;
}

using C = EpilogueCombine;
void ExpectWithinBound(simt::Device& device, const Case& c, const Inputs& in, const std::vector<double>& want) {
  // Rows have elements below 2 (1 + lambda) < 4, after the norm below sqrt(d) 2 0.8 < 26 at most. XSA: a dot of
  // d products relative to |x| |u|, with 8 + 8 roundings; |x| < 4 sqrt(d), after the norm 1.6 sqrt(d): 64 * 40
  // 2^-24. Combination, norm, sigmoid: 2^-18 of elements below 4 and relative to the result.
  ExpectClose(WidenAll(Finished(device, c, in)), want, kBF16 + 0x1p-17,
              [&](size_t) { return 4 * 0x1p-18 + (c.value_heads != 0 ? 64 * 40 * 0x1p-24 : 0.0); });
  const uint64_t rows = uint64_t{c.tokens} * c.heads, bytes = rows * c.d * 2, lanes = rows * c.d / 8;
  // Lanes of whole blocks of heads load the weight, also those past the last head.
  const uint64_t at_once = 1024 / c.d, blocks = (c.heads + at_once - 1) / at_once;
  EXPECT_EQ(device.report().counters.global_read_bytes,
            bytes * (c.combine == C::kNone ? 1 : 2) + (c.combine == C::kDiffGated ? lanes * 4 : 0) +
                (c.combine == C::kDiffNormed ? c.tokens * blocks * 128 * 32 : 0) + (c.value_heads != 0 ? bytes : 0) +
                (c.gate == 2   ? bytes
                 : c.gate == 1 ? lanes * 2
                               : 0));
  EXPECT_EQ(device.report().counters.global_written_bytes, bytes);
}
std::string Name(const Case& c) {
  return "T" + std::to_string(c.tokens) + " H" + std::to_string(c.heads) + " d" + std::to_string(c.d) + " combine " +
         std::to_string(static_cast<int>(c.combine)) + " values " + std::to_string(c.value_heads) + " gate " +
         std::to_string(c.gate);
}

TEST(EpilogueGpu, WithinTheBoundOfTheReference) {
  for (const Case& c :
       {Case{1, 1, 64, C::kNone, 1, 0}, Case{3, 9, 64, C::kNone, 3, 2}, Case{2, 20, 128, C::kNone, 0, 1},
        Case{3, 4, 128, C::kDiffGated, 0, 0}, Case{2, 9, 64, C::kDiffGated, 3, 1},
        Case{2, 4, 256, C::kDiffNormed, 4, 0}, Case{3, 10, 128, C::kDiffNormed, 0, 2}}) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    const std::vector<double> want = Reference(c, in);
    ForEachSchedule([&](simt::Device& device) { ExpectWithinBound(device, c, in, want); });
  }
}

// Every pair of: tokens, heads, head size, combination, value heads (none, one, a third or all), gate, a NaN in a, v or
// the gate.
TEST(EpilogueGpu, GridOfShapes) {
  const std::array<uint32_t, 4> tokens{1, 2, 5, 17};
  const std::array<uint32_t, 6> heads{1, 3, 4, 9, 20, 40};
  OverGrid(grid_share::kNone, {4, 6, 3, 3, 4, 3, 4}, [&](const std::vector<size_t>& row, uint32_t number) {
    const uint32_t h = heads[row[1]], third = h % 3 == 0 ? h / 3 : h;
    const std::array<uint32_t, 4> values{0, 1, third, h};
    const Case c{tokens[row[0]], h, 64u << row[2], static_cast<C>(row[3]), values[row[4]], static_cast<int>(row[5])};
    Inputs in = Make(c);
    if (row[6] == 1) PutNotFinite(in.a, number * 7919 % (size_t{c.tokens} * h * c.d), 1);
    if (row[6] == 2) PutNotFinite(in.v, number * 7919, 1);
    if (row[6] == 3) PutNotFinite(in.gate, number * 7919 % (size_t{c.tokens} * h * (c.gate == 2 ? c.d : 1)), 1);
    return [c, in, want = Reference(c, in)](simt::Device& device) {
      SCOPED_TRACE(Name(c));
      ExpectWithinBound(device, c, in, want);
    };
  });
}

TEST(EpilogueGpu, NanStaysInItsRow) {
  const Case c{2, 3, 64, EpilogueCombine::kDiffNormed, 1, 2};
  Inputs in = Make(c);
  simt::Device device;
  const std::vector<uint16_t> clean = Finished(device, c, in);
  in.a.bits[(1 * 3 + 2) * 2 * 64 + 64 + 7] = RoundToBF16(std::numeric_limits<float>::quiet_NaN());  // token 1, head 2
  const std::vector<uint16_t> dirty = Finished(device, c, in);
  ExpectNanOnlyIn(dirty, clean, [](size_t i) { return i / 64 == 5; });
}

TEST(EpilogueGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(AttentionEpilogueGpu({.tokens = 1, .heads = 1, .d = 96}, &device), 1);
  EXPECT_EQ(AttentionEpilogueGpu({.tokens = 1, .heads = 1, .d = 64, .v_group = 0}, &device), 1);
}

// Logits and gates with columns that belong to no head, as products of a multiple of 8 columns leave them.
TEST(EpilogueGpu, LogitsAndGatesMayHaveColumnsBetween) {
  const uint32_t tokens = 3, heads = 3, d = 64, stride = 8;
  for (const bool elementwise : {false, true}) {
    const uint32_t gates = elementwise ? heads * d : heads, gate_stride = elementwise ? gates + 8 : stride;
    const Case c{tokens, heads, d, EpilogueCombine::kDiffGated, 0, elementwise ? 2 : 1};
    const Inputs in = Make(c);
    simt::Device device;
    const std::vector<uint16_t> want = Finished(device, c, in);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> logits(tokens * stride, nan);
    std::vector<uint16_t> gate(size_t{tokens} * gate_stride, RoundToBF16(nan));
    for (uint32_t t = 0; t < tokens; ++t) {
      std::copy_n(in.logits.begin() + t * heads, heads, logits.begin() + t * stride);
      std::copy_n(in.gate.bits.begin() + t * gates, gates, gate.begin() + t * gate_stride);
    }
    simt::Buffer<uint16_t> a(device, in.a.bits, "a"), g(device, gate, "gate"), out(device, want.size(), "out");
    simt::Buffer<float> l(device, logits, "logits");
    ASSERT_EQ(AttentionEpilogueGpu({.a = a.data(),
                                    .out = out.data(),
                                    .tokens = tokens,
                                    .heads = heads,
                                    .d = d,
                                    .combine = EpilogueCombine::kDiffGated,
                                    .logits = l.data(),
                                    .logits_stride = stride,
                                    .gate = g.data(),
                                    .gate_elementwise = elementwise,
                                    .gate_stride = gate_stride},
                                   &device),
              0)
        << device.report().message;
    EXPECT_EQ(out.ToHost(), want);
  }
}

// The mean of the sub-norm over the 40 values that are not padding.
TEST(EpilogueGpu, ThePaddingOfARowDoesNotCount) {
  const uint32_t d = 64, n = 40;
  const Rounded a = RandomBF16(2 * n, 7, 2);
  const std::vector<float> weight = RandomFloats(n, 8, 2);
  std::vector<double> want(n);
  DiffNormedRef({1, 1, n}, {kLambda, weight.data(), kEps, kScale}, a.values.data(), want.data());
  want.resize(d);
  std::vector<uint16_t> padded(2 * d);
  std::copy_n(a.bits.begin(), n, padded.begin());
  std::copy_n(a.bits.begin() + n, n, padded.begin() + d);
  std::vector<float> padded_weight = weight;
  padded_weight.resize(d);
  simt::Device device;
  simt::Buffer<uint16_t> da(device, padded, "a"), out(device, d, "out");
  simt::Buffer<float> dw(device, padded_weight, "weight");
  ASSERT_EQ(AttentionEpilogueGpu({.a = da.data(),
                                  .out = out.data(),
                                  .tokens = 1,
                                  .heads = 1,
                                  .d = d,
                                  .combine = EpilogueCombine::kDiffNormed,
                                  .weight = dw.data(),
                                  .lambda = kLambda,
                                  .eps = kEps,
                                  .mean_of = n,
                                  .scale = kScale},
                                 &device),
            0)
      << device.report().message;
  // A difference that cancels is off by 2^-24 of its terms (at most 2 each); all else is relative.
  ExpectClose(WidenAll(out.ToHost()), want, kBF16 + 0x1p-17, [](size_t) { return 8 * 0x1p-24; });
}

}  // namespace
}  // namespace iha::kernels
