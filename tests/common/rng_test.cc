#include "common/rng.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace iha {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> Words(uint64_t key, uint64_t lo, uint64_t hi) {
  const PhiloxBlock block = Philox4x32(key, lo, hi);
  return {block.word, block.word + 4};
}

// Random123's kat_vectors, philox4x32 with 10 rounds: zeros, ones, digits of pi.
TEST(Philox, KnownAnswers) {
  EXPECT_THAT(Words(0, 0, 0), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(Words(~0ULL, ~0ULL, ~0ULL), ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(Words(0x299f31d0a4093822ULL, 0x85a308d3243f6a88ULL, 0x0370734413198a2eULL),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

// Python integers: ((w1 << 32 | w0) >> 11) / 2**53, exactly.
TEST(Rng, UniformIsTheTop53Bits) {
  EXPECT_EQ(UniformAt(0, 0), 0x1.c2d38b1acc4fdp-1);
  EXPECT_EQ(UniformAt(~0ULL, ~0ULL), PhiloxUniform(Philox4x32(~0ULL, ~0ULL)));
  EXPECT_EQ(UniformAt(0x0123456789abcdefULL, 41), 0x1.7c99b498b6debp-1);
  EXPECT_EQ(PhiloxUniform({{0xffffffffu, 0xffffffffu, 0, 0}}), 1.0 - 0x1.0p-53);
  EXPECT_EQ(PhiloxUniform({{0x7ffu, 0, 0, 0}}), 0.0);
  EXPECT_EQ(PhiloxUniform({{0x800u, 0, 0, 0}}), 0x1.0p-53);
}

TEST(Rng, StreamEqualsLookup) {
  PhiloxStream stream(7);
  for (uint64_t i = 0; i < 100; i++) EXPECT_EQ(stream.NextUniform(), UniformAt(7, i));
}

// Mean of n uniforms has standard deviation 1 / sqrt(12 n); 5 of them fail a correct generator once in 1.7 million.
TEST(Rng, MeanOverIndicesAndOverKeys) {
  constexpr int kDraws = 100000;
  double over_index = 0, over_key = 0;
  for (uint64_t i = 0; i < kDraws; i++) {
    over_index += UniformAt(3, i);
    over_key += UniformAt(i, 3);
  }
  const double bound = 5 / std::sqrt(12.0 * kDraws);
  EXPECT_NEAR(over_index / kDraws, 0.5, bound);
  EXPECT_NEAR(over_key / kDraws, 0.5, bound);
}

TEST(Rng, NextBelowIsUniformAndInRange) {
  PhiloxStream stream(11);
  constexpr int kBound = 7, kDraws = 70000;
  std::vector<int> counts(kBound);
  for (int i = 0; i < kDraws; i++) counts.at(stream.NextBelow(kBound))++;
  double chi_squared = 0;
  for (const int count : counts) chi_squared += std::pow(count - kDraws / kBound, 2) / (kDraws / kBound);
  EXPECT_LT(chi_squared, 30.0);  // 6 degrees of freedom: p = 4e-5
  EXPECT_EQ(stream.NextBelow(1), 0u);
  // A bound just above 2^63 rejects nearly half of the draws; a plain modulus would favour the low half.
  constexpr uint64_t kHuge = (1ULL << 63) + 1;
  const uint64_t before = stream.index();
  for (int i = 0; i < 1000; i++) EXPECT_LT(stream.NextBelow(kHuge), kHuge);
  EXPECT_GT(stream.index() - before, 1800u);
}

TEST(Rng, ShuffleIsAPermutationAndRepeatable) {
  std::vector<int> a(50);
  std::iota(a.begin(), a.end(), 0);
  std::vector<int> b = a, sorted = a;
  PhiloxStream one(5), two(5);
  one.Shuffle(a);
  two.Shuffle(b);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, sorted);
  EXPECT_THAT(a, ::testing::UnorderedElementsAreArray(sorted));
}

}  // namespace
}  // namespace iha
