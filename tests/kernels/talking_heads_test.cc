#include "kernels/talking_heads/talking_heads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/support/aligned.h"
#include "kernels/support/exact_math.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A sequence of n tokens with its cache (unwritten slots and a gap before KV head 0 are NaN) and mixes.
struct Case {
  Case(StorageType type, size_t heads, size_t kv_heads, size_t d, size_t n, uint32_t window) {
    shape.layout = {.type = type, .d = d, .d_v = d};
    shape.heads = heads;
    shape.kv_heads = kv_heads;
    shape.scale = 1 / std::sqrt(static_cast<float>(d));
    shape.window = window;
    q = RandomFloats(n * q_stride(), 1, 2);
    pre = RandomFloats(heads * heads, 2);
    post = RandomFloats(heads * heads, 3);
    shape.pre = pre.data();
    shape.post = post.data();
    const std::vector<float> k = RandomFloats(n * kv_heads * d, 4), v = RandomFloats(n * kv_heads * d, 5);
    for (size_t j = 0; j < n; ++j) {
      if (j % kKeyBlock == 0) {
        memory.push_back(MakeAligned<char>(kOffset + kv_heads * shape.layout.bytes()));
        std::memset(memory.back().get(), 0xFF, kOffset + kv_heads * shape.layout.bytes());
        table.push_back(memory.back().get());
      }
      for (size_t g = 0; g < kv_heads; ++g) {
        AppendKv(shape.layout, Head(j / kKeyBlock, g), j % kKeyBlock, &k[(j * kv_heads + g) * d],
                 &v[(j * kv_heads + g) * d]);
      }
    }
    positions.resize(n);
    std::iota(positions.begin(), positions.end(), 0u);
  }

  static constexpr size_t kOffset = 128;
  size_t q_stride() const { return shape.heads * shape.layout.d + 3; }
  char* Head(size_t block, size_t g) const { return memory[block].get() + kOffset + g * shape.layout.bytes(); }
  TalkingHeadsTokens Tokens(size_t first, size_t count, float* out) const {
    return {.blocks = table.data(),
            .offset = kOffset,
            .positions = std::span(positions).subspan(first, count),
            .q = q.data() + first * q_stride(),
            .q_stride = q_stride(),
            .out = out + first * shape.heads * shape.layout.d_v};
  }
  size_t OutFloats() const { return positions.size() * shape.heads * shape.layout.d_v; }
  // All tokens in chunks, one call a chunk.
  std::vector<float> Run(size_t chunk, ParallelFor& parallel) const {
    std::vector<float> out(OutFloats(), kNaN);
    for (size_t t = 0; t < positions.size(); t += chunk) {
      const TalkingHeadsTokens tokens = Tokens(t, std::min(chunk, positions.size() - t), out.data());
      TalkingHeads(shape, std::span(&tokens, 1), parallel);
    }
    return out;
  }

  TalkingHeadsShape shape;
  std::vector<float> q, pre, post;
  std::vector<AlignedArray<char>> memory;
  std::vector<const void*> table;
  std::vector<uint32_t> positions;
};

// The header's rule for one token, written plainly.
std::vector<float> Rule(const Case& c, size_t t) {
  const TalkingHeadsShape& shape = c.shape;
  const KvLayout& layout = shape.layout;
  const size_t heads = shape.heads, group = heads / shape.kv_heads, last = c.positions[t];
  const size_t first = FirstVisible(c.positions[t], shape.window), keys = last + 1 - first;
  const auto block = [&](size_t a, size_t j) { return c.Head((first + j) / kKeyBlock, a / group); };
  std::vector<float> score(heads * keys), mixed(heads * keys), out(heads * layout.d_v);
  for (size_t a = 0; a < heads; ++a) {
    for (size_t j = 0; j < keys; ++j) {
      float& s = score[a * keys + j] = 0;
      for (size_t i = 0; i < layout.d; ++i) {
        s = std::fma(c.q[t * c.q_stride() + a * layout.d + i] * shape.scale,
                     KeyAt(layout, block(a, j), (first + j) % kKeyBlock, i), s);
      }
    }
  }
  const auto mix = [&](const std::vector<float>& from, const std::vector<float>& m, std::vector<float>& to) {
    std::fill(to.begin(), to.end(), 0.0f);
    for (size_t a = 0; a < heads; ++a) {
      for (size_t b = 0; b < heads; ++b) {
        for (size_t j = 0; j < keys; ++j) {
          to[b * keys + j] = std::fma(m[a * heads + b], from[a * keys + j], to[b * keys + j]);
        }
      }
    }
  };
  mix(score, c.pre, mixed);
  for (size_t b = 0; b < heads; ++b) {
    float* row = &mixed[b * keys];
    float max = -std::numeric_limits<float>::infinity(), lanes[16] = {};
    for (size_t j = 0; j < keys;) {
      size_t end = j;
      float next = max;
      for (; end < keys && (end == j || (first + end) % kKeyBlock != 0); ++end) next = std::max(next, row[end]);
      if (j != 0) {
        for (float& lane : lanes) lane *= ExpNeg(max - next);
      }
      for (; j < end; ++j) lanes[(first + j) % 16] += ExpNeg(row[j] - next);
      max = next;
    }
    const float sum = Fold16(lanes);
    for (size_t j = 0; j < keys; ++j) row[j] = ExpNeg(row[j] - max) / sum;
  }
  mix(mixed, c.post, score);
  for (size_t h = 0; h < heads; ++h) {
    for (size_t j = 0; j < keys; ++j) {
      for (size_t i = 0; i < layout.d_v; ++i) {
        out[h * layout.d_v + i] = std::fma(
            score[h * keys + j], ValueAt(layout, block(h, j), (first + j) % kKeyBlock, i), out[h * layout.d_v + i]);
      }
    }
  }
  return out;
}

double LargestColumn(const std::vector<float>& mix, size_t heads) {
  double largest = 0;
  for (size_t b = 0; b < heads; ++b) {
    double sum = 0;
    for (size_t a = 0; a < heads; ++a) sum += std::fabs(mix[a * heads + b]);
    largest = std::max(largest, sum);
  }
  return largest;
}

// u = 2^-24, |q| <= 2, |k|, |v| <= 1, S = 2 d scale bounds a score, X and Y the columns of |pre| and |post|.
// J: X S at most, off by dj = X S (d + 2 + H) u. W: relative error 2 dj of its exponents, and of ExpNeg 2.2 u, of the
// difference below it 2 X S u, twice (numerator and sum), n / 16 + 5 additions, for each block a factor of (3.2 +
// 2 X S) u, one division. U: H roundings more; O: n more, of terms that sum to at most Y.
double Bound(const Case& c) {
  const double u = 0x1p-24, d = static_cast<double>(c.shape.layout.d), heads = static_cast<double>(c.shape.heads);
  const double n = static_cast<double>(c.positions.size()), s = 2 * d * c.shape.scale;
  const double x = LargestColumn(c.pre, c.shape.heads), y = LargestColumn(c.post, c.shape.heads);
  const double dj = x * s * (d + 2 + heads) * u;
  const double w = 2 * dj + (2 * (2.2 + 2 * x * s) + n / 16 + 5 + (n / 64 + 1) * (3.2 + 2 * x * s) + 1) * u;
  return y * (w + (heads + n + 1) * u);
}

TEST(TalkingHeads, EveryChunkingThreadAndTargetFollowsTheRule) {
  ThreadPool one(1), three(3);
  struct Size {
    size_t heads, kv_heads, d, n;
    uint32_t window;
  };
  for (const StorageType type : {StorageType::kF32, StorageType::kBF16}) {
    for (const Size& size : {Size{4, 4, 16, 70, 0}, Size{6, 2, 20, 150, 0}, Size{6, 3, 20, 150, 37},
                             Size{1, 1, 8, 65, 0}, Size{20, 5, 64, 66, 64}, Size{7, 1, 12, 140, 65}}) {
      const Case c(type, size.heads, size.kv_heads, size.d, size.n, size.window);
      SCOPED_TRACE("H " + std::to_string(size.heads) + " n " + std::to_string(size.n));
      std::vector<float> want;
      for (size_t t = 0; t < size.n; ++t) {
        const std::vector<float> token = Rule(c, t);
        want.insert(want.end(), token.begin(), token.end());
      }
      ForEachTarget([&](const SimdTarget&) {
        for (const size_t chunk : {size_t{1}, size_t{7}, size_t{64}, size.n}) {
          ASSERT_EQ(FirstDifference(c.Run(chunk, one), want), -1) << "chunk " << chunk;
        }
        ASSERT_EQ(FirstDifference(c.Run(size.n, three), want), -1);
      });
      std::vector<double> exact(want.size());
      std::vector<float> ignored(want.size());
      TalkingHeadsRef(c.shape, c.Tokens(0, size.n, ignored.data()), exact.data());
      const double bound = Bound(c);
      for (size_t i = 0; i < want.size(); ++i) ASSERT_LE(std::fabs(want[i] - exact[i]), bound) << i;
    }
  }
}

TEST(TalkingHeads, OtherSequencesAndTheOrderOfTokensChangeNoBit) {
  ThreadPool pool(2);
  const Case a(StorageType::kF32, 6, 3, 16, 100, 0), b(StorageType::kF32, 6, 3, 16, 9, 0);
  Case backwards(StorageType::kF32, 6, 3, 16, 100, 0);
  std::reverse(backwards.positions.begin(), backwards.positions.end());
  const size_t stride = a.q_stride();
  for (size_t t = 0; t < 100; ++t) std::copy_n(&a.q[t * stride], stride, &backwards.q[(99 - t) * stride]);
  std::vector<float> together(a.OutFloats(), kNaN), other(b.OutFloats(), kNaN);
  const TalkingHeadsTokens both[] = {b.Tokens(0, 9, other.data()), a.Tokens(0, 100, together.data())};
  TalkingHeads(a.shape, both, pool);
  const std::vector<float> alone = a.Run(100, pool), reversed = backwards.Run(100, pool);
  EXPECT_EQ(FirstDifference(together, alone), -1);
  EXPECT_EQ(FirstDifference(other, b.Run(9, pool)), -1);
  const size_t row = a.shape.heads * a.shape.layout.d_v;
  for (size_t t = 0; t < 100; ++t) {
    ASSERT_EQ(FirstDifference(&reversed[(99 - t) * row], &alone[t * row], row), -1) << t;
  }
}

// A NaN in one head's query reaches every head of its token and no other token; an infinite score makes NaN as well.
TEST(TalkingHeads, NaNAndInfinityReachAllHeadsOfTheTokenOnly) {
  SerialFor serial;
  for (const float bad : {kNaN, std::numeric_limits<float>::infinity()}) {
    Case c(StorageType::kF32, 4, 2, 16, 80, 0);
    const std::vector<float> clean = c.Run(80, serial);
    c.q[70 * c.q_stride() + 2 * 16 + 5] = bad;
    const std::vector<float> found = c.Run(80, serial);
    for (size_t i = 0; i < found.size(); ++i) {
      if (i / 64 == 70) {
        ASSERT_TRUE(std::isnan(found[i])) << i;
      } else {
        ASSERT_EQ(found[i], clean[i]) << i;
      }
    }
  }
}

// With identities J = L and U = W exactly; what differs from Attention is when it divides: W v summed, against p v
// summed, rescaled at each block and divided. Each sum of n terms with weights that add up to 1 and |v| <= 1 errs by at
// most n u, a block's factor by (3.2 + 2 S) u, S = 2 d scale, the divisions by one u each.
TEST(TalkingHeads, IdentityMixesAreAttention) {
  SerialFor serial;
  const size_t heads = 6, d = 16, n = 200;
  Case c(StorageType::kF32, heads, 2, d, n, 90);
  for (size_t i = 0; i < heads * heads; ++i) c.pre[i] = c.post[i] = i / heads == i % heads ? 1.0f : 0.0f;
  const std::vector<float> found = c.Run(n, serial);
  std::vector<float> want(found.size());
  std::vector<AttentionRow> rows[2];
  std::vector<AttentionGroup> groups;
  for (size_t g = 0; g < 2; ++g) {
    for (size_t t = 0; t < n; ++t) {
      for (size_t h = g * 3; h < g * 3 + 3; ++h) {
        rows[g].push_back({.q = &c.q[t * c.q_stride() + h * d],
                           .out = &want[(t * heads + h) * d],
                           .first = FirstVisible(static_cast<uint32_t>(t), 90),
                           .last = static_cast<uint32_t>(t)});
      }
    }
    groups.push_back(
        {.blocks = c.table.data(), .head_offset = Case::kOffset + g * c.shape.layout.bytes(), .rows = rows[g]});
  }
  Attention(c.shape.layout, c.shape.scale, groups, serial);
  const double s = 2 * static_cast<double>(d) * c.shape.scale;
  const double bound = (2 * 90 + 3 * (3.2 + 2 * s) + 3) * 0x1p-24;
  for (size_t i = 0; i < found.size(); ++i) ASSERT_LE(std::fabs(found[i] - want[i]), bound) << i;
}

TEST(TalkingHeads, AWindowOfAllTokensChangesNoBit) {
  SerialFor serial;
  const Case none(StorageType::kF32, 4, 4, 16, 130, 0), all(StorageType::kF32, 4, 4, 16, 130, 130);
  EXPECT_EQ(FirstDifference(none.Run(13, serial), all.Run(13, serial)), -1);
}

}  // namespace
}  // namespace iha::kernels
