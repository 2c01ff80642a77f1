#include "kernels/iha_mix_rope/iha_mix_rope.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/support/aligned.h"
#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/support/worst_error.h"

namespace iha::kernels {
namespace {

struct Case {
  size_t heads, pseudo, d;
  StorageType type;
  RopePairing pairing;
  bool token_positions;
  bool post_mix;
};

// Every axis at least once, P = H = 20 and P = 1 included; 64 is no multiple of 3, 5 and 20.
const Case kCases[] = {
    {4, 2, 8, StorageType::kF32, RopePairing::kHalf, false, false},
    {4, 3, 8, StorageType::kBF16, RopePairing::kInterleaved, false, false},
    {3, 1, 64, StorageType::kF32, RopePairing::kHalf, false, false},
    {20, 20, 16, StorageType::kF32, RopePairing::kHalf, false, false},
    {20, 20, 16, StorageType::kBF16, RopePairing::kHalf, true, false},
    {5, 4, 80, StorageType::kBF16, RopePairing::kHalf, false, false},
    {2, 5, 12, StorageType::kF32, RopePairing::kInterleaved, true, false},
    {4, 2, 10, StorageType::kF32, RopePairing::kInterleaved, false, true},
    {3, 3, 32, StorageType::kBF16, RopePairing::kHalf, true, true},
    {7, 4, 64, StorageType::kF32, RopePairing::kHalf, false, true},
};

float Round(StorageType type, float x) { return type == StorageType::kF32 ? x : WidenBF16(RoundToBF16(x)); }

void RotateRule(RopePairing pairing, float* x, size_t half, const float* cos, const float* sin) {
  for (size_t i = 0; i < half; ++i) {
    const size_t iu = pairing == RopePairing::kHalf ? i : 2 * i,
                 iv = pairing == RopePairing::kHalf ? i + half : 2 * i + 1;
    const float u = x[iu], v = x[iv];
    x[iu] = std::fma(u, cos[i], -(v * sin[i]));
    x[iv] = std::fma(v, cos[i], u * sin[i]);
  }
}

// Tokens of one sequence from position `start` on: projections, tables, and NUM-9 written plainly.
class Tokens {
 public:
  Tokens(const Case& c, size_t count, uint32_t start)
      : c_(c), shape_{c.heads, c.pseudo, c.d}, count_(count), frequency_(c.d / 2) {
    const size_t rows = (start + count) * c.pseudo, size = c.heads * c.heads * c.pseudo;
    alpha_k_ = RandomFloats(size, 1);
    alpha_v_ = RandomFloats(size, 2);
    norm_ = RandomFloats(c.d, 3);
    k_ = RandomFloats(count * c.heads * c.d, 4);
    v_ = RandomFloats(count * c.heads * c.d, 5);
    RopeFrequencies(10000.0, c.d, frequency_.data());
    cos_.resize(rows * c.d / 2);
    sin_.resize(rows * c.d / 2);
    FillRopeTable(frequency_.data(), c.d / 2, 0, rows, 1.0, cos_.data(), sin_.data());
    for (uint32_t t = 0; t < count; ++t) {
      positions_.push_back(start + t);
      rope_rows_.push_back((start + t) * (c.token_positions ? 1 : static_cast<uint32_t>(c.pseudo)));
    }
    // Base rows: what NUM-9 calls k^ (post_mix: the plain projections, not rounded) and r(v).
    base_k_ = k_;
    base_v_ = v_;
    SerialFor serial;
    if (!c.post_mix) {
      const RopeShape rope{count, c.heads, c.heads * c.d, c.d, c.d, c.pairing};
      Rope(rope, base_k_.data(), rope_rows_.data(), cos_.data(), sin_.data(), serial);
      for (float& x : base_k_) x = Round(c.type, x);
    }
    for (float& x : base_v_) x = Round(c.type, x);
  }

  const IhaShape& shape() const { return shape_; }
  KvLayout layout() const { return {c_.type, c_.d, c_.d}; }
  const std::vector<uint32_t>& positions() const { return positions_; }
  size_t count() const { return count_; }

  IhaMix Keys(IhaSource source) const {
    IhaMix mix{.alpha = alpha_k_.data(), .source = source, .round = c_.type, .pairing = c_.pairing};
    if (c_.post_mix) {
      mix.norm = norm_.data();
      mix.norm_eps = 1e-5f;
      mix.first_row = rope_rows_.data();
      mix.row_step = c_.token_positions ? 0 : 1;
    }
    if (c_.post_mix || !c_.token_positions) {
      mix.cos = cos_.data();
      mix.sin = sin_.data();
    }
    return mix;
  }
  IhaMix Values(IhaSource source) const { return {.alpha = alpha_v_.data(), .source = source, .round = c_.type}; }
  IhaSource Base(const std::vector<float>& rows) const {
    return {rows.data(), StorageType::kF32, c_.heads * c_.d, c_.d};
  }
  IhaMix Keys() const { return Keys(Base(base_k_)); }
  IhaMix Values() const { return Values(Base(base_v_)); }
  const std::vector<float>& base_k() const { return base_k_; }
  const std::vector<float>& base_v() const { return base_v_; }

  // NUM-9 for one element row.
  std::vector<float> Rule(bool values, size_t t, size_t h, size_t j) const {
    const std::vector<float>& base = values ? base_v_ : base_k_;
    const std::vector<float>& alpha = values ? alpha_v_ : alpha_k_;
    std::vector<float> y(c_.d, 0.0f);
    for (size_t m = 0; m < c_.heads; ++m) {
      for (size_t i = 0; i < c_.d; ++i) {
        y[i] = std::fma(alpha[(h * c_.pseudo + j) * c_.heads + m], base[(t * c_.heads + m) * c_.d + i], y[i]);
      }
    }
    if (values || !c_.post_mix) {
      for (float& x : y) x = Round(c_.type, x);
      if (values || c_.token_positions || j == 0) return y;
    }
    size_t row = j;
    if (c_.post_mix) {
      SerialFor serial;
      RmsNorm({.rows = 1, .n = c_.d, .ldx = c_.d, .ldy = c_.d, .eps = 1e-5f}, y.data(), norm_.data(), y.data(), serial);
      row = rope_rows_[t] + (c_.token_positions ? 0 : j);
    }
    RotateRule(c_.pairing, y.data(), c_.d / 2, &cos_[row * c_.d / 2], &sin_[row * c_.d / 2]);
    for (float& x : y) x = Round(c_.type, x);
    return y;
  }

  // The same in double from the unrotated, unrounded projections.
  std::vector<double> Exact(bool values) const {
    IhaMixRefArgs args{.layout = IhaAlphaLayout::kTargetPseudoSource,
                       .alpha = (values ? alpha_v_ : alpha_k_).data(),
                       .x = (values ? v_ : k_).data()};
    if (!values) {
      args.frequency = frequency_.data();
      args.first_position = rope_rows_.data();
      args.step = c_.token_positions ? 0 : 1;
      args.pairing = c_.pairing;
      if (c_.post_mix) {
        args.norm = norm_.data();
        args.norm_eps = 1e-5f;
      }
    }
    std::vector<double> y(count_ * c_.heads * c_.pseudo * c_.d);
    IhaMixRef(shape_, args, count_, y.data());
    return y;
  }

 private:
  Case c_;
  IhaShape shape_;
  size_t count_;
  std::vector<double> frequency_;
  std::vector<float> alpha_k_, alpha_v_, norm_, k_, v_, base_k_, base_v_, cos_, sin_;
  std::vector<uint32_t> positions_, rope_rows_;
};

std::vector<float> RuleRows(const Tokens& tokens, bool values) {
  std::vector<float> want;
  for (size_t t = 0; t < tokens.count(); ++t) {
    for (size_t h = 0; h < tokens.shape().heads; ++h) {
      for (size_t j = 0; j < tokens.shape().pseudo; ++j) {
        const std::vector<float> row = tokens.Rule(values, t, h, j);
        want.insert(want.end(), row.begin(), row.end());
      }
    }
  }
  return want;
}

TEST(IhaMix, AlphaLayoutsNameTheAxes) {
  const size_t heads = 3, pseudo = 2;
  std::vector<float> stp(heads * heads * pseudo), tps(stp.size());
  for (size_t m = 0; m < heads; ++m) {
    for (size_t h = 0; h < heads; ++h) {
      for (size_t j = 0; j < pseudo; ++j) {
        const float value = static_cast<float>(100 * m + 10 * h + j);
        stp[(m * heads + h) * pseudo + j] = value;
        tps[(h * pseudo + j) * heads + m] = value;
      }
    }
  }
  std::vector<float> packed(stp.size());
  IhaPackAlpha(IhaAlphaLayout::kSourceTargetPseudo, heads, pseudo, stp.data(), packed.data());
  EXPECT_EQ(packed, tps);
  std::fill(packed.begin(), packed.end(), 0.0f);
  IhaPackAlpha(IhaAlphaLayout::kTargetPseudoSource, heads, pseudo, tps.data(), packed.data());
  EXPECT_EQ(packed, tps);
}

TEST(IhaMix, RowsFollowTheRuleOnEveryTargetAndThread) {
  ThreadPool one(1), three(3);
  for (const Case& c : kCases) {
    const Tokens tokens(c, 9, 61);
    for (const bool values : {false, true}) {
      const std::vector<float> want = RuleRows(tokens, values);
      ForEachTarget([&](const SimdTarget&) {
        for (ThreadPool* pool : {&one, &three}) {
          std::vector<float> got(want.size(), std::numeric_limits<float>::quiet_NaN());
          IhaMixRows(tokens.shape(), values ? tokens.Values() : tokens.Keys(), tokens.count(), got.data(), *pool);
          ASSERT_EQ(FirstDifference(got, want), -1) << "H " << c.heads << " P " << c.pseudo << " d " << c.d;
        }
      });
    }
  }
}

// The cache of a sequence: mixed blocks appended chunk by chunk, and base rows mixed block by block, hold the same
// bits.
TEST(IhaMix, MixedCacheAndBlocksMadeFromBaseRowsAgree) {
  ThreadPool one(1), three(3);
  for (const Case& c : kCases) {
    const size_t count = 150;
    const Tokens tokens(c, count, 0);
    const KvLayout layout = tokens.layout();
    const std::vector<float> keys = RuleRows(tokens, false), values = RuleRows(tokens, true);
    const size_t slice = c.heads * c.pseudo * layout.bytes(), blocks = (count + 63) / 64;
    // Base rows as a cache keeps them: [block][K, V][token][heads][d].
    const size_t part = kKeyBlock * c.heads * c.d * StorageBytes(c.type);
    auto base = MakeAligned<uint8_t>(blocks * 2 * part);
    std::memset(base.get(), 0xFF, blocks * 2 * part);
    const size_t row = c.heads * c.d, row_bytes = row * StorageBytes(c.type);
    for (size_t t = 0; t < count; ++t) {
      uint8_t* to = base.get() + t / 64 * 2 * part + t % 64 * row_bytes;
      IhaStoreBase(tokens.shape(), &tokens.base_k()[t * row], c.d, c.type, to);
      IhaStoreBase(tokens.shape(), &tokens.base_v()[t * row], c.d, c.type, to + part);
    }
    ForEachTarget([&](const SimdTarget& target) {
      for (const size_t chunk : {150, 7, 1}) {
        if (!target.vectorized && chunk != 7) continue;
        auto cache = MakeAligned<uint8_t>(blocks * slice);
        std::memset(cache.get(), 0xFF, blocks * slice);
        for (size_t t0 = 0; t0 < count; t0 += chunk) {
          const size_t n = std::min(chunk, count - t0);
          std::vector<uint8_t*> slices;
          for (size_t t = t0; t < t0 + n; ++t) slices.push_back(cache.get() + t / 64 * slice);
          IhaMix k = tokens.Keys(), v = tokens.Values();
          k.source.x = &tokens.base_k()[t0 * row];
          v.source.x = &tokens.base_v()[t0 * row];
          if (k.first_row != nullptr) k.first_row += t0;
          IhaMixToCache(tokens.shape(), k, v, layout, n, slices.data(), &tokens.positions()[t0],
                        chunk == 7 ? three : one);
        }
        auto made = MakeAligned<uint8_t>(layout.bytes());
        for (size_t h = 0; h < c.heads; ++h) {
          for (size_t b = 0; b * kKeyBlock < count * c.pseudo; ++b) {
            const size_t slots = std::min(kKeyBlock, count * c.pseudo - b * kKeyBlock);
            const uint8_t* block = cache.get() + b / c.pseudo * slice + (h * c.pseudo + b % c.pseudo) * layout.bytes();
            std::memset(made.get(), 0xFF, layout.bytes());
            if (!c.post_mix) {
              const uint8_t* from = base.get() + b / c.pseudo * 2 * part;
              IhaMixBlock(tokens.shape(), tokens.Keys({from, c.type, row, c.d}),
                          tokens.Values({from + part, c.type, row, c.d}), layout, h, b % c.pseudo, slots, made.get());
            }
            for (size_t s = 0; s < slots; ++s) {
              const size_t virtual_index = b * kKeyBlock + s, t = virtual_index / c.pseudo,
                           j = virtual_index % c.pseudo;
              const size_t at = ((t * c.heads + h) * c.pseudo + j) * c.d;
              for (size_t i = 0; i < c.d; ++i) {
                ASSERT_EQ(KeyAt(layout, block, s, i), keys[at + i]) << "t " << t << " h " << h << " j " << j;
                ASSERT_EQ(ValueAt(layout, block, s, i), values[at + i]) << "t " << t << " h " << h << " j " << j;
                if (c.post_mix) continue;
                ASSERT_EQ(KeyAt(layout, made.get(), s, i), keys[at + i]) << "t " << t << " h " << h << " j " << j;
                ASSERT_EQ(ValueAt(layout, made.get(), s, i), values[at + i]) << "t " << t << " h " << h << " j " << j;
              }
            }
          }
        }
      }
    });
  }
}

// u = 2^-24, |x|, |alpha| <= 1. A base row: table entries off by 2^-25, two products and a sum: 4 u per element of
// magnitude at most sqrt 2. The chain over H of values below sqrt 2: H sqrt 2 (4 u + H u). Rot_j adds 6 u of a pair
// whose norm is at most 2 H. Norm (fp32 cases of post_mix): the mixed rows are not small (random, H >= 4), so the
// relative error of a row stays below that of its largest element times d. A cache in bf16 rounds three times by 2^-9
// each, of values below 2 H.
TEST(IhaMix, ErrorBoundAgainstTheEquations) {
  SerialFor serial;
  for (const Case& c : kCases) {
    const Tokens tokens(c, 9, 1000);
    for (const bool values : {false, true}) {
      const std::vector<double> exact = tokens.Exact(values);
      std::vector<float> got(exact.size());
      IhaMixRows(tokens.shape(), values ? tokens.Values() : tokens.Keys(), tokens.count(), got.data(), serial);
      const double u = 0x1p-24, heads = static_cast<double>(c.heads);
      double bound = 1.5 * heads * (4 + heads) * u + 2 * heads * 6 * u;
      if (c.type == StorageType::kBF16) bound += 3 * 2 * heads * 0x1p-9;
      if (c.post_mix && !values) {
        // y r: r depends on the row's mean square, here above 1/16 (checked by the bound holding for every row); |y| r
        // <= sqrt d. Error of y divided by the root mean square, twice (through y and through r), plus the kernel's.
        bound = std::sqrt(static_cast<double>(c.d)) * (2 * 4 * 1.5 * heads * heads * u + 40 * u);
        if (c.type == StorageType::kBF16) bound += std::sqrt(static_cast<double>(c.d)) * 0x1p-8;
      }
      iha::testing::WorstError worst;
      for (size_t i = 0; i < exact.size(); ++i) worst.Add(std::fabs(got[i] - exact[i]));
      EXPECT_LE(worst.value(), bound) << "H " << c.heads << " P " << c.pseudo << " d " << c.d << " values " << values;
      EXPECT_GT(worst.value(), 0.0);
    }
  }
}

// Mixing and RoPE commute across heads: what lets a cache keep base keys. In double, to rounding.
TEST(IhaMix, RotationOfTheMixIsTheMixOfRotations) {
  const IhaShape shape{5, 3, 16};
  const std::vector<float> x = RandomFloats(5 * 16, 1), alpha = RandomFloats(5 * 5 * 3, 2);
  std::vector<double> frequency(8);
  RopeFrequencies(10000.0, 16, frequency.data());
  const uint32_t position = 37 * 3;
  for (const RopePairing pairing : {RopePairing::kHalf, RopePairing::kInterleaved}) {
    IhaMixRefArgs args{.alpha = alpha.data(),
                       .x = x.data(),
                       .frequency = frequency.data(),
                       .first_position = &position,
                       .step = 1,
                       .pairing = pairing};
    std::vector<double> direct(5 * 3 * 16);
    IhaMixRef(shape, args, 1, direct.data());
    // Each head rotated to n P by the identity mix, then mixed and rotated by j.
    const float one = 1.0f;
    const uint32_t zero = 0;
    std::vector<float> rotated(5 * 16);
    for (size_t m = 0; m < 5; ++m) {
      std::vector<double> row(16);
      IhaMixRefArgs single = args;
      single.alpha = &one;
      single.x = &x[m * 16];
      IhaMixRef({1, 1, 16}, single, 1, row.data());
      std::copy(row.begin(), row.end(), &rotated[m * 16]);
    }
    args.x = rotated.data();
    args.first_position = &zero;
    std::vector<double> commuted(direct.size());
    IhaMixRef(shape, args, 1, commuted.data());
    // `rotated` is fp32: 2^-24 of a value below sqrt 2, five of them.
    for (size_t i = 0; i < direct.size(); ++i) EXPECT_NEAR(commuted[i], direct[i], 5 * 1.5 * 0x1p-24);
  }
}

TEST(IhaMix, IdentityOfOnePseudoHeadChangesNoBit) {
  SerialFor serial;
  const IhaShape shape{4, 1, 24};
  const std::vector<float> x = RandomFloats(11 * 4 * 24, 1);
  std::vector<float> alpha(16, 0.0f), y(x.size());
  for (size_t h = 0; h < 4; ++h) alpha[h * 4 + h] = 1.0f;
  const std::vector<float> cos(12, 0.25f), sin(12, 0.5f);  // row 0 of a rotation by j: never used
  const IhaMix mix{
      .alpha = alpha.data(), .source = {x.data(), StorageType::kF32, 4 * 24, 24}, .cos = cos.data(), .sin = sin.data()};
  ForEachTarget([&](const SimdTarget&) {
    IhaMixRows(shape, mix, 11, y.data(), serial);
    EXPECT_EQ(FirstDifference(y, x), -1);
  });
}

// Attention over blocks that are made when they are needed: the bits of attention over the same blocks in memory.
TEST(IhaMix, AttentionOverMadeBlocksGivesTheSameBits) {
  class Maker final : public KeyBlockMaker {
   public:
    Maker(const std::vector<const void*>& table, size_t bytes) : table_(table), bytes_(bytes) {}
    void Make(size_t b, size_t slots, void* block) const override {
      EXPECT_LE(slots, kKeyBlock);
      std::memcpy(block, table_[b], bytes_);
    }

   private:
    const std::vector<const void*>& table_;
    size_t bytes_;
  };
  ThreadPool one(1), three(3);
  const size_t d = 32, keys = 500;
  for (const StorageType type : {StorageType::kF32, StorageType::kBF16}) {
    const KvLayout layout{type, d, d};
    const std::vector<float> q = RandomFloats(keys * d, 1, 3), k = RandomFloats(keys * d, 2, 3),
                             v = RandomFloats(keys * d, 3);
    auto memory = MakeAligned<char>(8 * layout.bytes());
    std::vector<const void*> table;
    for (size_t b = 0; b < 8; ++b) table.push_back(memory.get() + b * layout.bytes());
    for (size_t t = 0; t < keys; ++t) {
      AppendKv(layout, memory.get() + t / 64 * layout.bytes(), t % 64, &k[t * d], &v[t * d]);
    }
    const Maker maker(table, layout.bytes());
    ForEachTarget([&](const SimdTarget&) {
      for (const uint32_t window : {0u, 70u}) {
        std::vector<float> want(keys * d), got(keys * d);
        const auto rows = [&](std::vector<float>& out) {
          std::vector<AttentionRow> result;
          for (uint32_t t = 0; t < keys; ++t) result.push_back({&q[t * d], &out[t * d], FirstVisible(t, window), t});
          return result;
        };
        const auto plain = rows(want), made = rows(got);
        const AttentionGroup a{table.data(), 0, plain}, b{nullptr, 0, made, &maker};
        Attention(layout, 0.2f, {&a, 1}, one);
        for (ThreadPool* pool : {&one, &three}) {
          std::fill(got.begin(), got.end(), 0.0f);
          Attention(layout, 0.2f, {&b, 1}, *pool);
          EXPECT_EQ(FirstDifference(got, want), -1) << "window " << window;
        }
      }
    });
  }
}

}  // namespace
}  // namespace iha::kernels
