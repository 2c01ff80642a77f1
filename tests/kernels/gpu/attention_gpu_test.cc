#include "kernels/attention/attention_gpu.h"

#include <cmath>
#include <limits>

#include "tests/kernels/gpu/grid.h"
#include "tests/kernels/gpu/paged_cache.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t d, d_v, heads, kv_heads;
  std::vector<Sequence> sequences;
  AttentionGpuMask mask = {};
  uint32_t spare_pages = 0;
};
struct Inputs : PagedInputs {
  Case c;
};
Inputs Make(const Case& c, uint32_t seed = 1) {
  return {MakePaged({c.d, c.d_v, c.heads, c.kv_heads, c.sequences, c.spare_pages}, seed), c};
}

struct Outputs {
  std::vector<uint16_t> out;
  std::vector<float> lse;
  simt::Count read_bytes, written_bytes, mma;  // of all launches
};

Outputs Attended(simt::Device& device, const Inputs& in, uint32_t split_keys = 0) {
  PagedOnDevice cache(device, in);
  simt::Buffer<float> lse(device, size_t{in.rows} * in.c.heads, "lse");
  AttentionGpuArgs args = cache.Args();
  args.mask = in.c.mask;
  args.lse = lse.data();
  args.split_keys = split_keys;
  const size_t piece_rows = size_t{AttentionGpuPieces(args)} * in.rows * in.c.heads;
  simt::Buffer<float> split_out(device, piece_rows * in.c.d_v, "split_out"),
      split_sums(device, piece_rows * 2, "split_sums");
  args.split_out = split_out.data();
  args.split_sums = split_sums.data();
  const simt::Counters before = device.total();
  EXPECT_EQ(AttentionGpu(args, &device), 0) << device.report().message;
  const simt::Counters& after = device.total();
  return {cache.Out(), lse.ToHost(), after.global_read_bytes - before.global_read_bytes,
          after.global_written_bytes - before.global_written_bytes, after.mma - before.mma};
}

// The double reference over the CPU's cache blocks, which hold the same bf16 values; and ln of the sum of exponentials.
struct Wanted {
  std::vector<double> out, lse;
};
Wanted Reference(const Inputs& in) {
  const Case& c = in.c;
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.d));
  Wanted want{std::vector<double>(size_t{in.rows} * c.heads * c.d_v), std::vector<double>(size_t{in.rows} * c.heads)};
  uint32_t begin = 0;
  for (size_t s = 0; s < c.sequences.size(); ++s) {
    const auto [rows, keys] = c.sequences[s];
    const CpuBlocks blocks(in, s);
    for (uint32_t h = 0; h < c.heads; ++h) {
      const uint32_t g = h / (c.heads / c.kv_heads);
      for (uint32_t r = 0; r < rows; ++r) {
        const VisibleKeys visible = VisibleTo(c.mask, keys - rows + r);
        const size_t at = size_t{begin + r} * c.heads + h;
        const AttentionRow row{&in.q.values[at * c.d], nullptr, visible.first, std::min(visible.last, keys - 1)};
        const AttentionGroup group{
            .blocks = blocks.pointers(), .head_offset = g * blocks.layout().bytes(), .rows = {&row, 1}};
        AttentionRef(blocks.layout(), scale, group, &want.out[at * c.d_v]);
        std::vector<double> scores;
        for (uint32_t j = row.first; j <= row.last; ++j) {
          double dot = 0;
          for (uint32_t i = 0; i < c.d; ++i) {
            dot += double{row.q[i]} * in.k[s].values[(size_t{j} * c.kv_heads + g) * c.d + i];
          }
          scores.push_back(dot * scale);
        }
        const double largest = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        for (const double score : scores) sum += score == -INFINITY ? 0 : std::exp(score - largest);
        want.lse[at] = largest + std::log(sum);
      }
    }
    begin += rows;
  }
  return want;
}

std::vector<Case> Cases() {
  return {
      {64, 64, 1, 1, {{1, 1}}},
      {64, 64, 2, 1, {{5, 5}, {1, 70}, {16, 64}}},
      {64, 64, 2, 2, {{67, 130}}},
      {128, 128, 1, 1, {{20, 100}, {65, 65}}},
      {64, 128, 2, 2, {{9, 40}, {33, 150}}},
      {64, 64, 1, 1, {{80, 200}}, {.window = 37}},
      {64, 64, 1, 1, {{30, 90}}, {.pseudo = 3, .token_causal = true}},
      {64, 64, 1, 1, {{64, 160}}, {.pseudo = 4, .token_window = true, .window = 9}},
      {128, 128, 1, 1, {{4, 300}}, {.pseudo = 4, .token_causal = true, .token_window = true, .window = 20}},
      {64, 64, 4, 1, {{3, 3}, {2, 65}}, {.window = 64}},
      {64, 64, 6, 2, {{18, 70}}},
      {256, 256, 2, 1, {{20, 70}, {1, 65}}},
      {128, 256, 2, 2, {{17, 80}}, {.window = 20}},
  };
}
std::string Name(const Case& c) {
  return "d" + std::to_string(c.d) + "x" + std::to_string(c.d_v) + " window " + std::to_string(c.mask.window) +
         " rows " + std::to_string(c.sequences[0].rows) + " keys " + std::to_string(c.sequences[0].keys) + " P " +
         std::to_string(c.mask.pseudo) + (c.mask.token_causal ? " token-causal" : "") +
         (c.mask.token_window ? " token window" : "") + " heads " + std::to_string(c.heads) + "/" +
         std::to_string(c.kv_heads);
}

void ExpectWithinBound(const Outputs& got, const Wanted& want) {
  // |q|, |k|, |v| <= 2. A weight is rounded to bf16 (2^-8). A score of d terms of at most 4 is off by at most d / 2 * 4
  // d 2^-24 (half the terms' partial sums, generously), scaled by d^-1/2; the exponent's own rounding and exp2 are
  // below 2^-19: together e <= 2^-12 for d <= 128, 2^-11 for 256. So weights, and their sum, move by 2^-8 + 2 e of
  // themselves, the output by as much of max |v| = 2; then it is rounded.
  ExpectClose(WidenAll(got.out), want.out, kBF16, [](size_t) { return 2 * (0x1p-8 + 0x1p-10); });
  ExpectClose(got.lse, want.lse, 0, [](size_t) { return 0x1p-10; });
}

constexpr std::array<std::array<uint32_t, 2>, 5> kSizes{{{64, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 256}}};
// Heads and KV heads; where values are twice as wide as keys, of pairs of them.
constexpr std::array<std::array<uint32_t, 2>, 4> kHeads{{{1, 1}, {4, 2}, {9, 3}, {20, 20}}},
    kPairs{{{2, 2}, {4, 4}, {18, 6}, {20, 20}}};
constexpr std::array<uint32_t, 6> kPseudo{1, 2, 3, 4, 8, 20}, kWindows{0, 1, 3, 63, 64, 65};
constexpr std::array<uint32_t, 5> kBefore{0, 1, 63, 64, 200};
constexpr std::array<uint32_t, 6> kRows{1, 2, 15, 17, 64, 100}, kSplitRows{1, 2, 16, 17, 20, 64};

// Of a row of the grids: scores and weights of all heads.
double Cost(const std::vector<size_t>& row, uint32_t rows) {
  return std::pow(
      kHeads[row[1]][0] * (rows + 16.0) * (rows + kBefore[row[7]] + 64.0) * (kSizes[row[0]][0] + kSizes[row[0]][1]),
      1.6);
}

// A key or value of a sequence that is not finite.
void PutSpecial(Inputs& in, size_t kind, uint32_t seed) {
  if (kind <= 2) PutNotFinite(in.k[0], seed * 7919, kind);
  if (kind > 2) PutNotFinite(in.v[0], seed * 7919, kind - 2);
}

// Every pair of: head sizes, heads, pseudo heads, masks, window (in units of what it counts), rows, keys before them,
// what is not finite. Beside the sequence one of a single row, one without rows, and pages that hold nothing.
TEST(AttentionGpu, GridOfShapes) {
  const auto prepare = [](const std::vector<size_t>& row, uint32_t number) -> GridCheck {
    const AttentionGpuMask mask{kPseudo[row[2]], row[3] == 1, row[4] == 1, kWindows[row[5]]};
    const auto [d, d_v] = kSizes[row[0]];
    const auto [heads, kv_heads] = (d == d_v ? kHeads : kPairs)[row[1]];
    const uint32_t n = kRows[row[6]], before = kBefore[row[7]];
    Inputs in =
        Make({d, d_v, heads, kv_heads, {{n, n + before}, {1, 1 + before}, {0, before}}, mask, number % 2}, number);
    PutSpecial(in, row[8], number);
    return [in, want = Reference(in), name = Name(in.c)](simt::Device& device) {
      SCOPED_TRACE(name);
      ExpectWithinBound(Attended(device, in), want);
    };
  };
  OverGrid(grid_share::kAttention, {5, 4, 6, 2, 2, 6, 6, 5, 6}, prepare,
           [](const std::vector<size_t>& row) { return Cost(row, kRows[row[6]]); });
}

// The same of decode in pieces.
TEST(AttentionGpu, GridOfSplits) {
  const auto prepare = [](const std::vector<size_t>& row, uint32_t number) -> GridCheck {
    constexpr std::array<uint32_t, 3> pieces{64, 128, 320};
    const AttentionGpuMask mask{kPseudo[row[2]], row[3] == 1, row[4] == 1, kWindows[row[5]]};
    const auto [d, d_v] = kSizes[row[0]];
    const auto [heads, kv_heads] = (d == d_v ? kHeads : kPairs)[row[1]];
    const uint32_t n = kSplitRows[row[6]], before = kBefore[row[7]];
    Inputs in =
        Make({d, d_v, heads, kv_heads, {{n, n + before}, {1, 1 + before}, {0, before}}, mask, number % 2}, number);
    PutSpecial(in, row[8], number);
    return [in, want = Reference(in), name = Name(in.c), split = pieces[row[9]]](simt::Device& device) {
      SCOPED_TRACE(name + " pieces of " + std::to_string(split));
      ExpectWithinBound(Attended(device, in, split), want);
    };
  };
  OverGrid(grid_share::kSplit, {5, 4, 6, 2, 2, 6, 6, 5, 6, 3}, prepare,
           [](const std::vector<size_t>& row) { return Cost(row, kSplitRows[row[6]]); });
}

TEST(AttentionGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    const Wanted want = Reference(in);
    ForEachSchedule([&](simt::Device& device) { ExpectWithinBound(Attended(device, in), want); });
  }
}

// Pieces of 64 and 128 keys: the same bounds; the merge adds two roundings and exp2 a piece, below 2^-19. Where all
// keys lie in one piece, its bits are those of the kernel that does not split.
TEST(AttentionGpu, SplitDecodeWithinTheBoundOfTheReference) {
  for (const Case& c :
       {Case{64, 64, 2, 1, {{1, 300}, {4, 64}, {16, 200}}}, Case{128, 128, 1, 1, {{2, 129}}},
        Case{64, 128, 2, 2, {{3, 65}, {1, 1}}}, Case{64, 64, 1, 1, {{9, 290}}, {.window = 70}},
        Case{64, 64, 1, 1, {{8, 200}}, {.pseudo = 4, .token_causal = true, .token_window = true, .window = 17}},
        // IHA's decode with more than 16 rows a sequence, up to the most that are split.
        Case{64, 64, 2, 2, {{20, 300}, {20, 20}, {40, 120}}, {.pseudo = 20}},
        Case{64, 128, 2, 2, {{20, 140}, {60, 200}}, {.pseudo = 20, .token_causal = true, .window = 70}},
        Case{128, 128, 1, 1, {{64, 150}, {17, 17}}}, Case{128, 256, 4, 2, {{33, 140}}},
        Case{256, 256, 1, 1, {{2, 100}}}}) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    const Wanted want = Reference(in);
    simt::Device whole_device;
    const Outputs whole = Attended(whole_device, in);
    for (const uint32_t split_keys : {64u, 128u, 320u}) {
      ForEachSchedule([&](simt::Device& device) {
        const Outputs got = Attended(device, in, split_keys);
        ExpectWithinBound(got, want);
        if (split_keys == 320) {
          EXPECT_EQ(got.out, whole.out);
        }
      });
    }
  }
  const Inputs prefill = Make({64, 64, 1, 1, {{65, 130}}});  // more rows than decode has: not split
  simt::Device device;
  EXPECT_EQ(Attended(device, prefill, 64).out, Attended(device, prefill).out);
}

TEST(AttentionGpu, SplitRowsDoNotSeeTheBatch) {
  const Inputs pair = Make({64, 64, 2, 1, {{3, 250}, {1, 70}}}), alone = Make({64, 64, 2, 1, {{3, 250}}});
  Inputs one = alone;  // the first sequence of the pair; MakePaged draws queries by the number of sequences
  one.q.bits.assign(pair.q.bits.begin(), pair.q.bits.begin() + 3 * 2 * 64);
  simt::Device device;
  const Outputs both = Attended(device, pair, 64), single = Attended(device, one, 64);
  EXPECT_TRUE(std::equal(single.out.begin(), single.out.end(), both.out.begin()));
  EXPECT_TRUE(std::equal(single.lse.begin(), single.lse.end(), both.lse.begin()));
}

// Equal weights make equal scores exact, so the mask's edge is seen to the last key.
TEST(AttentionGpu, SeesExactlyTheVisibleKeys) {
  for (Case c : Cases()) {
    SCOPED_TRACE(Name(c));
    Inputs in = Make(c);
    std::fill(in.q.bits.begin(), in.q.bits.end(), uint16_t{0});
    for (size_t s = 0; s < c.sequences.size(); ++s) {
      for (size_t i = 0; i < in.v[s].bits.size(); ++i) {  // the value of key j is j in column 0, 1 elsewhere
        const size_t key = i / c.d_v / in.shape.v_heads();
        in.v[s].bits[i] = RoundToBF16(i % c.d_v == 0 ? static_cast<float>(key % 128) : 1.0f);
      }
    }
    simt::Device device;
    const Outputs got = Attended(device, in);
    size_t row = 0;
    for (const Sequence& s : c.sequences) {
      for (uint32_t r = 0; r < s.rows; ++r, ++row) {
        const VisibleKeys v = VisibleTo(c.mask, s.keys - s.rows + r);
        double sum = 0, n = 0;
        for (uint32_t j = v.first; j <= std::min(v.last, s.keys - 1); ++j, ++n) sum += j % 128;
        for (uint32_t h = 0; h < c.heads; ++h) {
          const size_t at = row * c.heads + h;
          EXPECT_EQ(WidenBF16(got.out[at * c.d_v]), WidenBF16(RoundToBF16(static_cast<float>(sum / n)))) << row;
          EXPECT_EQ(WidenBF16(got.out[at * c.d_v + 1]), 1.0f);
          EXPECT_NEAR(got.lse[at], std::log(n), 0x1p-20);
        }
      }
    }
  }
}

// Prefill in one piece, in chunks, by single rows, and beside other sequences: the same bits (cuda-exact).
TEST(AttentionGpu, RowsDoNotSeeBatchOrChunk) {
  for (const AttentionGpuMask& mask : {AttentionGpuMask{}, AttentionGpuMask{.window = 50}}) {
    const Inputs whole = Make({64, 64, 2, 1, {{150, 150}}, mask});
    simt::Device device;
    const Outputs all = Attended(device, whole);
    const auto check = [&](const std::vector<Sequence>& sequences) {
      const Outputs got = Attended(device, {PartOf(whole, sequences), whole.c});
      EXPECT_EQ(got.out, RowsOfPart(all.out, sequences, 2 * 64)) << sequences.size() << " sequences";
      EXPECT_EQ(got.lse, RowsOfPart(all.lse, sequences, 2)) << sequences.size() << " sequences";
    };
    check({{1, 1}, {1, 64}, {1, 65}, {1, 150}});
    check({{7, 7}, {7, 14}, {33, 97}, {16, 150}});
    check({{64, 128}, {100, 149}});
  }
}

// And the rows that do not see it keep their bits.
TEST(AttentionGpu, NanOfAKeyOrValueStaysWithRowsThatSeeIt) {
  for (const AttentionGpuMask& mask :
       {AttentionGpuMask{}, AttentionGpuMask{.window = 11}, AttentionGpuMask{.pseudo = 4, .token_causal = true}}) {
    for (const bool value : {false, true}) {
      const Inputs clean = Make({64, 64, 1, 1, {{90, 90}}, mask});
      Inputs in = clean;
      (value ? in.v : in.k)[0].bits[70 * 64 + 3] = RoundToBF16(std::numeric_limits<float>::quiet_NaN());
      ForEachSchedule([&](simt::Device& device) {
        const std::vector<float> got = WidenAll(Attended(device, in).out), want = WidenAll(Attended(device, clean).out);
        for (size_t i = 0; i < got.size(); ++i) {
          const VisibleKeys v = VisibleTo(mask, static_cast<uint32_t>(i / 64));
          const bool nan = v.first <= 70 && v.last >= 70 && (!value || i % 64 == 3);
          ASSERT_EQ(std::isnan(got[i]), nan) << i;
          if (!nan) {
            ASSERT_EQ(got[i], want[i]) << i;
          }
        }
      });
    }
  }
}

// Reads: q once; of every key block that a tile of 64 (16) rows sees, each valid key and value once; the page number by
// every thread; lengths. mma: of every warp and block that one of its rows sees.
TEST(AttentionGpu, BytesAndMatrixOperations) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    simt::Device device;
    Attended(device, in);
    const uint64_t warps = AttentionGpuWarps(in.max_rows), tile = warps * 16, threads = warps * 32;
    uint64_t read = 0, mma = 0;
    for (const Sequence& s : c.sequences) {
      for (uint64_t at = 0; at < in.max_rows; at += tile) {
        read += threads * 8;  // two begins
        if (at >= s.rows) continue;
        const uint64_t rows = std::min<uint64_t>(tile, s.rows - at);
        const uint32_t position = s.keys - s.rows + static_cast<uint32_t>(at);
        const auto first_block = [&](uint64_t r) {
          return VisibleTo(c.mask, position + static_cast<uint32_t>(r)).first / 64;
        };
        const auto last_block = [&](uint64_t r) {
          return std::min(VisibleTo(c.mask, position + static_cast<uint32_t>(r)).last, s.keys - 1) / 64;
        };
        read += threads * 4 + rows * c.d * 2;
        for (uint32_t b = first_block(0); b <= last_block(rows - 1); ++b) {
          read += threads * 4 + std::min<uint64_t>(64, s.keys - b * 64) * (c.d + c.d_v) * 2;
        }
        for (uint64_t r = 0; r < rows; r += 16) {
          mma += (last_block(std::min(r + 15, rows - 1)) - first_block(r) + 1) * (c.d / 16 * 8 + 4 * (c.d_v / 8));
        }
      }
    }
    const simt::Counters& n = device.report().counters;
    EXPECT_EQ(n.global_read_bytes, read * c.heads);
    EXPECT_EQ(n.global_written_bytes, uint64_t{in.rows} * c.heads * (c.d_v * 2 + 4));
    EXPECT_EQ(n.mma, mma * c.heads);
    EXPECT_EQ(n.matrix_bank_conflicts, 0u);
  }
}

// Split: of a piece, as above for the blocks in it; each row that has keys in it leaves d_v + 2 floats, which the merge
// reads again (the maximum twice). Blocks of threads of pieces that no row sees read lengths only.
TEST(AttentionGpu, BytesAndMatrixOperationsOfASplit) {
  for (const Case& c :
       {Case{64, 64, 2, 1, {{1, 300}, {4, 64}, {16, 200}}}, Case{128, 128, 1, 1, {{20, 290}, {40, 80}}, {.pseudo = 20}},
        Case{64, 128, 2, 2, {{33, 200}}, {.window = 40}}}) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    simt::Device device;
    const uint32_t split = 64 * 2;
    const Outputs got = Attended(device, in, split);
    const uint64_t threads = AttentionGpuWarps(in.max_rows) * 32, pieces = (in.pages * 64 + 127) / 128;
    uint64_t read = 0, written = 0, mma = 0;
    for (const Sequence& s : c.sequences) {
      const auto first = [&](uint32_t r) { return VisibleTo(c.mask, s.keys - s.rows + r).first; };
      const auto last = [&](uint32_t r) { return std::min(VisibleTo(c.mask, s.keys - s.rows + r).last, s.keys - 1); };
      for (uint32_t piece = 0; piece < pieces; ++piece) {
        read += threads * 12;
        const uint32_t from = std::max(first(0) / 64, piece * 2), to = std::min(last(s.rows - 1) / 64, piece * 2 + 1);
        if (from > to) continue;
        read += uint64_t{s.rows} * c.d * 2;
        written += uint64_t{s.rows} * (c.d_v + 2) * 4;
        for (uint32_t b = from; b <= to; ++b) {
          read += threads * 4 + std::min<uint64_t>(64, s.keys - b * 64) * (c.d + c.d_v) * 2;
          for (uint32_t r = 0; r < s.rows; r += 16) {
            const bool seen = b >= first(r) / 64 && b <= last(std::min(r + 15, s.rows - 1)) / 64;
            mma += seen ? c.d / 16 * 8 + 4 * (c.d_v / 8) : 0;
          }
        }
      }
      read += uint64_t{in.max_rows} * c.d_v * 8;
      for (uint32_t r = 0; r < s.rows; ++r) {
        read += c.d_v * (4 + uint64_t{last(r) / split - first(r) / split + 1} * (4 + 8 + 4));
        written += c.d_v * 2 + 4;
      }
    }
    EXPECT_EQ(got.read_bytes, read * c.heads);
    EXPECT_EQ(got.written_bytes, written * c.heads);
    EXPECT_EQ(got.mma, mma * c.heads);
  }
}

// Infinite values: the sign reaches the rows that see one, both signs are NaN, a weight of 0 makes NaN of it; others
// keep their bits.
TEST(AttentionGpu, InfiniteValuesReachTheRowsThatSeeThem) {
  const float inf = std::numeric_limits<float>::infinity();
  const Inputs clean = Make({64, 64, 1, 1, {{90, 90}}});
  Inputs in = clean;
  in.v[0].bits[70 * 64 + 3] = RoundToBF16(inf);
  in.v[0].bits[75 * 64 + 3] = RoundToBF16(-inf);
  in.v[0].bits[70 * 64 + 4] = RoundToBF16(-inf);
  in.v[0].bits[77 * 64 + 5] = RoundToBF16(inf);
  // Key 77 is so far below the others that its weight is 0, in the warp whose rows all see it and in the one before.
  for (uint32_t i = 0; i < 64; ++i) in.k[0].bits[77 * 64 + i] = RoundToBF16(0);
  Inputs far = in;
  for (uint32_t r = 0; r < 90; ++r) {
    far.q.bits[r * 64] = RoundToBF16(2000);
    far.k[0].bits[r * 64] = RoundToBF16(r == 77 ? -2 : 2);
  }
  ForEachSchedule([&](simt::Device& device) {
    Inputs base = clean;
    base.k = in.k;
    const std::vector<float> got = WidenAll(Attended(device, in).out), want = WidenAll(Attended(device, base).out);
    for (uint32_t i = 0; i < got.size(); ++i) {
      const uint32_t row = i / 64, column = i % 64;
      if (column == 3 && row >= 75) {
        ASSERT_TRUE(std::isnan(got[i])) << row;
      } else if ((column == 3 || column == 4) && row >= 70) {
        ASSERT_EQ(got[i], column == 3 ? inf : -inf) << row;
      } else if (column == 5 && row >= 77) {
        ASSERT_EQ(got[i], inf) << row;
      } else {
        ASSERT_EQ(got[i], want[i]) << row << ", " << column;
      }
    }
    const std::vector<float> zero = WidenAll(Attended(device, far).out);
    for (uint32_t row = 0; row < 90; ++row) ASSERT_EQ(std::isnan(zero[row * 64 + 5]), row >= 77) << row;
  });
}

TEST(AttentionGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  EXPECT_EQ(AttentionGpu({.sequences = 1, .max_rows = 1, .heads = 3, .kv_heads = 2, .d = 64, .d_v = 64}, &device), 1);
  EXPECT_EQ(AttentionGpu({.sequences = 1, .max_rows = 1, .heads = 2, .kv_heads = 2, .d = 96, .d_v = 96}, &device), 1);
  EXPECT_EQ(
      AttentionGpu({.sequences = 1, .max_rows = 1, .heads = 2, .kv_heads = 2, .d = 64, .d_v = 64, .split_keys = 96},
                   &device),
      1);
  EXPECT_EQ(AttentionGpu({.sequences = 1, .max_rows = 1, .heads = 3, .kv_heads = 3, .d = 64, .d_v = 128}, &device), 1);
  EXPECT_EQ(AttentionGpu({.sequences = 0, .max_rows = 1, .heads = 2, .kv_heads = 2, .d = 64, .d_v = 64}, &device), 0);
}

}  // namespace
}  // namespace iha::kernels
