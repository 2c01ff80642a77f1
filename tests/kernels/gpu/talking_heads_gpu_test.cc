#include "kernels/talking_heads/talking_heads_gpu.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/talking_heads/talking_heads.h"
#include "tests/kernels/gpu/grid.h"
#include "tests/kernels/gpu/paged_cache.h"

namespace iha::kernels {
namespace {

struct Case {
  uint32_t d, heads, kv_heads, window, block_rows;
  std::vector<Sequence> sequences;
};
struct Inputs : PagedInputs {
  Case c;
  std::vector<float> pre, post;
};

Inputs Make(const Case& c, uint32_t seed = 1) {
  Inputs in{MakePaged({c.d, c.d, c.heads, c.kv_heads, c.sequences}, seed), c, {}, {}};
  // Each head's own score and weight, and some of the others'; both signs.
  in.pre = RandomFloats(size_t{c.heads} * c.heads, seed + 300, 0.3f);
  in.post = RandomFloats(size_t{c.heads} * c.heads, seed + 400, 0.3f);
  for (uint32_t h = 0; h < c.heads; ++h) {
    in.pre[h * c.heads + h] += 0.7f;
    in.post[h * c.heads + h] += 0.7f;
  }
  return in;
}

struct Outputs {
  std::vector<uint16_t> out;
  simt::Count read_bytes{}, written_bytes{}, mma{};
};

Outputs Attended(simt::Device& device, const Inputs& in) {
  PagedOnDevice cache(device, in);
  simt::Buffer<float> pre(device, in.pre, "pre"), post(device, in.post, "post");
  TalkingHeadsGpuArgs args{
      .attention = cache.Args(), .pre = pre.data(), .post = post.data(), .block_rows = in.c.block_rows};
  args.attention.mask.window = in.c.window;
  simt::Buffer<float> scores(device, TalkingHeadsGpuScratch(args), "scores");
  args.scores = scores.data();
  const simt::Counters before = device.total();
  EXPECT_EQ(TalkingHeadsGpu(args, &device), 0) << device.report().message;
  const simt::Counters& after = device.total();
  return {cache.Out(), after.global_read_bytes - before.global_read_bytes,
          after.global_written_bytes - before.global_written_bytes, after.mma - before.mma};
}

std::vector<double> Reference(const Inputs& in) {
  const Case& c = in.c;
  std::vector<double> want(size_t{in.rows} * c.heads * c.d);
  size_t row = 0;
  for (size_t s = 0; s < c.sequences.size(); ++s) {
    const auto [rows, keys] = c.sequences[s];
    const CpuBlocks blocks(in, s);
    const TalkingHeadsShape shape{.layout = blocks.layout(),
                                  .heads = c.heads,
                                  .kv_heads = c.kv_heads,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(c.d)),
                                  .window = c.window,
                                  .pre = in.pre.data(),
                                  .post = in.post.data()};
    std::vector<uint32_t> positions(rows);
    std::iota(positions.begin(), positions.end(), keys - rows);
    TalkingHeadsRef(shape,
                    {.blocks = blocks.pointers(),
                     .positions = positions,
                     .q = in.q.values.data() + row * c.heads * c.d,
                     .q_stride = size_t{c.heads} * c.d},
                    want.data() + row * c.heads * c.d);
    row += rows;
  }
  return want;
}

// The largest sum of magnitudes of a column.
double Column(const std::vector<float>& mix, uint32_t heads) {
  double largest = 0;
  for (uint32_t b = 0; b < heads; ++b) {
    double sum = 0;
    for (uint32_t a = 0; a < heads; ++a) sum += std::fabs(mix[a * heads + b]);
    largest = std::max(largest, sum);
  }
  return largest;
}

void ExpectWithinBound(const Inputs& in, const std::vector<uint16_t>& got, const std::vector<double>& want) {
  // |q|, |k|, |v| <= 2, so |L| <= 4 sqrt(d), off by 2 d^1.5 2^-24 (half of d terms' partial sums). With A, B the
  // largest column sums of pre and post: |J| <= 4 sqrt(d) A, off by e = A (2 d^1.5 + 4 H sqrt(d)) 2^-24, and its
  // exponent by |J| 2^-22 more with exp2 2^-21. Weights W, and their sum, move by twice that of themselves; they sum to
  // 1, so that U moves by as much of B in all, and by H 2^-24 B; rounding it to bf16 by 2^-8 of B; times |V| <= 2. The
  // result is rounded.
  const Case& c = in.c;
  const double a = Column(in.pre, c.heads), b = Column(in.post, c.heads), d = c.d, h = c.heads;
  const double e =
      a * (2 * d * std::sqrt(d) + 4 * h * std::sqrt(d)) * 0x1p-24 + a * 4 * std::sqrt(d) * 0x1p-22 + 0x1p-21;
  ExpectClose(WidenAll(got), want, kBF16, [&](size_t) { return 2 * b * (0x1p-8 + 2 * e + h * 0x1p-24); });
}

std::vector<Case> Cases() {
  return {{64, 1, 1, 0, 1, {{1, 1}}},
          {64, 2, 1, 0, 16, {{5, 5}, {1, 70}, {16, 64}}},
          {64, 4, 2, 5, 64, {{130, 130}}},
          {128, 9, 3, 0, 64, {{20, 100}, {65, 65}}},
          {128, 20, 4, 64, 3, {{3, 150}, {1, 2}}},
          {64, 40, 8, 0, 17, {{17, 65}}},
          {256, 2, 2, 0, 64, {{18, 70}}}};
}
std::string Name(const Case& c) {
  return "d " + std::to_string(c.d) + " heads " + std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) +
         " window " + std::to_string(c.window) + " rows " + std::to_string(c.sequences[0].rows) + " keys " +
         std::to_string(c.sequences[0].keys) + " at a time " + std::to_string(c.block_rows);
}

TEST(TalkingHeadsGpu, WithinTheBoundOfTheReference) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    const std::vector<double> want = Reference(in);
    ForEachSchedule([&](simt::Device& device) { ExpectWithinBound(in, Attended(device, in).out, want); });
  }
}

// Every pair of: head size, heads, window, rows, keys before them, rows at a time, a NaN among keys or values.
TEST(TalkingHeadsGpu, GridOfShapes) {
  constexpr std::array<std::array<uint32_t, 2>, 6> heads{{{1, 1}, {4, 1}, {9, 9}, {20, 20}, {40, 8}, {64, 2}}};
  constexpr std::array<uint32_t, 5> windows{0, 1, 63, 64, 65};
  constexpr std::array<uint32_t, 4> rows{1, 2, 17, 66}, before{0, 63, 64, 130};
  const auto prepare = [&](const std::vector<size_t>& row, uint32_t number) -> GridCheck {
    const auto [h, kv_heads] = heads[row[1]];
    const uint32_t n = rows[row[3]], keys = n + before[row[4]], at_once = row[5] == 0 ? 64 : 128;
    Inputs in = Make({row[0] == 0 ? 64u : 128u,
                      h,
                      kv_heads,
                      windows[row[2]],
                      at_once,
                      {{n, keys}, {1, 1 + before[row[4]]}, {0, keys}}},
                     number);
    PutNotFinite(row[6] == 1 ? in.k[0] : in.v[0], number * 7919, row[6] == 0 ? 0 : 1);
    return [in, want = Reference(in), name = Name(in.c)](simt::Device& device) {
      SCOPED_TRACE(name);
      ExpectWithinBound(in, Attended(device, in).out, want);
    };
  };
  OverGrid(grid_share::kTalking, {2, 6, 5, 4, 4, 2, 3}, prepare, [&](const std::vector<size_t>& row) {
    const double h = heads[row[1]][0], n = rows[row[3]];
    return std::pow(h * (n + 16) * (n + before[row[4]] + 64) * (2 * (row[0] == 0 ? 64 : 128) + 2 * h), 1.6);
  });
}

// Whole, in chunks and by rows of several sequences: the same bits.
TEST(TalkingHeadsGpu, RowsDoNotSeeBatchOrChunk) {
  const Inputs whole = Make({64, 3, 3, 40, 64, {{140, 140}}});
  simt::Device device;
  const std::vector<uint16_t> all = Attended(device, whole).out;
  for (const std::vector<Sequence>& sequences :
       {std::vector<Sequence>{{1, 1}, {1, 65}, {1, 140}}, {{7, 70}, {33, 97}, {16, 139}}, {{100, 138}}}) {
    Inputs part = whole;
    static_cast<PagedInputs&>(part) = PartOf(whole, sequences);
    part.c.block_rows = sequences.size() == 1 ? 128 : 64;
    EXPECT_EQ(Attended(device, part).out, RowsOfPart(all, sequences, 3 * 64)) << sequences.size() << " sequences";
  }
}

// A key's NaN reaches all heads of the rows that see it; a value's the column of the heads of its group, with the sign
// of an infinity that a negative weight turns.
TEST(TalkingHeadsGpu, NotFiniteReachesTheRowsThatSeeIt) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const uint32_t window : {0u, 9u}) {
    const Inputs clean = Make({64, 4, 2, window, 64, {{90, 90}}});
    const auto changed = [&](std::vector<Rounded> Inputs::*part, float value) {
      Inputs in = clean;
      const size_t at = (70 * 2 + 1) * 64 + 3;  // key 70 of KV head 1
      (in.*part)[0].bits[at] = RoundToBF16(value);
      (in.*part)[0].values[at] = value;
      return in;
    };
    const Inputs key = changed(&Inputs::k, nan), value = changed(&Inputs::v, nan), infinite = changed(&Inputs::v, inf);
    const std::vector<double> sign = Reference(infinite);
    ForEachSchedule([&](simt::Device& device) {
      const std::vector<float> base = WidenAll(Attended(device, clean).out),
                               of_key = WidenAll(Attended(device, key).out),
                               of_value = WidenAll(Attended(device, value).out),
                               of_infinite = WidenAll(Attended(device, infinite).out);
      size_t negative = 0;
      for (size_t i = 0; i < base.size(); ++i) {
        const size_t row = i / 256, head = i / 64 % 4;
        const bool sees = row >= 70 && (window == 0 || row < 70 + window), mine = sees && head >= 2 && i % 64 == 3;
        ASSERT_EQ(std::isnan(of_key[i]), sees) << i;
        ASSERT_EQ(std::isnan(of_value[i]), mine) << i;
        ASSERT_EQ(std::isinf(of_infinite[i]), mine) << i;
        if (!sees) {
          ASSERT_EQ(of_key[i], base[i]);
        }
        if (!mine) {
          ASSERT_EQ(of_value[i], base[i]);
          ASSERT_EQ(of_infinite[i], base[i]);
          continue;
        }
        ASSERT_EQ(static_cast<double>(of_infinite[i]), sign[i]) << i;
        negative += of_infinite[i] < 0 ? 1 : 0;
      }
      EXPECT_GT(negative, 0u);
    });
  }
}

// A row of a tile of 64 rows reads and writes, in fp32: scores of whole key blocks that it sees; of its visible keys
// the mixes (6 reads and 2 writes, see the header; read 4 times); weights of those blocks. A tile reads its q, keys and
// values once for each of its blocks; lengths and page numbers every thread, matrices every row.
TEST(TalkingHeadsGpu, BytesAndMatrixOperations) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Name(c));
    const Inputs in = Make(c);
    simt::Device device;
    const Outputs got = Attended(device, in);
    const uint64_t heads = c.heads, d = c.d, blocks = in.pages, threads = 128;
    uint64_t read = 0, written = 0, mma = 0;
    for (uint32_t first = 0; first < in.max_rows; first += c.block_rows) {
      for (const Sequence& s : c.sequences) {
        const auto position = [&](uint32_t row) { return s.keys - s.rows + row; };
        const auto from = [&](uint32_t row) { return VisibleTo({.window = c.window}, position(row)).first / 64; };
        for (uint32_t at = first; at < first + c.block_rows; at += 64) {
          read += threads * 8 * heads * (blocks + 1);
          if (at >= s.rows) continue;
          read += threads * 4 * heads * (blocks + 1);
          const uint32_t rows = std::min(64u, s.rows - at), last = at + rows - 1;
          for (uint32_t b = from(at); b <= position(last) / 64; ++b) {
            const uint64_t valid = std::min<uint64_t>(64, s.keys - b * 64);
            read += heads * (2 * threads * 4 + rows * d * 2 + 2 * valid * d * 2);
          }
          for (uint32_t row = at; row <= last; row += 16) {
            mma += heads * (position(std::min(row + 15, last)) / 64 - from(row) + 1) * (d / 16 * 8 + 4 * (d / 8));
          }
          for (uint32_t row = at; row <= last; ++row) {
            const uint64_t seen = position(row) / 64 - from(row) + 1;
            const uint64_t keys = position(row) + 1 - VisibleTo({.window = c.window}, position(row)).first;
            written += heads * (seen * 64 * 4 + keys * 8 + d * 2);
            read += heads * (keys * 16 + seen * 64 * 4);
          }
        }
        for (uint32_t row = first; row < std::min(first + c.block_rows, in.max_rows); ++row) {
          read += kTalkingGpuThreads * 8;
          if (row < s.rows) read += kTalkingGpuThreads * 4 + 2 * heads * heads * 4;
        }
      }
    }
    EXPECT_EQ(got.read_bytes, read);
    EXPECT_EQ(got.written_bytes, written);
    EXPECT_EQ(got.mma, mma);
    EXPECT_EQ(device.report().counters.matrix_bank_conflicts, 0u);
  }
}

TEST(TalkingHeadsGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  const auto status = [&](const AttentionGpuArgs& attention, uint32_t block_rows) {
    return TalkingHeadsGpu({.attention = attention, .block_rows = block_rows}, &device);
  };
  AttentionGpuArgs a{.sequences = 1, .max_rows = 17, .heads = 4, .kv_heads = 2, .d = 64, .d_v = 64};
  a.max_keys = 64;
  EXPECT_EQ(status(a, 16), 1);
  EXPECT_EQ(status(a, 100), 1);
  EXPECT_EQ(status(a, 0), 1);
  a.heads = 66;
  EXPECT_EQ(status(a, 64), 1);
  a.heads = 4;
  a.d_v = 128;
  EXPECT_EQ(status(a, 64), 1);
  a.d_v = 64;
  a.split_keys = 64;
  EXPECT_EQ(status(a, 64), 1);
  a.split_keys = 0;
  a.sequences = 0;
  EXPECT_EQ(status(a, 64), 0);
}

}  // namespace
}  // namespace iha::kernels
