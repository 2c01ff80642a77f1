// Maj@k and pass@k: exact values against enumeration, random subsets and the labelled rows of lm-evaluation-harness.
#include "benchmarks/scoring/vote.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "common/rng.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::scoring {
namespace {

Ballot Vote1(const std::string& answer, bool correct) { return {answer, answer, true, {correct ? 1 : 0, 1}}; }
Ballot Invalid() { return {"", "", false, {0, 1}}; }

// The definition, applied to one subset.
std::pair<Rational, bool> ValueOfSubset(const std::vector<Ballot>& ballots, uint32_t mask) {
  std::map<std::string, std::pair<int, Rational>> groups;
  for (size_t i = 0; i < ballots.size(); ++i) {
    if ((mask >> i & 1u) == 0 || !ballots[i].valid) continue;
    auto& group = groups[ballots[i].key];
    ++group.first;
    group.second = Rational(ballots[i].score);
  }
  int largest = 0;
  for (const auto& [key, group] : groups) largest = std::max(largest, group.first);
  Rational sum;
  int leaders = 0;
  for (const auto& [key, group] : groups) {
    if (group.first != largest) continue;
    sum += group.second;
    ++leaders;
  }
  return {leaders == 0 ? Rational(0) : sum / Rational(leaders), leaders > 1};
}

std::vector<Ballot> RandomBallots(PhiloxStream& random, int n) {
  std::vector<Ballot> ballots;
  const uint64_t answers = 1 + random.NextBelow(5);
  for (int i = 0; i < n; ++i) {
    const uint64_t answer = random.NextBelow(answers + 1);
    if (answer == answers) {
      ballots.push_back(Invalid());
    } else {
      // Fractional scores too: answer a scores a / 4.
      const Score score = Rational(static_cast<int64_t>(answer % 5), 4).ToScore();
      ballots.push_back({fmt::format("{}", answer), fmt::format("{}", answer), true, score});
    }
  }
  return ballots;
}

TEST(Vote, EqualsBruteForceEnumerationUpToTenSamples) {
  PhiloxStream random(7);
  for (int round = 0; round < 60; ++round) {
    const int n = 1 + static_cast<int>(random.NextBelow(10));
    const std::vector<Ballot> ballots = RandomBallots(random, n);
    for (int k = 1; k <= n; ++k) {
      Rational sum, ties;
      int64_t subsets = 0;
      for (uint32_t mask = 0; mask < (1u << n); ++mask) {
        if (std::popcount(mask) != k) continue;
        const auto [value, tie] = ValueOfSubset(ballots, mask);
        sum += value;
        ties += Rational(tie ? 1 : 0);
        ++subsets;
      }
      const auto vote = Vote(VoteRule::kNsTieMean, k, ballots);
      ASSERT_TRUE(vote.ok()) << vote.status();
      EXPECT_EQ(vote->value, sum / Rational(subsets)) << "n=" << n << " k=" << k;
      EXPECT_EQ(vote->tie, ties / Rational(subsets)) << "n=" << n << " k=" << k;
    }
  }
}

TEST(Vote, AgreesWithRandomSubsetsOfSixtyFour) {
  PhiloxStream random(11);
  std::vector<Ballot> ballots;
  for (int i = 0; i < 64; ++i) {
    const uint64_t draw = random.NextBelow(10);
    ballots.push_back(draw < 4   ? Vote1("right", true)
                      : draw < 7 ? Vote1("a", false)
                      : draw < 9 ? Vote1("b", false)
                                 : Invalid());
  }
  const auto vote = Vote(VoteRule::kNsTieMean, 8, ballots);
  ASSERT_TRUE(vote.ok());
  constexpr int kDraws = 1000000;
  double sum = 0;
  std::vector<size_t> order(ballots.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::map<std::string, int> counts;
    for (size_t i = 0; i < 8; ++i) {
      std::swap(order[i], order[i + random.NextBelow(order.size() - i)]);
      if (ballots[order[i]].valid) ++counts[ballots[order[i]].key];
    }
    int largest = 0, leaders = 0, right = 0;
    for (const auto& [key, count] : counts) largest = std::max(largest, count);
    for (const auto& [key, count] : counts) {
      leaders += count == largest ? 1 : 0;
      right += count == largest && key == "right" ? 1 : 0;
    }
    if (leaders > 0) sum += static_cast<double>(right) / leaders;
  }
  // A value in [0, 1] has standard deviation at most 1/2: five standard errors.
  EXPECT_NEAR(std::atof(vote->value.ToFixed(12).c_str()), sum / kDraws, 5 * 0.5 / std::sqrt(double{kDraws}));
}

TEST(Vote, TieIsTheMeanOfTheLeadersAndInvalidAnswersHaveNoVote) {
  const std::vector<Ballot> ballots = {Invalid(), Vote1("b", false), Vote1("a", true), Invalid(), Invalid()};
  const auto vote = Vote(VoteRule::kNsTieMean, 5, ballots);
  ASSERT_TRUE(vote.ok());
  EXPECT_EQ(vote->value, Rational(1, 2));
  EXPECT_EQ(vote->tie, Rational(1));
  EXPECT_EQ(vote->winner, "b");  // first leading group
  EXPECT_EQ(vote->invalid, 3);
  const auto none = Vote(VoteRule::kNsTieMean, 1, std::vector<Ballot>{Invalid()});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->value, Rational(0));
  EXPECT_FALSE(none->winner.has_value());
}

TEST(Vote, FirstSeenGroupsTheFirstKAndGivesATieToTheEarlierGroup) {
  const std::vector<Ballot> ballots = {Invalid(),
                                       {"1,000", "g1", true, {0, 1}},
                                       {"7", "g2", true, {1, 1}},
                                       {"7.0", "g2", true, {1, 1}},
                                       {"1000", "g1", true, {0, 1}}};
  EXPECT_EQ(*Vote(VoteRule::kFirstSeen, 5, ballots)->winner, "1,000");
  EXPECT_EQ(Vote(VoteRule::kFirstSeen, 5, ballots)->tie, Rational(1));
  EXPECT_EQ(Vote(VoteRule::kFirstSeen, 5, ballots)->value, Rational(0));
  EXPECT_EQ(*Vote(VoteRule::kFirstSeen, 4, ballots)->winner, "1,000") << "over all outputs";
  EXPECT_EQ(Vote(VoteRule::kFirstSeen, 4, ballots)->value, Rational(1));
  EXPECT_EQ(Vote(VoteRule::kFirstSeen, 1, ballots)->value, Rational(0));
  EXPECT_FALSE(Vote(VoteRule::kFirstSeen, 1, std::vector<Ballot>{Invalid()})->winner.has_value());
  EXPECT_EQ(*ParseVoteRule("first_seen"), VoteRule::kFirstSeen);
}

TEST(Vote, WithoutAValidAnswerNobodyWins) {
  const std::vector<Ballot> ballots(3, Ballot{"[invalid]", "", false, {0, 1}});
  for (const VoteRule rule : {VoteRule::kNsTieMean, VoteRule::kFirstSeen, VoteRule::kLmEval}) {
    EXPECT_FALSE(Vote(rule, 3, ballots)->winner.has_value()) << NameOf(rule);
  }
}

// The expectation over subsets took 13 s for three groups of 1000.
TEST(Vote, LargeSubsetsAreExactAndTooLargeOnesRefused) {
  std::vector<Ballot> ballots;
  for (int i = 0; i < 600; ++i) ballots.push_back(Vote1(i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", i % 3 == 0));
  const auto vote = Vote(VoteRule::kNsTieMean, 300, ballots);
  ASSERT_TRUE(vote.ok()) << vote.status();
  EXPECT_EQ(vote->value, Rational(1, 3)) << "three equal groups, one of them right";
  EXPECT_GT(vote->tie.Sign(), 0);
  std::vector<Ballot> distinct;
  for (int i = 0; i < 20000; ++i) distinct.push_back(Vote1(fmt::format("{}", i), i == 0));
  EXPECT_EQ(Vote(VoteRule::kNsTieMean, 4, distinct)->value, Rational(1, 20000));
  EXPECT_EQ(Vote(VoteRule::kNsTieMean, 20000, distinct)->value, Rational(1, 20000));
  const auto refused = Vote(VoteRule::kNsTieMean, 10000, distinct);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(std::string(refused.status().message()).find("costs more than"), std::string::npos) << refused.status();
}

// Also refusing costs no more than a look at the samples: groups times possible leads, 4e10 here, took minutes.
TEST(Vote, RefusesAtOnce) {
  std::vector<Ballot> ballots;
  for (int i = 0; i < 200000; ++i) ballots.push_back(Vote1(fmt::format("{}", i), i == 0));
  for (int i = 0; i < 200000; ++i) ballots.push_back(Vote1("same", false));
  EXPECT_EQ(Vote(VoteRule::kNsTieMean, 200000, ballots).status().code(), absl::StatusCode::kInvalidArgument);
}

// Every sequence of k samples, walked as a tree: what can still come decides whether a vote is settled.
class Continuations {
 public:
  Continuations(VoteRule rule, int64_t k) : rule_(rule), k_(k) {}

  struct Known {
    std::vector<Rational> values;  // that all k samples can have
    int64_t distance = 0;          // fewest samples until only one is left
  };
  Known Walk() {
    Known known;
    const auto left = k_ - static_cast<int64_t>(ballots_.size());
    if (left == 0) {
      known.values = {Vote(rule_, k_, ballots_)->value};
    } else {
      known = WalkOn(left);
    }
    Check(known);
    return known;
  }
  int64_t seen() const { return seen_; }

 private:
  Known WalkOn(int64_t left) {
    static const std::vector<Ballot> kAnswers = {Vote1("p", true),         Vote1("q", true),
                                                 Vote1("x", false),        Vote1("y", false),
                                                 {"h", "h", true, {1, 2}}, {"[invalid]", "", false, {0, 1}}};
    Known known;
    known.distance = left;
    for (const Ballot& answer : kAnswers) {
      ballots_.push_back(answer);
      const Known after = Walk();
      ballots_.pop_back();
      known.distance = std::min(known.distance, after.distance + 1);
      for (const Rational& value : after.values) {
        if (std::find(known.values.begin(), known.values.end(), value) == known.values.end()) {
          known.values.push_back(value);
        }
      }
    }
    if (known.values.size() == 1) known.distance = 0;
    return known;
  }
  void Check(const Known& known) {
    ++seen_;
    const int64_t open = SamplesToSettle(rule_, k_, ballots_);
    if (rule_ == VoteRule::kNsTieMean) {
      ASSERT_EQ(open, known.distance) << Text();
    } else {
      ASSERT_GE(open, known.distance) << Text();
    }
    if (open > 0) return;
    ASSERT_EQ(known.values.size(), 1u) << Text();
    const auto n = static_cast<int64_t>(ballots_.size());
    ASSERT_EQ(Vote(rule_, n, ballots_)->value, known.values[0]) << Text();
  }
  std::string Text() const {
    std::string text = fmt::format("{} k={}:", NameOf(rule_), k_);
    for (const Ballot& ballot : ballots_) text += " " + ballot.raw;
    return text;
  }

  const VoteRule rule_;
  const int64_t k_;
  std::vector<Ballot> ballots_;
  int64_t seen_ = 0;
};

TEST(SamplesToSettle, IsWhatEveryContinuationShows) {
  for (const VoteRule rule : {VoteRule::kNsTieMean, VoteRule::kFirstSeen, VoteRule::kLmEval}) {
    for (int64_t k = 1; k <= 6; ++k) {
      Continuations all(rule, k);
      all.Walk();
      EXPECT_GE(all.seen(), 1 << k);
    }
  }
}

TEST(SamplesToSettle, AMajorityOfSixteenTakesNineAtLeast) {
  std::vector<Ballot> ballots;
  for (int64_t n = 0; n < 9; ++n) {
    EXPECT_EQ(SamplesToSettle(VoteRule::kNsTieMean, 16, ballots), 9 - n);
    ballots.push_back(Vote1("a", true));
  }
  EXPECT_EQ(SamplesToSettle(VoteRule::kNsTieMean, 16, ballots), 0);
  // A lead of seven with seven left can end in a tie.
  ballots[0] = Vote1("b", false);
  EXPECT_EQ(SamplesToSettle(VoteRule::kNsTieMean, 16, ballots), 1);
  ballots[0] = Vote1("b", true);
  EXPECT_EQ(SamplesToSettle(VoteRule::kNsTieMean, 16, ballots), 0) << "whichever of them leads, it is right";
}

// Equivalence is not transitive: a group is worth what its first sample is, whatever its others would be.
TEST(Vote, AGroupIsWorthItsRepresentative) {
  const std::vector<Ballot> ballots = {{"1/3", "g", true, {1, 1}}, {"0.3334", "g", true, {0, 1}}, Vote1("7", false)};
  EXPECT_EQ(Vote(VoteRule::kNsTieMean, 3, ballots)->value, Rational(1));
  EXPECT_EQ(Vote(VoteRule::kFirstSeen, 3, ballots)->value, Rational(1));
}

TEST(Vote, LmEvalRuleLetsInvalidVoteAndTakesTheFirstSeen) {
  const Ballot invalid{"[invalid]", "[invalid]", false, {0, 1}};
  const std::vector<Ballot> ballots = {invalid, invalid, Vote1("a", true), Vote1("a", true), Vote1("a", true)};
  EXPECT_EQ(*Vote(VoteRule::kLmEval, 4, ballots)->winner, "[invalid]");
  EXPECT_EQ(Vote(VoteRule::kLmEval, 4, ballots)->tie, Rational(1));
  EXPECT_EQ(*Vote(VoteRule::kLmEval, 5, ballots)->winner, "a");
  // Raw strings: "1,000" and "1000" are two candidates, so the wrong answer wins.
  const std::vector<Ballot> split = {
      {"1,000", "1000", true, {1, 1}}, {"1000", "1000", true, {1, 1}}, Vote1("7", false), Vote1("7", false)};
  EXPECT_EQ(*Vote(VoteRule::kLmEval, 4, split)->winner, "7");
  EXPECT_EQ(Vote(VoteRule::kNsTieMean, 4, split)->value, Rational(1, 2));
}

TEST(Vote, RefusesKOutsideTheSamples) {
  const std::vector<Ballot> ballots = {Vote1("a", true)};
  EXPECT_EQ(Vote(VoteRule::kNsTieMean, 0, ballots).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Vote(VoteRule::kLmEval, 2, ballots).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseVoteRule("first").status().code(), absl::StatusCode::kInvalidArgument);
}

double Decimal(const Rational& value) { return std::strtod(value.ToFixed(20).c_str(), nullptr); }

TEST(PassAtK, Vectors) {
  EXPECT_EQ(*PassAtK(200, 10, 1), Rational(1, 20));
  EXPECT_EQ(PassAtK(200, 10, 10)->ToFixed(6), "0.408548");
  EXPECT_EQ(PassAtK(200, 10, 100)->ToFixed(6), "0.999229");
  EXPECT_EQ(PassAtK(10, 3, 5)->ToFixed(6), "0.916667");
  EXPECT_EQ(*PassAtK(5, 0, 1), Rational(0));
  EXPECT_EQ(*PassAtK(64, 1, 64), Rational(1));
  EXPECT_EQ(*PassAtK(20, 19, 2), Rational(1));
  EXPECT_FALSE(PassAtK(5, 0, 10).has_value());
}

TEST(PassAtK, LabelledRows) {
  IHA_REQUIRE_CASES(cases);
  const auto rows = testing::JsonRows(cases + "/lm_eval/scores_passk.jsonl.gz");
  ASSERT_EQ(rows.size(), 350u);
  // The labels are float64 products of up to 300 factors: relative error below 300 * 2^-52.
  constexpr double kTolerance = 300 * 0x1.0p-52;
  for (const auto& row : rows) {
    const int64_t k = row["k"];
    if (row.contains("mean")) {
      Rational sum;
      for (size_t i = 0; i < row["n_list"].size(); ++i) sum += *PassAtK(row["n_list"][i], row["c_list"][i], k);
      sum /= Rational(static_cast<int64_t>(row["n_list"].size()));
      EXPECT_NEAR(Decimal(sum), row["mean"].get<double>(), kTolerance) << row;
    } else if (row.contains("reported")) {
      EXPECT_FALSE(PassAtK(row["n"], row["c"], k).has_value()) << row;
    } else {
      EXPECT_NEAR(Decimal(*PassAtK(row["n"], row["c"], k)), row["pass_at_k"].get<double>(), kTolerance) << row;
    }
  }
}

}  // namespace
}  // namespace iha::scoring
