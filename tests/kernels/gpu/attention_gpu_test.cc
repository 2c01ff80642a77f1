#include "kernels/attention/attention_gpu.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/attention/attention.h"
#include "kernels/support/aligned.h"
#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

struct Sequence {
  uint32_t rows, keys;
};
struct Case {
  uint32_t d, d_v, heads, kv_heads;
  std::vector<Sequence> sequences;
  AttentionGpuMask mask = {};
  [[nodiscard]] uint32_t v_heads() const { return d_v == d ? kv_heads : kv_heads / 2; }
};

// Queries, and a paged cache with pages in a random order; slots that no key has hold nothing.
struct Inputs {
  Case c;
  Rounded q;
  std::vector<Rounded> k, v;  // of each sequence: [key][kv head][d], [key][value head][d_v]
  std::vector<int32_t> table;
  uint32_t pages_per_sequence = 0, rows = 0, max_rows = 0;
};

Inputs Make(const Case& c, uint32_t seed = 1) {
  Inputs in{.c = c, .q = {}, .k = {}, .v = {}, .table = {}};
  for (const Sequence& s : c.sequences) {
    in.k.push_back(RandomBF16(size_t{s.keys} * c.kv_heads * c.d, seed + 100, 2));
    in.v.push_back(RandomBF16(size_t{s.keys} * c.v_heads() * c.d_v, seed + 200, 2));
    in.pages_per_sequence = std::max(in.pages_per_sequence, (s.keys + 63) / 64);
    in.rows += s.rows;
    in.max_rows = std::max(in.max_rows, s.rows);
    ++seed;
  }
  in.q = RandomBF16(size_t{in.rows} * c.heads * c.d, seed, 2);
  in.table.resize(c.sequences.size() * in.pages_per_sequence);
  std::iota(in.table.begin(), in.table.end(), 0);
  std::mt19937 bits(seed);
  for (size_t i = in.table.size(); i > 1; --i) std::swap(in.table[i - 1], in.table[bits() % i]);
  return in;
}

struct Outputs {
  std::vector<uint16_t> out;
  std::vector<float> lse;
  simt::Count read_bytes, written_bytes, mma;  // of all launches
};

Outputs Attended(simt::Device& device, const Inputs& in, uint32_t split_keys = 0) {
  const Case& c = in.c;
  const size_t elements = in.table.size() * 64 * c.kv_heads * c.d;
  simt::Buffer<uint16_t> k(device, elements, "k_pages"), v(device, elements, "v_pages");
  std::vector<uint32_t> begins{0}, lengths;
  // A kernel of one thread writes what the cache holds, so that reading any other slot is an error.
  const auto fill = [&](uint16_t* to, const Rounded& from, uint32_t keys, uint32_t heads, uint32_t d, size_t sequence) {
    const auto report = device.Launch({.name = "fill"}, [&] {
      const ptx::Global<uint16_t> pool(to);
      for (uint32_t key = 0; key < keys; ++key) {
        for (uint32_t g = 0; g < heads; ++g) {
          const size_t number = static_cast<size_t>(in.table[sequence * in.pages_per_sequence + key / 64]);
          const size_t row = (number * heads + g) * 64 + key % 64;
          for (uint32_t i = 0; i < d; ++i) {
            ptx::Store(pool + (row * d + i), from.bits[(size_t{key} * heads + g) * d + i]);
          }
        }
      }
    });
    ASSERT_TRUE(report.ok()) << report.message;
  };
  for (size_t s = 0; s < c.sequences.size(); ++s) {
    fill(k.data(), in.k[s], c.sequences[s].keys, c.kv_heads, c.d, s);
    fill(v.data(), in.v[s], c.sequences[s].keys, c.v_heads(), c.d_v, s);
    begins.push_back(begins.back() + c.sequences[s].rows);
    lengths.push_back(c.sequences[s].keys);
  }
  simt::Buffer<uint16_t> q(device, in.q.bits, "q"), out(device, size_t{in.rows} * c.heads * c.d_v, "out");
  simt::Buffer<int32_t> table(device, in.table, "page_table");
  simt::Buffer<uint32_t> q_begin(device, begins, "q_begin"), kv_length(device, lengths, "kv_length");
  simt::Buffer<float> lse(device, size_t{in.rows} * c.heads, "lse");
  AttentionGpuArgs args{.q = q.data(),
                        .k_pages = k.data(),
                        .v_pages = v.data(),
                        .page_table = table.data(),
                        .q_begin = q_begin.data(),
                        .kv_length = kv_length.data(),
                        .out = out.data(),
                        .lse = lse.data(),
                        .sequences = static_cast<uint32_t>(c.sequences.size()),
                        .max_rows = in.max_rows,
                        .pages_per_sequence = in.pages_per_sequence,
                        .heads = c.heads,
                        .kv_heads = c.kv_heads,
                        .d = c.d,
                        .d_v = c.d_v,
                        .scale = 1.0f / std::sqrt(static_cast<float>(c.d)),
                        .mask = c.mask,
                        .split_keys = split_keys,
                        .max_keys = in.pages_per_sequence * 64,
                        .rows = in.rows};
  const size_t piece_rows = size_t{AttentionGpuPieces(args)} * in.rows * c.heads;
  simt::Buffer<float> split_out(device, piece_rows * c.d_v, "split_out"),
      split_sums(device, piece_rows * 2, "split_sums");
  args.split_out = split_out.data();
  args.split_sums = split_sums.data();
  const simt::Counters before = device.total();
  EXPECT_EQ(AttentionGpu(args, &device), 0) << device.report().message;
  const simt::Counters& after = device.total();
  return {out.ToHost(), lse.ToHost(), after.global_read_bytes - before.global_read_bytes,
          after.global_written_bytes - before.global_written_bytes, after.mma - before.mma};
}

// The double reference over the CPU's cache blocks, which hold the same bf16 values; and ln of the sum of exponentials.
struct Wanted {
  std::vector<double> out, lse;
};
Wanted Reference(const Inputs& in) {
  const Case& c = in.c;
  const KvLayout layout{.type = StorageType::kBF16, .d = c.d, .d_v = c.d_v};
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.d));
  Wanted want{std::vector<double>(size_t{in.rows} * c.heads * c.d_v), std::vector<double>(size_t{in.rows} * c.heads)};
  uint32_t begin = 0;
  for (size_t s = 0; s < c.sequences.size(); ++s) {
    const auto [rows, keys] = c.sequences[s];
    for (uint32_t h = 0; h < c.heads; ++h) {
      const uint32_t g = h / (c.heads / c.kv_heads);
      std::vector<AlignedArray<uint8_t>> blocks;
      for (uint32_t b = 0; b < (keys + 63) / 64; ++b) blocks.push_back(MakeAligned<uint8_t>(layout.bytes()));
      std::vector<const void*> pointers;
      for (const auto& b : blocks) pointers.push_back(b.get());
      for (uint32_t key = 0; key < keys; ++key) {
        const size_t at = size_t{key} * c.kv_heads + g,
                     value = size_t{key} * c.v_heads() + g * c.v_heads() / c.kv_heads;
        AppendKv(layout, blocks[key / 64].get(), key % 64, &in.k[s].values[at * c.d], &in.v[s].values[value * c.d_v]);
      }
      for (uint32_t r = 0; r < rows; ++r) {
        const VisibleKeys visible = VisibleTo(c.mask, keys - rows + r);
        const size_t at = size_t{begin + r} * c.heads + h;
        const AttentionRow row{&in.q.values[at * c.d], nullptr, visible.first, std::min(visible.last, keys - 1)};
        const AttentionGroup group{.blocks = pointers.data(), .rows = {&row, 1}};
        AttentionRef(layout, scale, group, &want.out[at * c.d_v]);
        double sum = 0;
        for (uint32_t j = row.first; j <= row.last; ++j) {
          double dot = 0;
          for (uint32_t i = 0; i < c.d; ++i) {
            dot += double{row.q[i]} * in.k[s].values[(size_t{j} * c.kv_heads + g) * c.d + i];
          }
          sum += std::exp(dot * scale);
        }
        want.lse[at] = std::log(sum);
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
         " rows " + std::to_string(c.sequences[0].rows) + " keys " + std::to_string(c.sequences[0].keys);
}

void ExpectWithinBound(const Outputs& got, const Wanted& want) {
  // |q|, |k|, |v| <= 2. A weight is rounded to bf16 (2^-8). A score of d terms of at most 4 is off by at most d / 2 * 4
  // d 2^-24 (half the terms' partial sums, generously), scaled by d^-1/2; the exponent's own rounding and exp2 are
  // below 2^-19: together e <= 2^-12 for d <= 128, 2^-11 for 256. So weights, and their sum, move by 2^-8 + 2 e of
  // themselves, the output by as much of max |v| = 2; then it is rounded.
  ExpectClose(WidenAll(got.out), want.out, kBF16, [](size_t) { return 2 * (0x1p-8 + 0x1p-10); });
  for (size_t i = 0; i < want.lse.size(); ++i) ASSERT_NEAR(got.lse[i], want.lse[i], 0x1p-10) << i;
}

// Every pair of: head sizes, heads, pseudo heads, mask, window (in units of what it counts), rows, keys before them.
TEST(AttentionGpu, GridOfShapes) {
  const std::array<std::array<uint32_t, 2>, 5> sizes{{{64, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 256}}};
  const std::array<std::array<uint32_t, 2>, 4> heads{{{1, 1}, {4, 1}, {4, 2}, {3, 3}}};
  const std::array<uint32_t, 6> pseudo{1, 2, 3, 4, 8, 20}, windows{0, 1, 3, 63, 64, 65}, before{0, 1, 63, 64, 127, 200};
  const std::array<uint32_t, 8> rows{1, 2, 15, 16, 17, 64, 65, 100};
  size_t number = 0;
  for (const auto& row : PairwiseCover({5, 4, 6, 2, 2, 6, 8, 6})) {
    const AttentionGpuMask mask{pseudo[row[2]], row[3] == 1, row[4] == 1, windows[row[5]]};
    const auto [d, d_v] = sizes[row[0]];  // twice as wide values are of pairs of key heads
    const std::vector<Sequence> both{{rows[row[6]], rows[row[6]] + before[row[7]]}, {1, 1 + before[row[7]]}};
    const Case c{d, d_v, heads[row[1]][0] * d_v / d, heads[row[1]][1] * d_v / d, both, mask};
    SCOPED_TRACE(Name(c) + " P " + std::to_string(mask.pseudo) + (mask.token_causal ? " token-causal" : "") +
                 (mask.token_window ? " token window" : "") + " heads " + std::to_string(c.heads));
    simt::Device device(ScheduleOf(number));
    const Inputs in = Make(c, static_cast<uint32_t>(number++));
    ExpectWithinBound(Attended(device, in), Reference(in));
  }
  EXPECT_GE(number, 48u);  // 8 x 6 pairs of the two largest factors
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
  Inputs one = alone;  // the first sequence of the pair; Make draws queries by the number of sequences
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
        const size_t key = i / c.d_v / c.v_heads();
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
    const size_t q_row = size_t{2} * 64;
    const auto check = [&](const std::vector<Sequence>& sequences) {
      Inputs part = whole;
      part.c.sequences = sequences;
      part.k.assign(sequences.size(), {});
      part.v = part.k;
      part.q.bits.clear();
      part.rows = part.max_rows = 0;
      for (size_t s = 0; s < sequences.size(); ++s) {
        const auto [rows, keys] = sequences[s];
        part.k[s].bits.assign(whole.k[0].bits.begin(), whole.k[0].bits.begin() + keys * 64);
        part.v[s].bits.assign(whole.v[0].bits.begin(), whole.v[0].bits.begin() + keys * 64);
        part.q.bits.insert(part.q.bits.end(), whole.q.bits.begin() + static_cast<ptrdiff_t>((keys - rows) * q_row),
                           whole.q.bits.begin() + static_cast<ptrdiff_t>(keys * q_row));
        part.rows += rows;
        part.max_rows = std::max(part.max_rows, rows);
      }
      part.table.resize(sequences.size() * part.pages_per_sequence);
      std::iota(part.table.rbegin(), part.table.rend(), 0);
      const Outputs got = Attended(device, part);
      size_t begin = 0;
      for (const auto& [rows, keys] : sequences) {
        for (size_t i = 0; i < rows * q_row; ++i) {
          ASSERT_EQ(got.out[begin * q_row + i], all.out[(keys - rows) * q_row + i])
              << "rows " << rows << " keys " << keys;
        }
        for (size_t i = 0; i < size_t{rows} * 2; ++i) {
          ASSERT_EQ(got.lse[begin * 2 + i], all.lse[(keys - rows) * 2 + i]);
        }
        begin += rows;
      }
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
    const uint64_t threads = AttentionGpuWarps(in.max_rows) * 32, pieces = (in.pages_per_sequence * 64 + 127) / 128;
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
