// Item values and metric names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/benchmark.h"

namespace iha::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SampleGrade Grade(const std::string& extracted, bool correct, bool valid = true, int32_t group = -1) {
  SampleGrade grade;
  grade.metric = "gsm8k.strict_match";
  grade.extracted = extracted;
  grade.valid = valid;
  grade.score = {correct ? 1 : 0, 1};
  grade.group = group;
  return grade;
}

TEST(ItemValues, MeanVoteAndPassAtK) {
  const std::vector<std::vector<SampleGrade>> grades = {{Grade("1,000", true, true, 0)},
                                                        {Grade("7", false, true, 1)},
                                                        {Grade("1000", true, true, 0)},
                                                        {Grade("[invalid]", false, false)}};
  const auto values = ItemValues(
      {"gsm8k.strict_match", "maj@4?metric=gsm8k.strict_match", "maj@4?metric=gsm8k.strict_match&rule=lm_eval",
       "pass@2?metric=gsm8k.strict_match", "maj@4?metric=gsm8k.strict_match&rule=first_seen",
       "maj@5?metric=gsm8k.strict_match", "pass@9?metric=gsm8k.strict_match"},
      grades);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].score, (Score{1, 2}));
  EXPECT_EQ((*values)[0].invalid, 1);
  EXPECT_EQ((*values)[1].score, (Score{1, 1}));  // 1,000 and 1000 are one answer
  EXPECT_EQ((*values)[1].winner, "1,000");
  EXPECT_EQ((*values)[2].tie, (Score{1, 1}));  // four raw strings, one vote each
  EXPECT_EQ((*values)[2].score, (Score{1, 1}));
  EXPECT_EQ((*values)[3].score, (Score{5, 6}));  // 1 - C(2,2) / C(4,2)
  EXPECT_EQ((*values)[4].tie, (Score{1, 1}));    // as that tool votes
  EXPECT_EQ((*values)[5].unscored, Unscored::kUndefined);
  EXPECT_EQ((*values)[6].unscored, Unscored::kUndefined);
  EXPECT_EQ((*values)[6].metric, "pass@9?metric=gsm8k.strict_match");
}

SweepEntry VotesOf(int32_t samples, const std::vector<std::string>& metrics) {
  SweepEntry entry;
  entry.sampling.samples = samples;
  entry.metrics = metrics;
  entry.stop_settled_votes = true;
  return entry;
}

TEST(SettledVotes, TakeAsManySamplesAsTheMostOpenOne) {
  const std::string maj = "maj@7?metric=gsm8k.strict_match", by_text = maj + "&rule=lm_eval";
  SweepEntry entry = VotesOf(7, {maj, by_text});
  std::vector<std::vector<SampleGrade>> grades;
  EXPECT_EQ(*SamplesWanted(entry, grades), 4);
  grades = {{Grade("1,000", true, true, 0)}, {Grade("1000", true, true, 0)}, {Grade("1,000", true, true, 0)}};
  EXPECT_EQ(*SamplesWanted(entry, grades), 4);
  grades.push_back({Grade("1,000", true, true, 0)});
  EXPECT_EQ(*SamplesWanted(VotesOf(7, {maj}), grades), 4);
  EXPECT_EQ(*SamplesWanted(entry, grades), 5) << "by text three of seven agree";
  EXPECT_EQ(*SamplesWanted(VotesOf(7, {by_text, maj}), grades), 5) << "in whatever order";
  EXPECT_EQ(EntryValues(entry, grades)->at(0).score, (Score{1, 1}));
  EXPECT_EQ(EntryValues(entry, grades)->at(1).unscored, Unscored::kUndefined);
  grades.push_back({Grade("1,000", true, true, 0)});
  grades.push_back({Grade("[invalid]", false, false)});
  EXPECT_EQ(*SamplesWanted(entry, grades), 5) << "what lies behind counts no more";
  EXPECT_EQ(EntryValues(entry, grades)->at(1).score, (Score{1, 1}));
  entry.stop_settled_votes = false;
  EXPECT_EQ(*SamplesWanted(entry, grades), 7);
  EXPECT_EQ(EntryValues(entry, grades)->at(0).unscored, Unscored::kUndefined);
}

// It makes the item unscored, whatever the vote would be: that is known once all samples are there.
TEST(SettledVotes, ASampleWithoutAGradeTakesThemAll) {
  const SweepEntry entry = VotesOf(5, {"maj@5?metric=gsm8k.strict_match"});
  SampleGrade broken = Grade("", false, false);
  broken.unscored = Unscored::kGraderError;
  const SampleGrade seven = Grade("7", true, true, 0);
  EXPECT_EQ(*SamplesWanted(entry, {{seven}, {seven}, {seven}, {broken}}), 3);
  EXPECT_EQ(*SamplesWanted(entry, {{seven}, {broken}, {seven}, {seven}}), 5);
  EXPECT_FALSE(SamplesWanted(entry, {{}, {}, {}}).ok());
}

// Rows that were stored before groups were: their values must stay what they are, or fsck would call them damaged.
TEST(ItemValues, AnswersWithoutGroupsAreComparedByTheirMetric) {
  const std::vector<std::vector<SampleGrade>> grades = {
      {Grade("7", false)}, {Grade("1,000", true)}, {Grade("[invalid]", false, false)}, {Grade("1000", true)}};
  const auto values = ItemValues({"maj@4?metric=gsm8k.strict_match"}, grades);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].score, (Score{1, 1}));
  EXPECT_EQ((*values)[0].tie, (Score{0, 1}));
  EXPECT_EQ((*values)[0].winner, "1,000");
}

TEST(ItemValues, OneUnscoredSampleMakesTheItemUnscoredForItsReason) {
  SampleGrade broken = Grade("", false, false);
  broken.unscored = Unscored::kGraderError;
  const auto values = ItemValues({"gsm8k.strict_match"}, {{Grade("1", true)}, {broken}});
  ASSERT_TRUE(values.ok());
  EXPECT_EQ((*values)[0].unscored, Unscored::kGraderError);
}

TEST(ItemValues, Errors) {
  const std::vector<std::vector<SampleGrade>> grades = {{Grade("1", true)}};
  EXPECT_EQ(ItemValues({"gsm8k.strict_match"}, {}).status().code(), absl::StatusCode::kInvalidArgument);
  const auto unknown = ItemValues({"gsm8k.robust"}, grades);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("gsm8k.strict_match"));
  SampleGrade half = Grade("1", true);
  half.score = {1, 2};
  EXPECT_FALSE(ItemValues({"pass@1?metric=gsm8k.strict_match"}, {{half}}).ok());
}

BenchmarkInfo Demo() { return (*OpenBenchmark({"gsm8k_demo", {}}, ""))->info(); }

TEST(ResolveMetrics, FillsInDefaults) {
  SamplingParams sampling;
  EXPECT_THAT(*ResolveMetrics(Demo(), sampling, {}),
              ElementsAre("gsm8k.strict_match", "gsm8k.flexible_extract", "gsm8k.robust"));
  sampling.samples = 5;
  EXPECT_THAT(*ResolveMetrics(Demo(), sampling, {}), ElementsAre("gsm8k.strict_match", "gsm8k.flexible_extract",
                                                                 "gsm8k.robust", "maj@5?metric=gsm8k.strict_match"));
  EXPECT_THAT(*ResolveMetrics(Demo(), sampling, {"maj@3?rule=lm_eval&metric=gsm8k.robust", "pass@9"}),
              ElementsAre("maj@3?metric=gsm8k.robust&rule=lm_eval", "pass@9?metric=gsm8k.strict_match"));
  EXPECT_THAT(*ResolveMetrics(Demo(), sampling, {"maj@3?rule=ns_tie_mean"}),
              ElementsAre("maj@3?metric=gsm8k.strict_match"));
}

TEST(ResolveMetrics, RefusesWhatCanNotBeScored) {
  const std::pair<const char*, const char*> bad[] = {
      {"gsm8k.robus", "gsm8k.robust"},      {"maj@0", "integer from 1"},
      {"maj@x", "integer from 1"},          {"maj@5?metric=nope", "nope"},
      {"maj@5?rule=first", "ns_tie_mean"},  {"pass@5?rule=lm_eval", "unknown option"},
      {"gsm8k.robust?k=3", "take options"},
  };
  for (const auto& [metric, part] : bad) {
    const auto resolved = ResolveMetrics(Demo(), {}, {metric});
    EXPECT_EQ(resolved.status().code(), absl::StatusCode::kInvalidArgument) << metric;
    EXPECT_THAT(std::string(resolved.status().message()), HasSubstr(part)) << metric;
  }
  EXPECT_FALSE(ResolveMetrics(Demo(), {}, {"maj@5", "maj@5?metric=gsm8k.strict_match"}).ok());
}

}  // namespace
}  // namespace iha::benchmarks
