// The SymPy graders: every row that the real tools labelled, and what happens when the helper can't answer.
#include "benchmarks/graders/sympy_graders.h"

#include <gtest/gtest.h>

#include "tests/support/graders.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::benchmarks {
namespace {

TEST(SympyGraders, MinervaEqualsTheRealToolOnEveryLabelledOutput) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_GRADERS(libraries);
  SympyGraders graders(libraries);
  const auto problems = testing::JsonRows(data + "/math500/test.jsonl");
  const auto rows = testing::JsonRows(cases + "/lm_eval/scores_minerva.jsonl.gz");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    const std::string solution = row.contains("solution")
                                     ? row["solution"].get<std::string>()
                                     : problems[row["doc_index"].get<size_t>()]["solution"].get<std::string>();
    const auto verdict = graders.Grade("math.minerva", GradeForm::kOutput, solution, row["output"].get<std::string>());
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_EQ(verdict->extracted, row["extracted"].get<std::string>()) << row["id"];
    EXPECT_EQ(verdict->normal, row["normalized"].get<std::string>()) << row["id"];
    EXPECT_EQ(verdict->gold, row["gold_norm"].get<std::string>()) << row["id"];
    EXPECT_EQ(verdict->correct, row["exact_match"] == 1) << row["id"] << " " << verdict->reason;
  }
}

TEST(SympyGraders, Prm800kEqualsTheRealToolOnEveryLabelledPair) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_GRADERS(libraries);
  SympyGraders graders(libraries);
  const auto rows = testing::JsonRows(cases + "/lm_eval/scores_prm800k.jsonl.gz");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    const auto verdict = graders.Grade("math.prm800k", GradeForm::kPair, row["gold"].get<std::string>(),
                                       row["given"].get<std::string>());
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_EQ(verdict->normal, row["given_norm"].get<std::string>()) << row["id"];
    EXPECT_EQ(verdict->gold, row["gold_norm"].get<std::string>()) << row["id"];
    EXPECT_EQ(verdict->correct, row["grade"].get<bool>()) << row["id"] << " " << verdict->reason;
  }
}

TEST(SympyGraders, OutputFormTakesTheLastBox) {
  IHA_REQUIRE_GRADERS(libraries);
  SympyGraders graders(libraries);
  const auto verdict =
      graders.Grade("math.prm800k", GradeForm::kOutput, "so \\boxed{2}", "first \\boxed{1}, then \\boxed{2}.");
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->extracted, "2");
  EXPECT_TRUE(verdict->correct);
}

TEST(SympyGraders, VerdictsDoNotDependOnWhatWasAskedBefore) {
  IHA_REQUIRE_GRADERS(libraries);
  SympyGraders fresh(libraries), used(libraries);
  ASSERT_TRUE(used.Grade("math.minerva", GradeForm::kPair, "0", "0*\\frac{1}{0}").ok());
  ASSERT_TRUE(used.Grade("math.prm800k", GradeForm::kPair, "x", "y+1/0").ok());
  const auto a = fresh.Grade("math.minerva", GradeForm::kPair, "0", "0/0");
  const auto b = used.Grade("math.minerva", GradeForm::kPair, "0", "0/0");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_FALSE(a->correct);
  EXPECT_EQ(a->correct, b->correct);
}

TEST(SympyGraders, HostileTextsAreAnswersOrErrorsAndTheGradersLiveOn) {
  IHA_REQUIRE_GRADERS(libraries);
  SympyGraders graders(libraries, {.cpu_seconds = 3, .cpu_seconds_alone = 3});
  const std::string hostile[] = {std::string(10000, '{'), "__import__('os').abort()", std::string("a\nb\0c", 5),
                                 "\xff\xfe", std::string(200000, '9')};
  for (const std::string& text : hostile) {
    for (const char* metric : {"math.minerva", "math.prm800k"}) {
      const auto verdict = graders.Grade(metric, GradeForm::kPair, "1", text);
      EXPECT_FALSE(verdict.ok() && verdict->correct) << metric;
    }
  }
  const auto verdict = graders.Grade("math.prm800k", GradeForm::kPair, "1/2", "\\frac12");
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(verdict->correct);
}

// Took the helper's two time-outs, 150 s: the clock was all that bounded it.
TEST(SympyGraders, ATowerOfPowersIsBoundedByTheHelpersCpuTime) {
  IHA_REQUIRE_GRADERS(libraries);
  SympyGraders graders(libraries, {.cpu_seconds = 1, .cpu_seconds_alone = 1});
  for (const char* metric : {"math.minerva", "math.prm800k"}) {
    const auto tower = graders.Grade(metric, GradeForm::kPair, "1", "9^{9^{9^{9}}}");
    if (tower.ok()) {
      EXPECT_FALSE(tower->correct) << metric;  // prm800k refuses it before SymPy
      continue;
    }
    EXPECT_TRUE(absl::IsUnavailable(tower.status())) << tower.status();  // by its CPU limit, not by the clock
    EXPECT_NE(tower.status().message().find("CPU time limit"), std::string::npos) << tower.status();
  }
  const auto after = graders.Grade("math.minerva", GradeForm::kPair, "1/2", "\\frac{1}{2}");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(after->correct);
}

TEST(SympyGraders, WithoutTheLibrariesEveryQuestionIsAFailedPrecondition) {
  for (const char* folder : {"", "/nonexistent"}) {
    SympyGraders graders(folder);
    const auto verdict = graders.Grade("math.minerva", GradeForm::kPair, "1", "1");
    EXPECT_TRUE(absl::IsFailedPrecondition(verdict.status())) << verdict.status();
  }
  SympyGraders none("");
  EXPECT_TRUE(absl::IsInvalidArgument(none.Grade("math.robust", GradeForm::kPair, "1", "1").status()));
}

}  // namespace
}  // namespace iha::benchmarks
