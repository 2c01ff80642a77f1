// The kernels of one IHA layer, one after another on one device: mix, append to pages, attend, collapse.
#include <cmath>
#include <numeric>

#include "kernels/attention/attention_gpu.h"
#include "kernels/attention/kv_pages_gpu.h"
#include "kernels/iha_collapse/iha_collapse_gpu.h"
#include "kernels/iha_mix_rope/iha_mix_rope_gpu.h"
#include "kernels/rope/rope.h"
#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

constexpr uint32_t kHeads = 3, kD = 64, kTokens = 45;

struct Layer {
  Rounded q, k, v;  // [token][head][d]
  std::vector<float> cos, sin;
};
Layer MakeLayer() {
  Layer layer{RandomBF16(kTokens * kHeads * kD, 1, 2), RandomBF16(kTokens * kHeads * kD, 2, 2),
              RandomBF16(kTokens * kHeads * kD, 3, 2), std::vector<float>(kTokens * kD / 2),
              std::vector<float>(kTokens * kD / 2)};
  std::vector<double> frequency(kD / 2);
  RopeFrequencies(10000, kD, frequency.data());
  FillRopeTable(frequency.data(), kD / 2, 0, kTokens, 1.0, layer.cos.data(), layer.sin.data());
  return layer;
}

// Outputs of a layer whose pseudo heads are copies of the heads (alpha = 1 for m = h) and whose collapse is their mean,
// in two chunks of tokens, so that the second reads the pages that the first has written.
std::vector<float> RunCopies(simt::Device& device, const Layer& layer, uint32_t pseudo) {
  const IhaMixGpuShape all{kTokens, kHeads, pseudo, kD};
  std::vector<float> alpha(kHeads * pseudo * kHeads, 0.0f);
  for (uint32_t r = 0; r < kHeads * pseudo; ++r) alpha[r * kHeads + r / pseudo] = 1.0f;
  std::vector<uint16_t> packed(MixGpuAlphaLayoutFor(all, 1).elements());
  MixGpuPackAlpha(all, 1, alpha.data(), packed.data());
  // All pseudo tokens of a token at its own position: no shift.
  const std::vector<float> ones(pseudo * kD / 2, 1.0f), zeros(pseudo * kD / 2, 0.0f);
  const uint32_t pages = (kTokens * pseudo + 63) / 64;
  std::vector<int32_t> table(pages);
  std::iota(table.rbegin(), table.rend(), 0);
  simt::Buffer<uint16_t> q(device, layer.q.bits, "q"), k(device, layer.k.bits, "k"), v(device, layer.v.bits, "v");
  simt::Buffer<uint16_t> da(device, packed, "alpha"), k_pages(device, size_t{pages} * kHeads * 64 * kD, "k_pages"),
      v_pages(device, size_t{pages} * kHeads * 64 * kD, "v_pages"), out(device, kTokens * kHeads * kD, "out");
  simt::Buffer<float> cos(device, layer.cos, "cos"), sin(device, layer.sin, "sin"), shift_cos(device, ones, "ones"),
      shift_sin(device, zeros, "zeros");
  simt::Buffer<int32_t> page_table(device, table, "page_table");
  simt::Buffer<float> mean(device, std::vector<float>(kHeads * pseudo, 1.0f / static_cast<float>(pseudo)), "collapse");
  for (const auto& [first, n] : {std::pair<uint32_t, uint32_t>{0, 31}, {31, kTokens - 31}}) {
    const uint32_t rows = n * pseudo;
    std::vector<uint32_t> token_rows(n), positions(rows);
    std::iota(token_rows.begin(), token_rows.end(), first);
    std::iota(positions.begin(), positions.end(), first * pseudo);
    simt::Buffer<uint32_t> first_row(device, token_rows), row_position(device, positions),
        row_sequence(device, std::vector<uint32_t>(rows, 0)), q_begin(device, std::vector<uint32_t>{0, rows}),
        kv_length(device, std::vector<uint32_t>{(first + n) * pseudo});
    simt::Buffer<uint16_t> mq(device, size_t{rows} * kHeads * kD, "mixed q"),
        mk(device, size_t{rows} * kHeads * kD, "mixed k"), mv(device, size_t{rows} * kHeads * kD, "mixed v"),
        attended(device, size_t{rows} * kHeads * kD, "attended");
    const size_t from = size_t{first} * kHeads * kD;
    const uint32_t stride = kHeads * kD;
    EXPECT_EQ(IhaMixRopeGpu({.shape = {n, kHeads, pseudo, kD},
                             .terms = 1,
                             .count = 3,
                             .parts = {{q.data() + from, stride, 1, da.data(), mq.data()},
                                       {k.data() + from, stride, 1, da.data(), mk.data()},
                                       {v.data() + from, stride, 0, da.data(), mv.data()}},
                             .first_row = first_row.data(),
                             .cos = cos.data(),
                             .sin = sin.data(),
                             .shift_cos = shift_cos.data(),
                             .shift_sin = shift_sin.data()},
                            &device),
              0)
        << device.report().message;
    EXPECT_EQ(KvAppendGpu({.pages = {k_pages.data(), v_pages.data(), kHeads, kD, kD},
                           .k = mk.data(),
                           .v = mv.data(),
                           .row_sequence = row_sequence.data(),
                           .positions = row_position.data(),
                           .page_table = page_table.data(),
                           .pages_per_sequence = pages,
                           .rows = rows},
                          &device),
              0)
        << device.report().message;
    EXPECT_EQ(device.report().counters.global_written_bytes, uint64_t{rows} * kHeads * kD * 4);
    EXPECT_EQ(AttentionGpu({.q = mq.data(),
                            .k_pages = k_pages.data(),
                            .v_pages = v_pages.data(),
                            .page_table = page_table.data(),
                            .q_begin = q_begin.data(),
                            .kv_length = kv_length.data(),
                            .out = attended.data(),
                            .lse = nullptr,
                            .sequences = 1,
                            .max_rows = rows,
                            .pages_per_sequence = pages,
                            .heads = kHeads,
                            .kv_heads = kHeads,
                            .d = kD,
                            .d_v = kD,
                            .scale = 0.125f,
                            .mask = {.pseudo = pseudo, .token_causal = true}},
                           &device),
              0)
        << device.report().message;
    EXPECT_EQ(IhaCollapseGpu({.a = attended.data(),
                              .v = nullptr,
                              .collapse = mean.data(),
                              .out = out.data() + from,
                              .tokens = n,
                              .heads = kHeads,
                              .pseudo = pseudo,
                              .d = kD},
                             &device),
              0)
        << device.report().message;
  }
  return WidenAll(out.ToHost());
}

// Copies of keys double every term of a softmax and leave it what it is: IHA is then plain attention.
TEST(IhaPipelineGpu, CopiesOfHeadsArePlainAttention) {
  const Layer layer = MakeLayer();
  simt::Device first({.seed = 5});
  const std::vector<float> plain = RunCopies(first, layer, 1);
  std::vector<double> want(plain.begin(), plain.end());
  for (const uint32_t pseudo : {2u, 4u, 8u}) {
    ForEachSchedule([&](simt::Device& device) {
      // Scores have the same bits, but a weight is rounded to bf16 (2^-8) against the maximum so far, and blocks of 64
      // hold other keys: each side is off by 2^-8 of max |v| = 2, and rounds its result (the mean of equal rows is
      // exact).
      ExpectClose(RunCopies(device, layer, pseudo), want, 2 * kBF16, [](size_t) { return 2 * 2 * 0x1p-8; });
    });
  }
}

}  // namespace
}  // namespace iha::kernels
