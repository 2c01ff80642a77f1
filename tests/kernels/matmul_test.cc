#include "kernels/matmul/matmul.h"

#include <cmath>
#include <limits>

#include "kernels/support/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

const StorageType kTypes[] = {StorageType::kF32, StorageType::kBF16, StorageType::kF16};
const WeightForm kForms[] = {WeightForm::kF32, WeightForm::kBF16, WeightForm::kF16, WeightForm::kAffine};

// fp32 rows that have an affine form: each block of 16 of one of the rules, -0 and constant blocks among them.
std::vector<float> AffineValues(size_t n, size_t k, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<float> values;
  for (size_t row = 0; row < n; ++row) {
    for (size_t i = 0; i < k; i += kAffineBlock) {
      const float scale = (static_cast<float>(bits() % 2047) + 1) * (bits() % 2 == 0 ? 0x1p-15f : -0x1p-15f);
      const float minimum = (static_cast<float>(bits() % 2047)) * -0x1p-12f;
      const uint32_t rule = bits() % 3;
      for (size_t j = i; j < std::min(k, i + kAffineBlock); ++j) {
        const float q = static_cast<float>(bits() % 16);
        values.push_back(rule == 0 ? scale * (q - 8) : rule == 1 ? std::fabs(scale) * q + minimum : minimum);
      }
    }
  }
  return values;
}

// Row-major [n][k] storage of the given type. f16 takes every pattern but infinity and NaN, subnormals included.
std::vector<uint8_t> Source(StorageType type, size_t count, uint32_t seed) {
  std::vector<uint8_t> bytes(count * StorageBytes(type) + 1);
  const std::vector<float> values = RandomFloats(count, seed, 0.1f);
  std::mt19937 bits(seed);
  for (size_t i = 0; i < count; ++i) {
    if (type == StorageType::kF32) {
      std::memcpy(&bytes[i * 4], &values[i], 4);
    } else {
      uint16_t h = RoundToBF16(values[i]);
      if (type == StorageType::kF16) {
        h = static_cast<uint16_t>(bits());
        if ((h & 0x7C00) >= 0x4C00) h &= 0x83FF;  // keep |w| < 16: large ones become subnormal
      }
      std::memcpy(&bytes[i * 2], &h, 2);
    }
  }
  return bytes;
}

// The rule, written plainly, on the unpacked source.
std::vector<float> Chain(const std::vector<float>& a, size_t m, StorageType type, const std::vector<uint8_t>& source,
                         size_t n, size_t k) {
  std::vector<float> c(m * n);
  for (size_t row = 0; row < m; ++row) {
    for (size_t col = 0; col < n; ++col) {
      float acc = 0.0f;
      for (size_t i = 0; i < k; ++i) {
        float w = 0;
        if (type == StorageType::kF32) {
          std::memcpy(&w, &source[(col * k + i) * 4], 4);
        } else {
          uint16_t h;
          std::memcpy(&h, &source[(col * k + i) * 2], 2);
          w = type == StorageType::kBF16 ? WidenBF16(h) : WidenF16(h);
        }
        acc = std::fma(a[row * k + i], w, acc);
      }
      c[row * n + col] = acc;
    }
  }
  return c;
}

struct Shape {
  size_t k, n;
};

// A matrix in this form, and what its products must be.
struct Case {
  PackedWeights weights;
  std::vector<float> want;
};
Case CaseOf(WeightForm form, const std::vector<float>& a, size_t m, size_t n, size_t k) {
  if (form == WeightForm::kAffine) {
    const std::vector<float> values = AffineValues(n, k, 1);
    Case c{PackedWeights(form, n, k), {}};
    EXPECT_TRUE(c.weights.PackAffineRows(0, values.data(), n, k));
    std::vector<uint8_t> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    c.want = Chain(a, m, StorageType::kF32, bytes, n, k);
    return c;
  }
  const StorageType type = kTypes[static_cast<size_t>(form)];
  const std::vector<uint8_t> source = Source(type, n * k, 1);
  return {Pack(type, source.data(), n, k), Chain(a, m, type, source, n, k)};
}

TEST(Matmul, EveryPathGivesTheChainsBits) {
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(2), ThreadPool(3), ThreadPool(4)};
  constexpr size_t kRows = 200;
  for (const Shape shape :
       {Shape{576, 112}, {64, 200}, {65, 250}, {353, 37}, {1, 1}, {2, 15}, {7, 17}, {129, 16}, {2101, 33}, {24, 523}}) {
    const std::vector<float> a = RandomFloats(kRows * shape.k, 2);
    for (const WeightForm form : kForms) {
      const auto [w, want] = CaseOf(form, a, kRows, shape.n, shape.k);
      ForEachTarget([&](const SimdTarget& target) {
        for (const size_t m : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 23, 24, 31, 63, 64, 97, 200}) {
          if (!target.vectorized && m > 8) continue;
          for (ThreadPool& pool : pools) {
            // The last rows of A, so that a row's index in the batch differs between runs.
            const size_t offset = kRows - m;
            std::vector<float> c(m * shape.n, std::numeric_limits<float>::quiet_NaN());
            Gemm(a.data() + offset * shape.k, shape.k, m, w, c.data(), shape.n, pool);
            ASSERT_EQ(FirstDifference(c.data(), want.data() + offset * shape.n, c.size()), -1)
                << "k " << shape.k << " n " << shape.n << " m " << m << " form " << static_cast<int>(form)
                << " threads " << pool.Threads();
          }
        }
      });
    }
  }
}

TEST(Matmul, TuningChangesNoBit) {
  ThreadPool pool(2);
  const size_t k = 577, n = 120, rows = 101;
  const std::vector<float> a = RandomFloats(rows * k, 2);
  for (const WeightForm form : kForms) {
    const auto [w, want] = CaseOf(form, a, rows, n, k);
    ForEachTarget([&](const SimdTarget& target) {
      if (!target.vectorized) return;
      for (const size_t m : {1, 4, 6, 7, 11, 101}) {
        for (const int max_rows : {0, 1, 2, 3, 4, 5, 6}) {
          for (const size_t k_block : {0, 2, 32, 192}) {
            for (const size_t row_block : {0, 24}) {
              GemmTuning tuning;
              tuning.max_rows = max_rows;
              tuning.k_block = k_block;
              tuning.row_block = row_block;
              std::vector<float> c(m * n, std::numeric_limits<float>::quiet_NaN());
              Gemm(a.data(), k, m, w, c.data(), n, pool, tuning);
              ASSERT_EQ(FirstDifference(c.data(), want.data(), c.size()), -1)
                  << "m " << m << " max_rows " << max_rows << " k_block " << k_block << " row_block " << row_block
                  << " form " << static_cast<int>(form);
            }
          }
        }
      }
    });
  }
}

TEST(Matmul, NothingIsWrittenOutsideTheResult) {
  SerialFor serial;
  const size_t k = 40, n = 21, lda = 43, ldc = 30, rows = 9;
  const std::vector<float> a = RandomFloats(rows * lda, 3), weights = RandomFloats(n * k, 4);
  const PackedWeights w = Pack(StorageType::kF32, weights.data(), n, k);
  ForEachTarget([&](const SimdTarget&) {
    for (const size_t m : {0ul, 1ul, 9ul}) {
      std::vector<float> c(rows * ldc, 7.0f);
      Gemm(a.data(), lda, m, w, c.data(), ldc, serial);
      for (size_t row = 0; row < rows; ++row) {
        for (size_t col = row < m ? n : 0; col < ldc; ++col) ASSERT_EQ(c[row * ldc + col], 7.0f) << row << " " << col;
      }
    }
  });
}

TEST(Matmul, EmptyReductionIsZero) {
  SerialFor serial;
  const PackedWeights w(StorageType::kF32, 5, 0);
  std::vector<float> c(10, 7.0f);
  const float a = 0;
  Gemm(&a, 0, 2, w, c.data(), 5, serial);
  for (const float x : c) EXPECT_EQ(std::bit_cast<uint32_t>(x), 0u);
}

// A row of NaN or infinity must not touch its neighbours, and -0 results must survive the padding of an odd K.
TEST(Matmul, RowsAreIsolatedAndMinusZeroSurvives) {
  SerialFor serial;
  const size_t k = 3, n = 4, rows = 6;
  const float tiny = 0x1p-100f;
  const std::vector<uint16_t> weights(n * k, RoundToBF16(tiny));
  const PackedWeights w = Pack(StorageType::kBF16, weights.data(), n, k);
  std::vector<float> a(rows * k, -tiny);
  for (size_t i = 0; i < k; ++i) a[2 * k + i] = std::numeric_limits<float>::quiet_NaN();
  ForEachTarget([&](const SimdTarget&) {
    std::vector<float> c(rows * n);
    Gemm(a.data(), k, rows, w, c.data(), n, serial);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t col = 0; col < n; ++col) {
        if (row == 2) {
          EXPECT_TRUE(std::isnan(c[row * n + col]));
        } else {  // fma(-2^-100, 2^-100, 0) rounds to -0
          EXPECT_EQ(std::bit_cast<uint32_t>(c[row * n + col]), 0x80000000u) << row << " " << col;
        }
      }
    }
  });
}

TEST(Matmul, RowsPackedFromSeveralTensors) {
  SerialFor serial;
  const size_t k = 33, n1 = 21, n2 = 30;
  for (const StorageType type : kTypes) {
    const std::vector<uint8_t> whole = Source(type, (n1 + n2) * k, 9);
    const PackedWeights one = Pack(type, whole.data(), n1 + n2, k);
    PackedWeights two(type, n1 + n2, k);
    two.PackRows(n1, whole.data() + n1 * k * StorageBytes(type), n2, k);
    two.PackRows(0, whole.data(), n1, k);
    ASSERT_EQ(one.bytes(), two.bytes());
    EXPECT_EQ(std::memcmp(one.panel(0), two.panel(0), one.bytes()), 0);
  }
}

// Every row count about the tiles, odd K and N, rows of several tensors; what At says is what the products use.
TEST(Matmul, AffineBlocksGiveTheBitsOfF32) {
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(3)};
  for (const Shape shape : {Shape{16, 16}, {577, 53}, {47, 130}, {5, 3}}) {
    const std::vector<float> values = AffineValues(shape.n, shape.k, 3), a = RandomFloats(40 * shape.k, 4);
    const PackedWeights plain = Pack(StorageType::kF32, values.data(), shape.n, shape.k);
    PackedWeights affine(WeightForm::kAffine, shape.n, shape.k);
    const size_t first = shape.n / 3;
    ASSERT_TRUE(affine.PackAffineRows(first, values.data() + first * shape.k, shape.n - first, shape.k));
    ASSERT_TRUE(affine.PackAffineRows(0, values.data(), first, shape.k));
    for (size_t n = 0; n < shape.n; ++n) {
      for (size_t k = 0; k < shape.k; ++k) {
        ASSERT_EQ(std::bit_cast<uint32_t>(affine.At(n, k)), std::bit_cast<uint32_t>(values[n * shape.k + k]));
      }
    }
    if (shape.k % kAffineBlock == 0) {
      EXPECT_EQ(affine.bytes() * 8, plain.bytes() * 3);
    }
    ForEachTarget([&](const SimdTarget&) {
      for (size_t m = 1; m <= 40; ++m) {
        for (ThreadPool& pool : pools) {
          std::vector<float> want(m * shape.n), found(m * shape.n, std::numeric_limits<float>::quiet_NaN());
          Gemm(a.data(), shape.k, m, plain, want.data(), shape.n, pool);
          Gemm(a.data(), shape.k, m, affine, found.data(), shape.n, pool);
          ASSERT_EQ(FirstDifference(found.data(), want.data(), found.size()), -1)
              << "k " << shape.k << " n " << shape.n << " m " << m << " threads " << pool.Threads();
        }
      }
    });
  }
}

TEST(Matmul, WhatHasNoAffineFormIsNotPacked) {
  std::vector<float> values = AffineValues(20, 40, 5);
  PackedWeights affine(WeightForm::kAffine, 20, 40);
  EXPECT_TRUE(affine.PackAffineRows(0, values.data(), 20, 40));
  values[19 * 40 + 33] = std::nextafter(values[19 * 40 + 33], 1e9f);  // in the last, short block
  values[19 * 40 + 35] = 0.1f;
  EXPECT_FALSE(affine.PackAffineRows(0, values.data(), 20, 40));
  EXPECT_TRUE(affine.PackAffineRows(0, values.data(), 19, 40));
}

TEST(Matmul, ErrorBoundAgainstDouble) {
  SerialFor serial;
  const size_t k = 4096, n = 32, m = 8;
  const std::vector<float> a = RandomFloats(m * k, 5), weights = RandomFloats(n * k, 6);
  const PackedWeights w = Pack(StorageType::kF32, weights.data(), n, k);
  std::vector<float> c(m * n);
  std::vector<double> want(m * n);
  Gemm(a.data(), k, m, w, c.data(), n, serial);
  GemmRef(a.data(), k, m, w, want.data(), n);
  for (size_t row = 0; row < m; ++row) {
    for (size_t col = 0; col < n; ++col) {
      // A chain of k fmas: |error| <= k u / (1 - k u) * sum |a w|, u = 2^-24 (Higham, Accuracy and Stability, 3.1).
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += std::fabs(static_cast<double>(a[row * k + i]) * w.At(col, i));
      const double u = 0x1p-24, gamma = static_cast<double>(k) * u / (1 - static_cast<double>(k) * u);
      EXPECT_LE(std::fabs(c[row * n + col] - want[row * n + col]), gamma * sum);
    }
  }
}

TEST(SmallFloat, WideningIsExactAndNarrowingRoundsToEven) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const auto bits = static_cast<uint16_t>(h);
    const float bf = WidenBF16(bits);
    if (bf == bf) {
      ASSERT_EQ(RoundToBF16(bf), bits);
    } else {
      ASSERT_TRUE(std::isnan(WidenBF16(RoundToBF16(bf))));
    }
    // f16 by its definition, in double.
    const int exponent = (h >> 10) & 31;
    const double mantissa = h & 1023, sign = h & 0x8000 ? -1 : 1;
    const float f = WidenF16(bits);
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(f), mantissa != 0);
    } else {
      const double want = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      ASSERT_EQ(static_cast<double>(f), sign * want);
      ASSERT_EQ(std::signbit(f), sign < 0);
    }
  }
  EXPECT_EQ(RoundToBF16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // tie to even
  EXPECT_EQ(RoundToBF16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_EQ(RoundToBF16(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_EQ(RoundToBF16(std::numeric_limits<float>::max()), 0x7F80);  // rounds up to infinity
}

}  // namespace
}  // namespace iha::kernels
