// Exact rationals: parsing, printing, and the one place where a Score is rounded.
#include "benchmarks/scoring/rational.h"

#include <gtest/gtest.h>

#include <limits>

namespace iha::scoring {
namespace {

TEST(Rational, LowestTermsAndText) {
  EXPECT_EQ(Rational(6, -4).ToString(), "-3/2");
  EXPECT_EQ(Rational(0, 5).ToString(), "0");
  EXPECT_EQ((Rational(1, 3) + Rational(1, 6)).ToString(), "1/2");
  EXPECT_EQ((Rational(1, 3) - Rational(1, 3)).ToString(), "0");
  EXPECT_EQ((Rational(2, 3) * Rational(3, 4) / Rational(1, 5)).ToString(), "5/2");
  EXPECT_LT(Rational(1, 3), Rational(34, 100));
}

TEST(Rational, ParseDecimal) {
  EXPECT_EQ(Rational::ParseDecimal("-12.50")->ToString(), "-25/2");
  EXPECT_EQ(Rational::ParseDecimal("+1e3")->ToString(), "1000");
  EXPECT_EQ(Rational::ParseDecimal(".5")->ToString(), "1/2");
  EXPECT_EQ(Rational::ParseDecimal("1.5E-1")->ToString(), "3/20");
  EXPECT_EQ(Rational::ParseDecimal("-0")->ToString(), "0");
  for (const char* bad : {"", "-", ".", "1a", "1e", "e5", "1e401", "--1", "1 ", "0x10"}) {
    EXPECT_FALSE(Rational::ParseDecimal(bad).has_value()) << bad;
  }
  EXPECT_FALSE(Rational::ParseDecimal(std::string(1001, '1')).has_value());
}

TEST(Rational, ToFixedRoundsHalvesAwayFromZero) {
  EXPECT_EQ(Rational(1, 8).ToFixed(2), "0.13");
  EXPECT_EQ(Rational(-1, 8).ToFixed(2), "-0.13");
  EXPECT_EQ(Rational(5, 2).ToFixed(0), "3");
  EXPECT_EQ(Rational(1, 3).ToFixed(4), "0.3333");
  EXPECT_EQ(Rational(2, 3).ToFixed(4), "0.6667");
  EXPECT_EQ(Rational(-1, 1000).ToFixed(2), "0.00");
  EXPECT_EQ(Rational(199999, 2000).ToFixed(1), "100.0");
  // 1.005 as a double is 1.00499999999999989...: printing through one gives 1.00.
  EXPECT_EQ(Rational(1005, 1000).ToFixed(2), "1.01");
}

TEST(Rational, BinomialsOutsideTheirRangeAreZero) {
  EXPECT_EQ(Rational::Binomial(64, 32).ToString(), "1832624140942590534");
  EXPECT_EQ(Rational::Binomial(3, 4).ToString(), "0");
  EXPECT_EQ(Rational::Binomial(3, -1).ToString(), "0");
}

TEST(Rational, ScoresAreExactWhereTheyFit) {
  EXPECT_EQ(Rational(10, 15).ToScore(), (Score{2, 3}));
  EXPECT_EQ((Rational(1) / Rational::Binomial(64, 32)).ToScore(), (Score{1, 1832624140942590534}));
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Rational(most - 1, most).ToScore(), (Score{most - 1, most}));
}

TEST(Rational, ScoresThatDoNotFitAreRoundedToTheNearestMultipleOfTwoToMinus62) {
  const Rational huge = Rational::Binomial(200, 100);
  EXPECT_EQ((Rational(1) / huge).ToScore(), (Score{0, 1}));
  EXPECT_EQ(((huge - Rational(1)) / huge).ToScore(), (Score{1, 1}));
  // (C + 1) / (2 C) = 1/2 + 1 / (2 C) is nearest to 1/2.
  EXPECT_EQ(((huge + Rational(1)) / (huge * Rational(2))).ToScore(), (Score{1, 2}));
  const Score third = ((huge + Rational(1)) / (huge * Rational(3))).ToScore();
  EXPECT_EQ(third.den, int64_t{1} << 62);
  EXPECT_EQ(third.num, ((int64_t{1} << 62) + 1) / 3);  // 2^62 = 3 q + 1: q is nearest
}

}  // namespace
}  // namespace iha::scoring
