#include "kernels/logits/sample_gpu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tests/kernels/gpu/grid.h"

namespace iha::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Rules {
  float temperature = 0;
  uint32_t top_k = 0;
  double top_p = 1;
  double uniform = 0;
  std::vector<int32_t> allowed, forbidden;
};
struct Row {
  std::vector<float> logits;
  Rules rules;
};

// Rows and their rules as the kernel takes them. All have logits of one length.
struct Batch {
  uint32_t rows, n, ld;
  std::vector<float> logits, temperature;
  std::vector<uint32_t> top_k, id_begin;
  std::vector<double> top_p, uniform;
  std::vector<int32_t> ids;
};
Batch BatchOf(const std::vector<Row>& rows) {
  const auto n = static_cast<uint32_t>(rows[0].logits.size());
  Batch b{static_cast<uint32_t>(rows.size()), n, n + 3, {}, {}, {}, {0}, {}, {}, {}};
  for (const Row& row : rows) {
    b.logits.insert(b.logits.end(), row.logits.begin(), row.logits.end());
    b.logits.resize(b.logits.size() + 3, kNaN);
    b.temperature.push_back(row.rules.temperature);
    b.top_k.push_back(row.rules.top_k);
    b.top_p.push_back(row.rules.top_p);
    b.uniform.push_back(row.rules.uniform);
    for (const std::vector<int32_t>* list : {&row.rules.allowed, &row.rules.forbidden}) {
      b.ids.insert(b.ids.end(), list->begin(), list->end());
      b.id_begin.push_back(static_cast<uint32_t>(b.ids.size()));
    }
  }
  return b;
}

int32_t Reference(const std::vector<float>& logits, const Rules& rules) {
  const Batch b = BatchOf({{logits, rules}});
  return SampleRef({.logits = b.logits.data(),
                    .temperature = b.temperature.data(),
                    .top_k = b.top_k.data(),
                    .top_p = b.top_p.data(),
                    .uniform = b.uniform.data(),
                    .ids = b.ids.data(),
                    .id_begin = b.id_begin.data(),
                    .rows = 1,
                    .n = b.n,
                    .ld = b.ld},
                   0);
}

// `ids`: pass lists even if every one is empty.
std::vector<int32_t> OnTheDevice(simt::Device& device, const std::vector<Row>& rows, bool ids = true) {
  const Batch b = BatchOf(rows);
  simt::Buffer<float> logits(device, b.logits, "logits"), temperature(device, b.temperature, "temperature"),
      masked(device, rows.size() * b.n, "masked");
  simt::Buffer<uint32_t> top_k(device, b.top_k, "top_k"), id_begin(device, b.id_begin, "id_begin");
  simt::Buffer<double> top_p(device, b.top_p, "top_p"), uniform(device, b.uniform, "uniform");
  simt::Buffer<int32_t> lists(device, b.ids, "ids"), tokens(device, rows.size(), "tokens");
  EXPECT_EQ(SampleGpu({.logits = logits.data(),
                       .tokens = tokens.data(),
                       .temperature = temperature.data(),
                       .top_k = top_k.data(),
                       .top_p = top_p.data(),
                       .uniform = uniform.data(),
                       .ids = ids ? lists.data() : nullptr,
                       .id_begin = ids ? id_begin.data() : nullptr,
                       .masked = ids ? masked.data() : nullptr,
                       .rows = b.rows,
                       .n = b.n,
                       .ld = b.ld},
                      &device),
            0)
      << device.report().message;
  return tokens.ToHost();
}

void ExpectTheReferencesTokens(simt::Device& device, const std::vector<Row>& rows) {
  const std::vector<int32_t> got = OnTheDevice(device, rows);
  for (size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(got[r], Reference(rows[r].logits, rows[r].rules)) << "row " << r;
  }
}

// Kinds of logits: any values; few values, so that many are equal; some of them infinitely unlikely, zeros of both
// signs.
std::vector<float> Logits(uint32_t n, size_t kind, uint32_t seed) {
  std::vector<float> x = RandomFloats(n, seed, 6);
  for (size_t i = 0; i < x.size(); ++i) {
    if (kind == 1) x[i] = std::round(x[i] / 3);
    if (kind == 2 && i % 3 == 1) x[i] = -kInf;
    if (kind == 2 && i % 3 == 2) x[i] = i % 2 == 0 ? 0.0f : -0.0f;
  }
  return x;
}

// Where the token of `rules` changes as `value` grows from low to high (its two neighbours); nothing if it does not.
std::optional<std::pair<double, double>> Edge(const std::vector<float>& logits, Rules rules, double Rules::*value,
                                              double low, double high) {
  const auto token = [&](double at) {
    rules.*value = at;
    return Reference(logits, rules);
  };
  const int32_t before = token(low);
  if (token(high) == before) return std::nullopt;
  for (double middle = low; std::nextafter(low, high) < high;) {
    middle = low + (high - low) / 2;
    if (middle == low || middle == high) middle = std::nextafter(low, high);
    (token(middle) == before ? low : high) = middle;
  }
  return std::pair{low, high};
}

std::string Name(const Rules& r, size_t n) {
  return "n " + std::to_string(n) + " T " + std::to_string(r.temperature) + " top_k " + std::to_string(r.top_k) +
         " top_p " + std::to_string(r.top_p) + " allowed " + std::to_string(r.allowed.size()) + " forbidden " +
         std::to_string(r.forbidden.size());
}

// Every pair of: length, kind of logits, temperature, top_k, top_p, lists of ids. Uniforms at random, at both ends, and
// the two neighbours where the reference's token changes, which a sum of other bits would move. Of those of top_p too.
TEST(SampleGpu, TheReferencesTokensOverAGridOfRules) {
  const std::array<uint32_t, 7> lengths{1, 2, 255, 256, 257, 1000, 2600};
  const std::array<float, 4> temperatures{0.0f, 0.25f, 1.0f, 30.0f};
  const std::array<uint32_t, 6> top_ks{0, 1, 2, 40, 1100, 5000};
  const std::array<double, 6> top_ps{1, 0.9, 0.5, 1e-6, 0.999999, 0.25};
  OverGrid(grid_share::kNone, {7, 3, 4, 6, 6, 4}, [&](const std::vector<size_t>& row, uint32_t seed) {
    const uint32_t n = lengths[row[0]];
    Rules rules{.temperature = temperatures[row[2]],
                .top_k = top_ks[row[3]],
                .top_p = top_ps[row[4]],
                .allowed = {},
                .forbidden = {}};
    for (uint32_t i = 0; i < n; ++i) {
      if (row[5] % 2 == 1 && i % 2 == 0) rules.allowed.insert(rules.allowed.end(), 2, static_cast<int32_t>(n - 1 - i));
      if (row[5] / 2 == 1 && i % 5 == 3) rules.forbidden.push_back(static_cast<int32_t>(i));
    }
    const std::string name = Name(rules, n);
    const std::vector<float> logits = Logits(n, row[1], seed);
    std::vector<double> uniforms{0, 1 - 0x1p-53};
    std::mt19937 bits(seed);
    for (int i = 0; i < 3; ++i) {
      uniforms.push_back(bits() * 0x1p-32);
      const auto edge = Edge(logits, rules, &Rules::uniform, uniforms.back() / 2, uniforms.back());
      if (edge) uniforms.insert(uniforms.end(), {edge->first, edge->second});
    }
    std::vector<Row> rows;
    for (const double u : uniforms) {
      rules.uniform = u;
      rows.push_back({logits, rules});
    }
    if (const auto edge = Edge(logits, rules, &Rules::top_p, 0x1p-20, rules.top_p)) {
      for (const double top_p : {edge->first, edge->second}) {
        rules.top_p = top_p;
        rows.push_back({logits, rules});
      }
    }
    return [rows, name](simt::Device& device) {
      SCOPED_TRACE(name);
      ExpectTheReferencesTokens(device, rows);
    };
  });
}

TEST(SampleGpu, RowsOfABatchInEverySchedule) {
  std::vector<Row> rows;
  for (uint32_t i = 0; i < 6; ++i) {
    Rules rules{.temperature = 0.5f * static_cast<float>(i),
                .top_k = i % 3 * 17,
                .top_p = i % 2 == 0 ? 0.8 : 1.0,
                .uniform = 0.16 * i,
                .allowed = {},
                .forbidden = {}};
    if (i == 2) rules.forbidden = {5, 6, 5};
    if (i == 3) rules.allowed = {299, 0, 13, 14};
    rows.push_back({Logits(300, i % 3, i), rules});
  }
  rows.push_back({Logits(300, 0, 9), rows[1].rules});
  rows.back().logits[299] = kNaN;  // in a row that forbids it, too
  rows.push_back(rows.back());
  rows.back().rules.forbidden = {299};
  rows.push_back({Logits(300, 0, 9), rows[1].rules});
  rows.back().logits[0] = kInf;
  rows.push_back(rows.back());
  rows.back().rules.forbidden = {0};
  rows.push_back({Logits(300, 0, 9), rows[1].rules});
  rows.back().rules.allowed = rows.back().rules.forbidden = {7};
  ForEachSchedule([&](simt::Device& device) { ExpectTheReferencesTokens(device, rows); });
  EXPECT_EQ(Reference(rows[6].logits, rows[6].rules), kSampleNan);
  EXPECT_EQ(Reference(rows[8].logits, rows[8].rules), kSampleInfinite);
  EXPECT_GE(Reference(rows[9].logits, rows[9].rules), 0);
  EXPECT_EQ(Reference(rows[10].logits, rows[10].rules), kSampleNothing);
}

// top_p = 0.9999 of 5000 almost equal weights: pieces of 1024 sorted keys, one after another.
TEST(SampleGpu, ManyPiecesOfTopP) {
  std::vector<Row> rows;
  for (uint32_t i = 0; i < 3; ++i) {
    Rules rules{.temperature = 100, .top_k = i == 2 ? 3000u : 0u, .top_p = 0.9999, .allowed = {}, .forbidden = {}};
    rules.uniform = i == 1 ? 0.0 : 1 - 0x1p-53;
    rows.push_back({Logits(5000, i % 2, i), rules});
    const auto edge = Edge(rows.back().logits, rules, &Rules::top_p, 0.5, 0.9999);
    ASSERT_TRUE(edge || i == 1);
    if (!edge) continue;
    for (const double top_p : {edge->first, edge->second}) {
      rules.top_p = top_p;
      rows.push_back({rows.back().logits, rules});
    }
  }
  simt::Device device;
  ExpectTheReferencesTokens(device, rows);
}

// The logits once (best and NaN), once for the sums, and the drawn block of 256; top_k: once for every 8 bits that tell
// the last key that stays from the next one. With ids: copied without them first. Rules: by every thread.
TEST(SampleGpu, Bytes) {
  const uint32_t n = 1000;
  const std::vector<float> logits = Logits(n, 0, 1);
  const uint64_t row = uint64_t{n} * 4, threads = kSampleGpuThreads;
  simt::Device device;
  const auto read = [&](const Rules& rules, bool ids) {
    OnTheDevice(device, {{logits, rules}}, ids);
    const simt::Counters& count = device.report().counters;
    const uint64_t listed = rules.allowed.size() + rules.forbidden.size();
    EXPECT_EQ(count.global_written_bytes, 4 + (listed == 0 ? 0 : row + listed * 4));
    EXPECT_EQ(count.mma, 0u);
    return count.global_read_bytes;
  };
  Rules rules{.temperature = 0, .uniform = 0.1, .allowed = {}, .forbidden = {}};
  EXPECT_EQ(read(rules, false), row + threads * 4);
  EXPECT_EQ(read(rules, true), row + threads * (4 + 12));
  rules.allowed = {1, 2, 3};
  rules.forbidden = {4, 5};
  EXPECT_EQ(read(rules, true), 2 * row + threads * (4 + 12) + 3 * 8 + 2 * 4);
  rules = {.temperature = 1, .uniform = 0.1, .allowed = {}, .forbidden = {}};
  const uint64_t drawn = threads * (4 + 4 + 8 + 8) + 256 * 4;
  ASSERT_LT(Reference(logits, rules), 768);
  EXPECT_EQ(read(rules, false), 2 * row + drawn);
  for (const uint32_t top_k : {1u, 50u, 500u}) {
    // Of floats of one sign the pattern grows with the value.
    std::vector<float> sorted = logits;
    std::sort(sorted.rbegin(), sorted.rend());
    const uint32_t bits = std::bit_cast<uint32_t>(sorted[top_k - 1]) ^ std::bit_cast<uint32_t>(sorted[top_k]);
    ASSERT_NE(bits, 0u);
    rules.top_k = top_k;
    rules.uniform = 0;
    const uint64_t block = static_cast<uint64_t>(Reference(logits, rules)) / 256;
    const uint64_t passes = static_cast<uint64_t>(std::countl_zero(bits)) / 8 + 1;
    EXPECT_EQ(read(rules, false), (2 + passes) * row + drawn - 256 * 4 + std::min<uint64_t>(256, n - block * 256) * 4);
  }
}

TEST(SampleGpu, RefusesWhatItCannotDo) {
  simt::Device device;
  const uint32_t begin[3] = {};
  EXPECT_EQ(SampleGpu({.rows = 1, .n = 0, .ld = 0}, &device), 1);
  EXPECT_EQ(SampleGpu({.rows = 1, .n = 10, .ld = 9}, &device), 1);
  EXPECT_EQ(SampleGpu({.id_begin = begin, .rows = 1, .n = 10, .ld = 10}, &device), 1);
  EXPECT_EQ(SampleGpu({.rows = 0, .n = 10, .ld = 10}, &device), 0);
}

}  // namespace
}  // namespace iha::kernels
