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

// A layer on the device whose pseudo heads are copies of the heads (alpha = 1 for m = h) and whose collapse is their
// mean.
struct Copies {
  uint32_t pseudo, pages;
  simt::Buffer<uint16_t> q, k, v, alpha, k_pages, v_pages, out;
  simt::Buffer<float> cos, sin, shift_cos, shift_sin, mean;
  simt::Buffer<int32_t> page_table;

  Copies(simt::Device& device, const Layer& layer, uint32_t p)
      : pseudo(p),
        pages((kTokens * p + 63) / 64),
        q(device, layer.q.bits, "q"),
        k(device, layer.k.bits, "k"),
        v(device, layer.v.bits, "v"),
        alpha(device, PackedCopies(p), "alpha"),
        k_pages(device, size_t{pages} * kHeads * 64 * kD, "k_pages"),
        v_pages(device, size_t{pages} * kHeads * 64 * kD, "v_pages"),
        out(device, kTokens * kHeads * kD, "out"),
        cos(device, layer.cos, "cos"),
        sin(device, layer.sin, "sin"),
        // All pseudo tokens of a token at its own position: no shift.
        shift_cos(device, std::vector<float>(p * kD / 2, 1.0f), "ones"),
        shift_sin(device, std::vector<float>(p * kD / 2, 0.0f), "zeros"),
        mean(device, std::vector<float>(kHeads * p, 1.0f / static_cast<float>(p)), "collapse"),
        page_table(device, Backwards(pages), "page_table") {}

  static std::vector<uint16_t> PackedCopies(uint32_t pseudo) {
    const IhaMixGpuShape all{kTokens, kHeads, pseudo, kD};
    std::vector<float> alpha(kHeads * pseudo * kHeads, 0.0f);
    for (uint32_t r = 0; r < kHeads * pseudo; ++r) alpha[r * kHeads + r / pseudo] = 1.0f;
    std::vector<uint16_t> packed(MixGpuAlphaLayoutFor(all, 1).elements());
    MixGpuPackAlpha(all, 1, alpha.data(), packed.data());
    return packed;
  }
  static std::vector<int32_t> Backwards(uint32_t pages) {
    std::vector<int32_t> table(pages);
    std::iota(table.rbegin(), table.rend(), 0);
    return table;
  }
};

// Tokens first .. first + n - 1 and what lies between the kernels for them.
struct Chunk {
  uint32_t first, n, rows;
  simt::Buffer<uint32_t> first_row, row_position, row_sequence, q_begin, kv_length;
  simt::Buffer<uint16_t> q, k, v, attended;

  Chunk(simt::Device& device, uint32_t pseudo, uint32_t begin, uint32_t tokens)
      : first(begin),
        n(tokens),
        rows(tokens * pseudo),
        first_row(device, Counted(begin, tokens)),
        row_position(device, Counted(begin * pseudo, rows)),
        row_sequence(device, std::vector<uint32_t>(rows, 0)),
        q_begin(device, std::vector<uint32_t>{0, rows}),
        kv_length(device, std::vector<uint32_t>{(begin + tokens) * pseudo}),
        q(device, size_t{rows} * kHeads * kD, "mixed q"),
        k(device, size_t{rows} * kHeads * kD, "mixed k"),
        v(device, size_t{rows} * kHeads * kD, "mixed v"),
        attended(device, size_t{rows} * kHeads * kD, "attended") {}
  [[nodiscard]] size_t from() const { return size_t{first} * kHeads * kD; }

  static std::vector<uint32_t> Counted(uint32_t from, uint32_t count) {
    std::vector<uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), from);
    return numbers;
  }
};

void MixAndAppend(simt::Device& device, Copies& l, Chunk& c) {
  const uint32_t stride = kHeads * kD;
  EXPECT_EQ(IhaMixRopeGpu({.shape = {c.n, kHeads, l.pseudo, kD},
                           .terms = 1,
                           .count = 3,
                           .parts = {{l.q.data() + c.from(), stride, 1, l.alpha.data(), c.q.data()},
                                     {l.k.data() + c.from(), stride, 1, l.alpha.data(), c.k.data()},
                                     {l.v.data() + c.from(), stride, 0, l.alpha.data(), c.v.data()}},
                           .first_row = c.first_row.data(),
                           .cos = l.cos.data(),
                           .sin = l.sin.data(),
                           .shift_cos = l.shift_cos.data(),
                           .shift_sin = l.shift_sin.data()},
                          &device),
            0)
      << device.report().message;
  EXPECT_EQ(KvAppendGpu({.pages = {l.k_pages.data(), l.v_pages.data(), kHeads, kD, kD},
                         .k = c.k.data(),
                         .v = c.v.data(),
                         .row_sequence = c.row_sequence.data(),
                         .positions = c.row_position.data(),
                         .page_table = l.page_table.data(),
                         .pages_per_sequence = l.pages,
                         .rows = c.rows},
                        &device),
            0)
      << device.report().message;
  EXPECT_EQ(device.report().counters.global_written_bytes, uint64_t{c.rows} * kHeads * kD * 4);
}

void AttendAndCollapse(simt::Device& device, Copies& l, Chunk& c) {
  EXPECT_EQ(AttentionGpu({.q = c.q.data(),
                          .k_pages = l.k_pages.data(),
                          .v_pages = l.v_pages.data(),
                          .page_table = l.page_table.data(),
                          .q_begin = c.q_begin.data(),
                          .kv_length = c.kv_length.data(),
                          .out = c.attended.data(),
                          .lse = nullptr,
                          .sequences = 1,
                          .max_rows = c.rows,
                          .pages_per_sequence = l.pages,
                          .heads = kHeads,
                          .kv_heads = kHeads,
                          .d = kD,
                          .d_v = kD,
                          .scale = 0.125f,
                          .mask = {.pseudo = l.pseudo, .token_causal = true}},
                         &device),
            0)
      << device.report().message;
  EXPECT_EQ(IhaCollapseGpu({.a = c.attended.data(),
                            .v = nullptr,
                            .collapse = l.mean.data(),
                            .out = l.out.data() + c.from(),
                            .tokens = c.n,
                            .heads = kHeads,
                            .pseudo = l.pseudo,
                            .d = kD},
                           &device),
            0)
      << device.report().message;
}

// Its outputs, in two chunks of tokens, so that the second reads the pages that the first has written.
std::vector<float> RunCopies(simt::Device& device, const Layer& layer, uint32_t pseudo) {
  Copies copies(device, layer, pseudo);
  for (const auto& [first, n] : {std::pair<uint32_t, uint32_t>{0, 31}, {31, kTokens - 31}}) {
    Chunk chunk(device, pseudo, first, n);
    MixAndAppend(device, copies, chunk);
    AttendAndCollapse(device, copies, chunk);
  }
  return WidenAll(copies.out.ToHost());
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
