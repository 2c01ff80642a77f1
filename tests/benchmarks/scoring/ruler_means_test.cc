// RULER's averages; the row of NVIDIA's README that the weights must reproduce.
#include "benchmarks/scoring/ruler_means.h"

#include <gtest/gtest.h>

namespace iha::scoring {
namespace {

std::vector<LengthMean> Lengths(const std::vector<int64_t>& tenths) {
  std::vector<LengthMean> lengths;
  int64_t length = 4096;
  for (const int64_t value : tenths) {
    lengths.push_back({length, Rational(value, 1000)});
    length *= 2;
  }
  return lengths;
}

std::string Text(const Rational& mean) { return (mean * Rational(100)).ToFixed(1); }

TEST(RulerMeans, WeightsGrowByOneFromEitherEnd) {
  // Means 90, 80, 70: (90 + 160 + 210) / 6 and (270 + 160 + 70) / 6.
  const RulerMeans means = RulerMeansOf(Lengths({900, 800, 700}));
  EXPECT_EQ(Text(means.average), "80.0");
  EXPECT_EQ((means.weighted_increasing * Rational(100)).ToFixed(2), "76.67");
  EXPECT_EQ((means.weighted_decreasing * Rational(100)).ToFixed(2), "83.33");
  EXPECT_EQ(means.effective_length, 4096);
  const RulerMeans one = RulerMeansOf(Lengths({500}));
  EXPECT_EQ(one.average, one.weighted_increasing);
  EXPECT_EQ(one.average, one.weighted_decreasing);
}

// Llama-3.1-70B of the README's table: 96.5 95.8 95.4 94.8 88.4 66.6 -> 89.6, wAvg inc 85.5, dec 93.7; effective 64k.
TEST(RulerMeans, EqualThePublishedTable) {
  const RulerMeans means = RulerMeansOf(Lengths({965, 958, 954, 948, 884, 666}));
  EXPECT_EQ(Text(means.average), "89.6");
  EXPECT_EQ(Text(means.weighted_increasing), "85.5");
  EXPECT_EQ(Text(means.weighted_decreasing), "93.7");
  EXPECT_EQ(means.effective_length, 65536);
}

TEST(RulerMeans, TheEffectiveLengthIsTheLongestAboveTheThreshold) {
  EXPECT_EQ(RulerMeansOf(Lengths({856, 800})).effective_length, std::nullopt);  // 85.6 itself is not above
  EXPECT_EQ(RulerMeansOf(Lengths({857, 800, 860, 100})).effective_length, 16384);
}

}  // namespace
}  // namespace iha::scoring
