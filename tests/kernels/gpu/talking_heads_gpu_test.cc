#include "kernels/talking_heads/talking_heads_gpu.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/support/aligned.h"
#include "kernels/talking_heads/talking_heads.h"
#include "tests/kernels/gpu/gpu_test_util.h"

namespace iha::kernels {
namespace {

struct Sequence {
  uint32_t rows, keys;
};
struct Case {
  uint32_t d, heads, kv_heads, window, block_rows;
  std::vector<Sequence> sequences;
};

struct Inputs {
  Case c;
  Rounded q;
  std::vector<Rounded> k, v;  // of each sequence: [key][kv head][d]
  std::vector<float> pre, post;
  std::vector<int32_t> table;
  uint32_t pages = 0, rows = 0, max_rows = 0;  // pages of a sequence
};

Inputs Make(const Case& c, uint32_t seed = 1) {
  Inputs in{.c = c, .q = {}, .k = {}, .v = {}, .pre = {}, .post = {}, .table = {}};
  for (const Sequence& s : c.sequences) {
    in.k.push_back(RandomBF16(size_t{s.keys} * c.kv_heads * c.d, seed + 100, 2));
    in.v.push_back(RandomBF16(size_t{s.keys} * c.kv_heads * c.d, seed + 200, 2));
    in.pages = std::max(in.pages, (s.keys + 63) / 64);
    in.rows += s.rows;
    in.max_rows = std::max(in.max_rows, s.rows);
    ++seed;
  }
  in.q = RandomBF16(size_t{in.rows} * c.heads * c.d, seed, 2);
  // Each head's own score and weight, and some of the others'; both signs.
  in.pre = RandomFloats(size_t{c.heads} * c.heads, seed + 300, 0.3f);
  in.post = RandomFloats(size_t{c.heads} * c.heads, seed + 400, 0.3f);
  for (uint32_t h = 0; h < c.heads; ++h) {
    in.pre[h * c.heads + h] += 0.7f;
    in.post[h * c.heads + h] += 0.7f;
  }
  in.table.resize(c.sequences.size() * in.pages);
  std::iota(in.table.begin(), in.table.end(), 0);
  std::mt19937 bits(seed);
  for (size_t i = in.table.size(); i > 1; --i) std::swap(in.table[i - 1], in.table[bits() % i]);
  return in;
}

struct Outputs {
  std::vector<uint16_t> out;
  simt::Count read_bytes{}, written_bytes{}, mma{};
};

Outputs Attended(simt::Device& device, const Inputs& in) {
  const Case& c = in.c;
  simt::Buffer<uint16_t> k(device, in.table.size() * 64 * c.kv_heads * c.d, "k_pages"),
      v(device, in.table.size() * 64 * c.kv_heads * c.d, "v_pages");
  std::vector<uint32_t> begins{0}, lengths;
  for (size_t s = 0; s < c.sequences.size(); ++s) {
    // A kernel of one thread writes what the cache holds, so that reading any other slot is an error.
    const auto report = device.Launch({.name = "fill"}, [&] {
      const ptx::Global<uint16_t> k_pool(k.data()), v_pool(v.data());
      for (size_t i = 0; i < in.k[s].bits.size(); ++i) {
        const size_t e = i % c.d, g = i / c.d % c.kv_heads, key = i / c.d / c.kv_heads;
        const size_t page = static_cast<size_t>(in.table[s * in.pages + key / 64]);
        const size_t to = ((page * c.kv_heads + g) * 64 + key % 64) * c.d + e;
        ptx::Store(k_pool + to, in.k[s].bits[i]);
        ptx::Store(v_pool + to, in.v[s].bits[i]);
      }
    });
    EXPECT_TRUE(report.ok()) << report.message;
    begins.push_back(begins.back() + c.sequences[s].rows);
    lengths.push_back(c.sequences[s].keys);
  }
  simt::Buffer<uint16_t> q(device, in.q.bits, "q"), out(device, size_t{in.rows} * c.heads * c.d, "out");
  simt::Buffer<int32_t> table(device, in.table, "page_table");
  simt::Buffer<uint32_t> q_begin(device, begins, "q_begin"), kv_length(device, lengths, "kv_length");
  simt::Buffer<float> pre(device, in.pre, "pre"), post(device, in.post, "post");
  TalkingHeadsGpuArgs args{.attention = {.q = q.data(),
                                         .k_pages = k.data(),
                                         .v_pages = v.data(),
                                         .page_table = table.data(),
                                         .q_begin = q_begin.data(),
                                         .kv_length = kv_length.data(),
                                         .out = out.data(),
                                         .lse = nullptr,
                                         .sequences = static_cast<uint32_t>(c.sequences.size()),
                                         .max_rows = in.max_rows,
                                         .pages_per_sequence = in.pages,
                                         .heads = c.heads,
                                         .kv_heads = c.kv_heads,
                                         .d = c.d,
                                         .d_v = c.d,
                                         .scale = 1.0f / std::sqrt(static_cast<float>(c.d)),
                                         .mask = {.window = c.window},
                                         .max_keys = in.pages * 64},
                           .pre = pre.data(),
                           .post = post.data(),
                           .block_rows = c.block_rows};
  simt::Buffer<float> scores(device, TalkingHeadsGpuScratch(args), "scores");
  args.scores = scores.data();
  const simt::Counters before = device.total();
  EXPECT_EQ(TalkingHeadsGpu(args, &device), 0) << device.report().message;
  const simt::Counters& after = device.total();
  return {out.ToHost(), after.global_read_bytes - before.global_read_bytes,
          after.global_written_bytes - before.global_written_bytes, after.mma - before.mma};
}

std::vector<double> Reference(const Inputs& in) {
  const Case& c = in.c;
  const TalkingHeadsShape shape{.layout = {.type = StorageType::kBF16, .d = c.d, .d_v = c.d},
                                .heads = c.heads,
                                .kv_heads = c.kv_heads,
                                .scale = 1.0f / std::sqrt(static_cast<float>(c.d)),
                                .window = c.window,
                                .pre = in.pre.data(),
                                .post = in.post.data()};
  std::vector<double> want(size_t{in.rows} * c.heads * c.d);
  size_t row = 0;
  for (size_t s = 0; s < c.sequences.size(); ++s) {
    const auto [rows, keys] = c.sequences[s];
    std::vector<AlignedArray<char>> blocks;
    std::vector<const void*> pointers;
    for (uint32_t key = 0; key < keys; ++key) {
      if (key % 64 == 0) {
        blocks.push_back(MakeAligned<char>(c.kv_heads * shape.layout.bytes()));
        pointers.push_back(blocks.back().get());
      }
      for (uint32_t g = 0; g < c.kv_heads; ++g) {
        const size_t at = (size_t{key} * c.kv_heads + g) * c.d;
        AppendKv(shape.layout, blocks.back().get() + g * shape.layout.bytes(), key % 64, &in.k[s].values[at],
                 &in.v[s].values[at]);
      }
    }
    std::vector<uint32_t> positions(rows);
    std::iota(positions.begin(), positions.end(), keys - rows);
    TalkingHeadsRef(shape,
                    {.blocks = pointers.data(),
                     .positions = positions,
                     .q = &in.q.values[row * c.heads * c.d],
                     .q_stride = size_t{c.heads} * c.d},
                    &want[row * c.heads * c.d]);
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
  return {{64, 1, 1, 0, 16, {{1, 1}}},
          {64, 2, 1, 0, 64, {{5, 5}, {1, 70}, {16, 64}}},
          {64, 4, 2, 5, 64, {{130, 130}}},
          {128, 9, 3, 0, 64, {{20, 100}, {65, 65}}},
          {128, 20, 4, 64, 16, {{3, 150}, {1, 2}}},
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

// Every pair of: head size, heads, window, rows, keys before them, rows at a time.
TEST(TalkingHeadsGpu, GridOfShapes) {
  const std::array<std::array<uint32_t, 2>, 6> heads{{{1, 1}, {4, 1}, {8, 2}, {9, 9}, {17, 1}, {20, 20}}};
  const std::array<uint32_t, 6> windows{0, 1, 3, 63, 64, 65}, rows{1, 2, 15, 17, 64, 66},
      before{0, 1, 63, 64, 100, 200};
  size_t number = 0;
  for (const auto& row : PairwiseCover({2, 6, 6, 6, 6, 2})) {
    const Case c{row[0] == 0 ? 64u : 128u, heads[row[1]][0],
                 heads[row[1]][1],         windows[row[2]],
                 row[5] == 0 ? 64u : 128u, {{rows[row[3]], rows[row[3]] + before[row[4]]}, {1, 1 + before[row[4]]}}};
    SCOPED_TRACE(Name(c));
    simt::Device device(ScheduleOf(number));
    const Inputs in = Make(c, static_cast<uint32_t>(number++));
    ExpectWithinBound(in, Attended(device, in).out, Reference(in));
  }
  EXPECT_GE(number, 36u);
}

// Whole, in chunks and by rows of several sequences: the same bits.
TEST(TalkingHeadsGpu, RowsDoNotSeeBatchOrChunk) {
  const Inputs whole = Make({64, 3, 3, 40, 64, {{140, 140}}});
  simt::Device device;
  const std::vector<uint16_t> all = Attended(device, whole).out;
  const size_t q_row = size_t{3} * 64;
  for (const std::vector<Sequence>& sequences :
       {std::vector<Sequence>{{1, 1}, {1, 65}, {1, 140}}, {{7, 70}, {33, 97}, {16, 139}}, {{100, 138}}}) {
    Inputs part = whole;
    part.c.sequences = sequences;
    part.c.block_rows = sequences.size() == 1 ? 128 : 64;
    part.k.assign(sequences.size(), {});
    part.v = part.k;
    part.q.bits.clear();
    part.rows = part.max_rows = 0;
    for (size_t s = 0; s < sequences.size(); ++s) {
      const auto [rows, keys] = sequences[s];
      const auto first = [&](const Rounded& x, size_t n) {
        return std::vector<uint16_t>(x.bits.begin(), x.bits.begin() + static_cast<ptrdiff_t>(n * q_row));
      };
      part.k[s].bits = first(whole.k[0], keys);
      part.v[s].bits = first(whole.v[0], keys);
      const std::vector<uint16_t> q = first(whole.q, keys);
      part.q.bits.insert(part.q.bits.end(), q.begin() + static_cast<ptrdiff_t>((keys - rows) * q_row), q.end());
      part.rows += rows;
      part.max_rows = std::max(part.max_rows, rows);
    }
    part.table.resize(sequences.size() * part.pages);
    std::iota(part.table.rbegin(), part.table.rend(), 0);
    const std::vector<uint16_t> got = Attended(device, part).out;
    size_t begin = 0;
    for (const auto& [rows, keys] : sequences) {
      for (size_t i = 0; i < rows * q_row; ++i) {
        ASSERT_EQ(got[begin * q_row + i], all[(keys - rows) * q_row + i]) << "rows " << rows << " keys " << keys;
      }
      begin += rows;
    }
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
  a.heads = 34;
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
