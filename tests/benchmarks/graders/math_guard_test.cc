// math.robust in its guarded child: the same verdicts, and what happens when the child does not answer.
#include "benchmarks/graders/math_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "benchmarks/graders/graders.h"
#include "benchmarks/graders/lines.h"
#include "common/file.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::benchmarks {
namespace {

const char kProgram[] = IHA_PROGRAM_FOLDER "/iha-grader";

void ExpectSame(MathGuard& guard, const std::string& gold, const std::string& output) {
  const scoring::AnswerMetric& metric = *scoring::FindAnswerMetric(kGuardedMetric);
  const auto theirs = guard.Judge(gold, output);
  const auto ours = metric.judge(gold, output);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_EQ(theirs->extraction.text, ours->extraction.text);
  EXPECT_EQ(theirs->extraction.valid, ours->extraction.valid);
  EXPECT_EQ(theirs->extraction.rule, ours->extraction.rule);
  EXPECT_EQ(theirs->correct, ours->correct);
  EXPECT_EQ(theirs->reason, ours->reason);
  const auto equal = guard.Equal(gold, output);
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_EQ(equal->equal, metric.equal(gold, output).equal);
  EXPECT_EQ(equal->reason, metric.equal(gold, output).reason);
}

TEST(MathGuard, GivesTheVerdictsOfThisProcessByteForByte) {
  MathGuard guard(kProgram);
  ExpectSame(guard, "\\frac12", "so \\boxed{0.5}\nand a second line");
  ExpectSame(guard, "", "");
  ExpectSame(guard, "\xff\n", std::string("\\boxed{\0\xfe}", 10));
  ExpectSame(guard, "10^{10^9}", "9^{9^{9^9}}");
  ExpectSame(guard, std::string(10000, '{'), std::string(1 << 20, '9'));
}

TEST(MathGuard, GivesThemOnEveryLabelledPair) {
  IHA_REQUIRE_CASES(cases);
  MathGuard guard(kProgram);
  for (const auto& row : testing::JsonRows(cases + "/math_equiv/cases.jsonl")) {
    ExpectSame(guard, row["gold"].get<std::string>(), row["pred"].get<std::string>());
  }
}

// A stand-in for the child: a shell script.
class StandIn {
 public:
  explicit StandIn(const std::string& script) {
    EXPECT_TRUE(WriteFileAtomic(path(), "#!/bin/sh\n" + script).ok());
    chmod(path().c_str(), 0755);
  }
  std::string path() const { return dir_.File("child"); }
  std::string File(const std::string& name) const { return dir_.File(name); }

 private:
  iha::testing::TempDir dir_;
};

TEST(MathGuard, AQuestionThatEndsItsChildIsAskedAgainAlone) {
  // Dies at its first question, answers in its second life.
  const StandIn child(
      "read line; if [ -e $0.seen ]; then echo x31 x6f6b; sleep 5; else touch $0.seen; kill -9 $$; fi\n");
  MathGuard guard(child.path());
  const auto equal = guard.Equal("1", "1");
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_TRUE(equal->equal);
  EXPECT_EQ(equal->reason, "ok");
}

TEST(MathGuard, AStoppedChildIsReplaced) {
  const StandIn child(
      "read line; if [ -e $0.seen ]; then echo x31 x6f6b; sleep 5; else touch $0.seen; kill -STOP $$; fi\n");
  MathGuard guard(child.path(), absl::Seconds(1));
  const auto equal = guard.Equal("1", "1");
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_EQ(equal->reason, "ok");
}

TEST(MathGuard, TwoDeathsOrNoAnswerAreGraderErrorsAndNeverWrong) {
  for (const char* script :
       {"read line; kill -9 $$\n", "read line; exit 3\n", "sleep 60\n", "read line; kill -STOP $$\n"}) {
    const StandIn child(script);
    MathGuard guard(child.path(), absl::Milliseconds(500));
    EXPECT_TRUE(absl::IsResourceExhausted(guard.Judge("1", "1").status())) << script;
    Graders graders({.guard = child.path()});
    if (!std::string(script).starts_with("read line; kill -9")) continue;
    const auto grades = graders.GradeSamples("math.robust", "1", {"1"});
    EXPECT_EQ(grades[0].unscored, Unscored::kGraderError);
  }
  const StandIn liar("read line; echo 1 2 3\n");
  MathGuard guard(liar.path());
  EXPECT_FALSE(guard.Judge("1", "1").ok());
}

TEST(MathGuard, GivenUpOutputsAreCountedApartAndTheLineHasNoVote) {
  // Dies at each question but that of the first output.
  const StandIn child(
      "while read line; do case $line in *x31) echo x31 x31 x x31 x6f6b;; *) kill -9 $$;; esac; done\n");
  Graders graders({.guard = child.path()});
  const auto vote = VoteLine(graders, "math.robust", scoring::VoteRule::kNsTieMean, 2, "1", {"1", "2", "3"});
  ASSERT_TRUE(vote.ok()) << vote.status();
  EXPECT_EQ(vote->given_up, 2);
  EXPECT_EQ(vote->invalid, 0);
  EXPECT_FALSE(vote->winner.has_value());
  EXPECT_FALSE(VoteLine(graders, "math.robust", scoring::VoteRule::kNsTieMean, 4, "1", {"1", "2", "3"}).ok());
  // A gold that can't be read is no failure of the grader.
  const auto gold = VoteLine(graders, "gsm8k.robust", scoring::VoteRule::kNsTieMean, 1, "no idea", {"#### 5"});
  EXPECT_TRUE(absl::IsInvalidArgument(gold.status())) << gold.status();
}

// A limit that the whole session runs under, as batch systems set them, is no reason to grade nothing. Without the
// capability that root has, a hard limit can only be lowered.
TEST(MathGuard, KeepsTheHardLimitsThatItIsStartedWith) {
  const StandIn child(std::string("ulimit -t 600\nulimit -d 4000000\nif [ $(id -u) = 0 ]; then\n") +
                      "exec setpriv --bounding-set=-sys_resource " + kProgram + "\nfi\nexec " + kProgram + "\n");
  MathGuard guard(child.path());
  ExpectSame(guard, "\\frac12", "\\boxed{0.5}");
}

TEST(MathGuard, WithoutItsProgramItSaysSo) {
  MathGuard guard("/nonexistent/iha-grader");
  EXPECT_TRUE(absl::IsNotFound(guard.Judge("1", "1").status()));
  const absl::Status beside_this_test = FindMathGuard().status();  // the programs have a folder of their own
  EXPECT_TRUE(absl::IsUnavailable(beside_this_test));
  EXPECT_THAT(std::string(beside_this_test.message()), ::testing::HasSubstr("belongs beside the other programs"));
}

}  // namespace
}  // namespace iha::benchmarks
