#include "kernels/matmul/affine_blocks.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kernels/support/small_float.h"
#include "tests/kernels/kernel_test_util.h"

namespace iha::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What the blocks say, as the kernels compute it; empty if there are none.
std::vector<float> Again(const std::vector<float>& values, AffineHints& hints) {
  std::vector<AffineBlock> blocks((values.size() + kAffineBlock - 1) / kAffineBlock);
  if (!FindAffineBlocks(values.data(), values.size(), hints, blocks.data())) return {};
  std::vector<float> again;
  for (size_t i = 0; i < values.size(); ++i) {
    const AffineBlock& block = blocks[i / kAffineBlock];
    again.push_back(std::fma(block.scale, static_cast<float>(block.q[i % kAffineBlock]), block.offset));
  }
  return again;
}

bool Found(const std::vector<float>& values) {
  AffineHints hints;
  const std::vector<float> again = Again(values, hints);
  if (again.empty()) return false;
  EXPECT_EQ(std::memcmp(again.data(), values.data(), values.size() * sizeof(float)), 0);
  return true;
}

// A finite fp16 of about 2^exponent.
float Half(std::mt19937& bits, int exponent) {
  const float magnitude = std::ldexp(static_cast<float>(1024 + bits() % 1024), exponent - 10);
  return bits() % 2 == 0 ? magnitude : -magnitude;
}
int Below(std::mt19937& bits, int n) { return static_cast<int>(bits() % static_cast<uint32_t>(n)); }

// The 16 values of a group: one of the rules of the file types, `s` and `m` its scale and minimum.
struct Rule {
  const char* name;
  std::function<std::vector<float>(std::mt19937&)> group;
};
std::vector<float> Times(float s, std::mt19937& bits, int levels, int zero) {
  std::vector<float> values;
  for (size_t i = 0; i < kAffineBlock; ++i) values.push_back(s * static_cast<float>(Below(bits, levels) - zero));
  return values;
}
std::vector<float> Plus(float s, float m, std::mt19937& bits, int levels) {
  std::vector<float> values = Times(s, bits, levels, 0);
  for (float& value : values) value += m;
  return values;
}
float KScale(std::mt19937& bits, int exponent) {
  return std::fabs(Half(bits, exponent)) * static_cast<float>(Below(bits, 64));
}
const Rule kRules[] = {
    {"Q4_0", [](std::mt19937& b) { return Times(Half(b, -5), b, 16, 8); }},
    {"Q4_1", [](std::mt19937& b) { return Plus(Half(b, -5), Half(b, -3), b, 16); }},
    {"Q5_0", [](std::mt19937& b) { return Times(Half(b, -6), b, 32, 16); }},
    {"Q5_1", [](std::mt19937& b) { return Plus(Half(b, -6), Half(b, -3), b, 32); }},
    {"Q8_0", [](std::mt19937& b) { return Times(std::fabs(Half(b, -9)), b, 256, 128); }},
    {"Q4_K", [](std::mt19937& b) { return Plus(KScale(b, -11), -KScale(b, -9), b, 16); }},
    {"Q5_K", [](std::mt19937& b) { return Plus(KScale(b, -12), -KScale(b, -9), b, 32); }},
    {"Q6_K", [](std::mt19937& b) { return Times(Half(b, -14) * static_cast<float>(Below(b, 256) - 128), b, 64, 32); }},
};

// Every group of every rule, whatever came before it, on every target.
TEST(AffineBlocks, EveryGroupOfAQuantisedFileIsFound) {
  ForEachTarget([&](const SimdTarget& target) {
    for (const Rule& rule : kRules) {
      std::mt19937 bits(7);
      AffineHints hints;
      for (int i = 0; i < (target.vectorized ? 20000 : 500); ++i) {
        const std::vector<float> values = rule.group(bits);
        const std::vector<float> again = Again(values, hints);
        ASSERT_EQ(again.size(), values.size()) << rule.name << " " << i;
        ASSERT_EQ(std::memcmp(again.data(), values.data(), kAffineBlock * sizeof(float)), 0) << rule.name << " " << i;
      }
    }
  });
}

// Sums that the file's rule had to round: an offset of far finer steps than the values'.
TEST(AffineBlocks, RoundedSumsAreFound) {
  std::mt19937 bits(8);
  AffineHints hints;
  int rounded = 0;
  for (int i = 0; i < 5000; ++i) {
    const float s = KScale(bits, -3) + 0x1p-4f, m = Half(bits, -14) * static_cast<float>(1 + Below(bits, 63));
    const std::vector<float> values = Plus(s, m, bits, 32);
    for (const float value : values) rounded += static_cast<double>(value) - m != static_cast<double>(value - m);
    const std::vector<float> again = Again(values, hints);
    ASSERT_EQ(again.size(), values.size()) << i;
    ASSERT_EQ(std::memcmp(again.data(), values.data(), kAffineBlock * sizeof(float)), 0) << i;
  }
  EXPECT_GT(rounded, 1000);
}

TEST(AffineBlocks, ZerosKeepTheirSigns) {
  std::vector<float> values(16);
  for (int i = 0; i < 16; ++i) values[i] = -0.25f * static_cast<float>(i - 8);  // Q4_0 of a negative scale: -0
  ASSERT_TRUE(std::signbit(values[8]));
  EXPECT_TRUE(Found(values));
  values[8] = 0.0f;
  EXPECT_TRUE(Found(values));
  values[9] = -0.0f;  // both zeros beside other values
  EXPECT_FALSE(Found(values));
  EXPECT_TRUE(Found(std::vector<float>(16, 0.0f)));
  EXPECT_TRUE(Found(std::vector<float>(16, -0.0f)));
  values.assign(16, 0.0f);
  values[3] = -0.0f;  // both, and nothing else: a scale of 0
  EXPECT_TRUE(Found(values));
}

TEST(AffineBlocks, ConstantAndShortBlocks) {
  EXPECT_TRUE(Found(std::vector<float>(16, 0.1f)));
  EXPECT_TRUE(Found(std::vector<float>(40, -std::numeric_limits<float>::max())));
  EXPECT_TRUE(Found({0.1f}));
  EXPECT_TRUE(Found({0.1f, 0.1f, 0.1f}));
  EXPECT_TRUE(Found({0.0f, 0.5f, -1.5f}));
  std::vector<float> values(17, 0.25f);
  values[16] = kInfinity;  // the last block, of one value
  EXPECT_FALSE(Found(values));
  AffineHints hints;
  EXPECT_TRUE(FindAffineBlocks(nullptr, 0, hints, nullptr));
}

TEST(AffineBlocks, OtherValuesAreRefused) {
  ForEachTarget([&](const SimdTarget& target) {
    for (uint32_t seed = 0; seed < (target.vectorized ? 2000u : 50u); ++seed) {
      EXPECT_FALSE(Found(RandomFloats(16, seed))) << seed;
      // One bit of one value.
      std::mt19937 bits(seed);
      std::vector<float> values = Times(Half(bits, -5), bits, 16, 8);
      values[0] = -values[1];
      values[1] = std::fabs(values[1]) + 8.0f;
      values[seed % 14 + 2] = std::nextafter(values[1], kInfinity);
      EXPECT_FALSE(Found(values)) << seed;
    }
    for (const float odd : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      for (size_t at = 0; at < 16; ++at) {
        std::vector<float> values(16, 0.5f);
        values[at] = odd;
        EXPECT_FALSE(Found(values));
        for (size_t i = 0; i < 16; i += 3) values[i] = odd;
        EXPECT_FALSE(Found(values));
      }
      EXPECT_FALSE(Found(std::vector<float>(16, odd)));
    }
  });
}

}  // namespace
}  // namespace iha::kernels
