// Every metric by one mechanism: item grades, their groups, what happens when a grader can't answer.
#include "benchmarks/graders/graders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "common/errors.h"
#include "tests/support/graders.h"

namespace iha::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> GroupsOf(const std::vector<SampleGrade>& grades) {
  std::vector<int32_t> groups;
  for (const SampleGrade& grade : grades) groups.push_back(grade.group);
  return groups;
}

TEST(Graders, EachAnswerJoinsTheFirstRepresentativeThatItEquals) {
  Graders graders;
  EXPECT_THAT(GroupsOf(graders.GradeSamples("gsm8k.strict_match", "#### 1000",
                                            {"none", "#### 1,000", "#### 7", "#### 1000", "#### 7."})),
              ElementsAre(-1, 1, 2, 1, 2));
  EXPECT_THAT(GroupsOf(graders.GradeSamples("gsm8k.robust", "29", {"#### 29", "$29.00", "no", "58/2"})),
              ElementsAre(0, 0, -1, 0));
  // 1/3 equals both decimals, which differ: the relation is not transitive, and the first representative decides.
  EXPECT_THAT(GroupsOf(graders.GradeSamples("math.robust", "1/3",
                                            {"\\boxed{0.3334}", "\\boxed{1/3}", "\\boxed{0.3333}", "\\boxed{0.3334}"})),
              ElementsAre(0, 0, 2, 0));
  EXPECT_THAT(GroupsOf(graders.GradeSamples("math.hendrycks", "\\frac12", {"$0.5$", "$\\frac{1}{2}$", "$2$"})),
              ElementsAre(0, 0, 2));
}

TEST(Graders, LettersAreGroupedByTheLetter) {
  Graders graders;
  const auto grades = graders.GradeSamples(
      "math.robust", "B",
      {"The correct option is B because 3 > 2.", "C, since 3 > 2.", "\\boxed{B}", "B is wrong, the value is 2."});
  EXPECT_THAT(GroupsOf(grades), ElementsAre(0, 1, 0, 3));
  EXPECT_EQ(grades[0].extracted, "B");
  EXPECT_EQ(grades[0].score, (Score{1, 1}));
  EXPECT_EQ(grades[3].score, (Score{0, 1}));
}

// Groups of 3000 different numbers took a comparison of each pair.
TEST(Graders, GroupsByKeyAreThoseByPairs) {
  Graders graders;
  std::vector<std::string> texts = {"\\boxed{2/2}", "\\boxed{0.50}"};
  for (int i = 0; i < 3000; ++i) texts.push_back(fmt::format("{}", i % 2000 + 1));
  const auto start = std::chrono::steady_clock::now();
  for (const char* metric : {"math.robust", "gsm8k.robust", "gsm8k.flexible_extract"}) {
    const std::vector<int32_t> groups = GroupsOf(graders.GradeSamples(metric, "1", texts));
    EXPECT_EQ(groups[2], metric == std::string("gsm8k.flexible_extract") ? 2 : 0) << metric;
    EXPECT_EQ(groups[3], metric == std::string("gsm8k.flexible_extract") ? 0 : 3) << metric;
    for (size_t i = 4; i < texts.size(); ++i) {
      const size_t first = i < 2002 ? i : i - 2000;
      ASSERT_EQ(groups[i], first == 2 || first == 3 ? groups[first] : static_cast<int32_t>(first))
          << metric << " " << i;
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Graders, SymPyMetricsGradeAndGroupLikeTheOthers) {
  IHA_REQUIRE_GRADERS(libraries);
  Graders graders({.libraries = libraries});
  const auto grades = graders.GradeSamples("math.prm800k", "so \\boxed{x+1}",
                                           {"\\boxed{1+x}", "\\boxed{2}", "\\boxed{x+1}", "\\boxed{}"});
  EXPECT_THAT(GroupsOf(grades), ElementsAre(0, 1, 0, -1));
  EXPECT_EQ(grades[0].score, (Score{1, 1}));
  EXPECT_EQ(grades[1].score, (Score{0, 1}));
  EXPECT_FALSE(grades[3].valid);
}

TEST(Graders, WithoutItsLibrariesAMetricIsUnscoredAndNeverWrong) {
  Graders graders;
  for (const SampleGrade& grade : graders.GradeSamples("math.minerva", "1", {"1", "2"})) {
    EXPECT_EQ(grade.unscored, Unscored::kGraderUnavailable);
    EXPECT_EQ(grade.group, -1);
    EXPECT_THAT(grade.reason, HasSubstr("grader unavailable"));
  }
}

TEST(Graders, AGoldThatCanNotBeReadIsAnErrorOfTheGrader) {
  Graders graders;
  const auto grades = graders.GradeSamples("gsm8k.robust", "no idea", {"#### 5"});
  EXPECT_EQ(grades[0].unscored, Unscored::kGraderError);
  EXPECT_THAT(grades[0].reason, HasSubstr("no idea"));
}

TEST(Graders, KnowTheirMetrics) {
  EXPECT_TRUE(Graders::Find("math.robust")->pure);
  EXPECT_FALSE(Graders::Find("math.minerva")->pure);
  const auto unknown = Graders::Find("math.robus");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("math.robust"));
}

}  // namespace
}  // namespace iha::benchmarks
