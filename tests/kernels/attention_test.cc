#include "kernels/attention/attention.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "kernels/support/aligned.h"
#include "kernels/support/exact_math.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

// One KV head of one sequence; unwritten slots are NaN.
class Cache {
 public:
  Cache(KvLayout layout, size_t tokens, size_t head_offset = 0) : layout_(layout), head_offset_(head_offset) {
    const size_t bytes = head_offset + layout.bytes();
    for (size_t b = 0; b * kKeyBlock < tokens; ++b) {
      memory_.push_back(MakeAligned<char>(bytes));
      std::memset(memory_.back().get(), 0xFF, bytes);
      table_.push_back(memory_.back().get());
    }
  }
  void Append(size_t pos, const float* k, const float* v) {
    AppendKv(layout_, memory_[pos / kKeyBlock].get() + head_offset_, pos % kKeyBlock, k, v);
  }
  const void* const* table() const { return table_.data(); }
  const void* Head(size_t block) const { return memory_[block].get() + head_offset_; }
  size_t head_offset() const { return head_offset_; }
  void Hide(size_t block) { table_[block] = nullptr; }

 private:
  KvLayout layout_;
  size_t head_offset_;
  std::vector<AlignedArray<char>> memory_;
  std::vector<const void*> table_;
};

// NUM-3, written plainly for one row.
std::vector<float> RuleRow(const KvLayout& layout, float scale, const Cache& cache, const float* q, size_t first,
                           size_t last) {
  std::vector<float> acc(layout.d_v, 0.0f);
  float largest = -std::numeric_limits<float>::infinity(), lanes[16] = {};
  for (size_t b = first / kKeyBlock; b <= last / kKeyBlock; ++b) {
    const void* block = cache.Head(b);
    const size_t begin = b * kKeyBlock < first ? first - b * kKeyBlock : 0;
    const size_t end = std::min(kKeyBlock, last + 1 - b * kKeyBlock);
    float score[kKeyBlock], next = largest;
    for (size_t j = begin; j < end; ++j) {
      score[j] = 0;
      for (size_t i = 0; i < layout.d; ++i) score[j] = std::fma(q[i] * scale, KeyAt(layout, block, j, i), score[j]);
      next = std::max(next, score[j]);
    }
    if (b != first / kKeyBlock) {
      const float factor = ExpNeg(largest - next);
      for (float& x : lanes) x *= factor;
      for (float& x : acc) x *= factor;
    }
    largest = next;
    for (size_t j = begin; j < end; ++j) {
      score[j] = ExpNeg(score[j] - largest);
      lanes[j % 16] += score[j];
      for (size_t i = 0; i < layout.d_v; ++i) acc[i] = std::fma(score[j], ValueAt(layout, block, j, i), acc[i]);
    }
  }
  const float total = Fold16(lanes);
  for (float& x : acc) x /= total;
  return acc;
}

struct Case {
  StorageType type;
  size_t d, d_v;
  uint32_t window;
};

// A sequence of `tokens` whose queries are asked for chunk by chunk while the cache grows.
class Sequence {
 public:
  Sequence(const Case& c, size_t tokens)
      : layout_{c.type, c.d, c.d_v},
        window_(c.window),
        tokens_(tokens),
        scale_(1.0f / std::sqrt(static_cast<float>(c.d))),
        q_(RandomFloats(tokens * c.d, 1, 3)),
        k_(RandomFloats(tokens * c.d, 2, 3)),
        v_(RandomFloats(tokens * c.d_v, 3)) {
    Cache cache(layout_, tokens);
    for (size_t t = 0; t < tokens; ++t) Append(cache, t);
    for (size_t t = 0; t < tokens; ++t) {
      const std::vector<float> row = RuleRow(layout_, scale_, cache, Query(t), First(t), t);
      want_.insert(want_.end(), row.begin(), row.end());
    }
  }
  const KvLayout& layout() const { return layout_; }
  float scale() const { return scale_; }
  const std::vector<float>& want() const { return want_; }
  const float* Query(size_t t) const { return &q_[t * layout_.d]; }
  uint32_t First(size_t t) const { return FirstVisible(static_cast<uint32_t>(t), window_); }
  void Append(Cache& cache, size_t t) const { cache.Append(t, &k_[t * layout_.d], &v_[t * layout_.d_v]); }

  std::vector<float> Chunked(size_t chunk, ParallelFor& parallel) const {
    std::vector<float> out(tokens_ * layout_.d_v, std::numeric_limits<float>::quiet_NaN());
    Cache cache(layout_, tokens_, 192);
    for (size_t t0 = 0; t0 < tokens_; t0 += chunk) {
      const size_t t1 = std::min(tokens_, t0 + chunk);
      std::vector<AttentionRow> rows;
      for (size_t t = t0; t < t1; ++t) {
        Append(cache, t);
        rows.push_back({Query(t), &out[t * layout_.d_v], First(t), static_cast<uint32_t>(t)});
      }
      const AttentionGroup group{cache.table(), cache.head_offset(), rows};
      Attention(layout_, scale_, {&group, 1}, parallel);
    }
    return out;
  }

 private:
  KvLayout layout_;
  uint32_t window_;
  size_t tokens_;
  float scale_;
  std::vector<float> q_, k_, v_, want_;
};

TEST(Attention, EveryChunkingGivesTheRulesBits) {
  ThreadPool one(1), three(3);
  const Case cases[] = {{StorageType::kF32, 64, 64, 0},   {StorageType::kF32, 128, 128, 0},
                        {StorageType::kF32, 8, 8, 0},     {StorageType::kF32, 12, 20, 0},
                        {StorageType::kF32, 80, 96, 100}, {StorageType::kF32, 16, 256, 64},
                        {StorageType::kF32, 256, 16, 1},  {StorageType::kBF16, 64, 64, 0},
                        {StorageType::kBF16, 96, 24, 37}, {StorageType::kF32, 64, 64, 65}};
  for (const Case& c : cases) {
    const size_t tokens = c.d == 64 ? 700 : 300;
    const Sequence sequence(c, tokens);
    ForEachTarget([&](const SimdTarget& target) {
      for (const size_t chunk : {700, 100, 64, 33, 7, 1}) {
        if (!target.vectorized && chunk != 100 && chunk != 1) continue;
        for (ThreadPool* pool : {&one, &three}) {
          if (!target.vectorized && pool == &three) continue;
          ASSERT_EQ(FirstDifference(sequence.Chunked(chunk, *pool), sequence.want()), -1)
              << "chunk " << chunk << " d " << c.d << " d_v " << c.d_v << " window " << c.window << " threads "
              << pool->Threads();
        }
      }
    });
  }
}

// Rows far apart, out of order, of several sequences and heads in one call: each as if it were alone.
TEST(Attention, MixedRowsAndGroups) {
  ThreadPool pool(4);
  const Sequence wide({StorageType::kF32, 64, 64, 0}, 500), windowed({StorageType::kF32, 64, 64, 90}, 500);
  const Sequence* sequences[] = {&wide, &windowed};
  std::vector<Cache> caches;
  for (const Sequence* s : sequences) {
    caches.emplace_back(s->layout(), 500);
    for (size_t t = 0; t < 500; ++t) s->Append(caches.back(), t);
  }
  ForEachTarget([&](const SimdTarget&) {
    std::vector<std::vector<AttentionRow>> rows(2);
    std::vector<std::vector<float>> out(2, std::vector<float>(500 * 64));
    std::vector<float> want[2];
    std::vector<AttentionGroup> groups;
    for (size_t s = 0; s < 2; ++s) {
      size_t slot = 0;
      for (size_t i = 0; i < 170; ++i) {
        const size_t t = i * 37 % 500;
        rows[s].push_back(
            {sequences[s]->Query(t), &out[s][slot++ * 64], sequences[s]->First(t), static_cast<uint32_t>(t)});
        want[s].insert(want[s].end(), &sequences[s]->want()[t * 64], &sequences[s]->want()[t * 64] + 64);
      }
      out[s].resize(slot * 64);
      groups.push_back({caches[s].table(), 0, rows[s]});
    }
    groups.push_back({caches[0].table(), 0, {}});  // a group without rows is legal
    Attention(wide.layout(), wide.scale(), groups, pool);
    for (size_t s = 0; s < 2; ++s) EXPECT_EQ(FirstDifference(out[s], want[s]), -1) << "sequence " << s;
  });
}

TEST(Attention, BlocksOutsideTheWindowAreNeverRead) {
  SerialFor serial;
  const Sequence sequence({StorageType::kF32, 16, 16, 70}, 400);
  Cache cache(sequence.layout(), 400);
  for (size_t t = 0; t < 400; ++t) sequence.Append(cache, t);
  for (size_t b = 0; b < (399 - 69) / kKeyBlock; ++b) cache.Hide(b);  // null: a read would crash
  std::vector<float> out(16);
  const AttentionRow row{sequence.Query(399), out.data(), sequence.First(399), 399};
  const AttentionGroup group{cache.table(), 0, {&row, 1}};
  Attention(sequence.layout(), sequence.scale(), {&group, 1}, serial);
  EXPECT_EQ(FirstDifference(out.data(), &sequence.want()[399 * 16], 16), -1);
}

TEST(Attention, VisibleNaNMakesItsRowsNaNOnly) {
  SerialFor serial;
  const KvLayout layout{StorageType::kF32, 16, 16};
  const std::vector<float> q = RandomFloats(200 * 16, 1), k = RandomFloats(200 * 16, 2), v = RandomFloats(200 * 16, 3);
  Cache cache(layout, 200);
  for (size_t t = 0; t < 200; ++t) {
    std::vector<float> key(&k[t * 16], &k[t * 16] + 16);
    if (t == 70) key[5] = std::numeric_limits<float>::quiet_NaN();
    cache.Append(t, key.data(), &v[t * 16]);
  }
  ForEachTarget([&](const SimdTarget&) {
    std::vector<float> out(200 * 16);
    std::vector<AttentionRow> rows;
    for (uint32_t t = 0; t < 200; ++t) rows.push_back({&q[t * 16], &out[t * 16], FirstVisible(t, 100), t});
    const AttentionGroup group{cache.table(), 0, rows};
    Attention(layout, 0.25f, {&group, 1}, serial);
    for (size_t t = 0; t < 200; ++t) {
      for (size_t i = 0; i < 16; ++i) EXPECT_EQ(std::isnan(out[t * 16 + i]), t >= 70 && t < 170) << t << " " << i;
    }
  });
}

// Two key heads that share one value head (differential attention): each as if it had its own copy of the values.
TEST(Attention, KeysThatShareValuesGiveTheBitsOfSeparateCaches) {
  ThreadPool pool(2);
  constexpr size_t kTokens = 150, kD = 20, kDv = 40;
  for (const StorageType type : {StorageType::kF32, StorageType::kBF16}) {
    const KvLayout shared{type, kD, kDv, 2}, single{type, kD, kDv};
    EXPECT_EQ(shared.bytes(), single.bytes() + kKeyBlock * kD * StorageBytes(type));
    const std::vector<float> q = RandomFloats(2 * kTokens * kD, 1), k = RandomFloats(2 * kTokens * kD, 2),
                             v = RandomFloats(kTokens * kDv, 3);
    Cache separate[] = {Cache(single, kTokens), Cache(single, kTokens)};
    std::vector<AlignedArray<char>> memory;
    std::vector<const void*> table;
    for (size_t t = 0; t < kTokens; ++t) {
      if (t % kKeyBlock == 0) {
        memory.push_back(MakeAligned<char>(shared.bytes()));
        std::memset(memory.back().get(), 0xFF, shared.bytes());
        table.push_back(memory.back().get());
      }
      AppendKv(shared, memory.back().get(), t % kKeyBlock, &k[2 * t * kD], &v[t * kDv]);
      for (size_t key = 0; key < 2; ++key) separate[key].Append(t, &k[(2 * t + key) * kD], &v[t * kDv]);
    }
    ForEachTarget([&](const SimdTarget&) {
      std::vector<float> got(2 * kTokens * kDv), want(2 * kTokens * kDv);
      std::vector<AttentionRow> rows[2], want_rows[2];
      std::vector<AttentionGroup> groups, want_groups;
      for (size_t key = 0; key < 2; ++key) {
        for (uint32_t t = 0; t < kTokens; ++t) {
          const size_t row = 2 * t + key;
          rows[key].push_back({&q[row * kD], &got[row * kDv], FirstVisible(t, 70), t});
          want_rows[key].push_back({&q[row * kD], &want[row * kDv], FirstVisible(t, 70), t});
        }
        groups.push_back({.blocks = table.data(), .rows = rows[key], .key = key});
        want_groups.push_back({.blocks = separate[key].table(), .rows = want_rows[key]});
      }
      Attention(shared, 0.2f, groups, pool);
      Attention(single, 0.2f, want_groups, pool);
      EXPECT_EQ(FirstDifference(got, want), -1);
      std::vector<double> exact(kTokens * kDv);
      AttentionRef(shared, 0.2f, groups[1], exact.data());
      // The bound of ErrorBoundAgainstDouble with 70 keys and scores of at most 4 is far below 1e-4; the other key
      // head's weights are not.
      for (size_t i = 0; i < exact.size(); ++i) {
        ASSERT_LE(std::fabs(got[(i / kDv * 2 + 1) * kDv + i % kDv] - exact[i]), 1e-4) << i;
      }
    });
  }
}

TEST(Attention, ErrorBoundAgainstDouble) {
  SerialFor serial;
  const size_t d = 64, keys = 1000;
  const KvLayout layout{StorageType::kF32, d, d};
  const std::vector<float> q = RandomFloats(d, 1, 3), k = RandomFloats(keys * d, 2, 3), v = RandomFloats(keys * d, 3);
  Cache cache(layout, keys);
  for (size_t t = 0; t < keys; ++t) cache.Append(t, &k[t * d], &v[t * d]);
  std::vector<float> out(d);
  std::vector<double> want(d);
  const AttentionRow row{q.data(), out.data(), 0, keys - 1};
  const AttentionGroup group{cache.table(), 0, {&row, 1}};
  const float scale = 0.125f;
  Attention(layout, scale, {&group, 1}, serial);
  AttentionRef(layout, scale, group, want.data());
  // u = 2^-24. A score is a chain of d terms on a once-rounded q: |ds| <= (d + 2) u sum |q k| scale =: E (the
  // subtraction of the maximum adds u |s - m| <= 2 u S). exp: 2 ulp of its own, and a factor exp(2 E). The sums have at
  // most keys + 16 roundings each, the rescaling one per block: keys / 64, twice. |v| <= 1.
  double largest = 0;
  for (size_t t = 0; t < keys; ++t) {
    double sum = 0;
    for (size_t i = 0; i < d; ++i) sum += std::fabs(static_cast<double>(q[i]) * k[t * d + i]) * scale;
    largest = std::max(largest, sum);
  }
  const double u = 0x1p-24, score = (d + 4) * u * largest;
  const double relative = 2 * (2 * score + 4 * u) + 2 * (keys + 16 + 2 * keys / 64) * u + u;
  for (size_t i = 0; i < d; ++i) EXPECT_LE(std::fabs(out[i] - want[i]), relative) << i;
}

}  // namespace
}  // namespace iha::kernels
