// The other process that judges programs: what travels, and what a child that does not hold costs.
#include "benchmarks/graders/tool_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "common/file.h"
#include "common/parallel.h"
#include "tests/support/temp_dir.h"

namespace iha::benchmarks {
namespace {

using ::testing::HasSubstr;

const char* const kOdd = "a\n\t\"\\ \x01 \xc3\xa9 \xe2\x80\xae";

TEST(ToolJudge, QuestionsAndAnswersComeBackAsTheyWere) {
  const JudgeQuestion question{
      .number = 7,
      .task = {.id = "id", .setup = kOdd, .tests = "t", .reference = "r", .entries = {"f", ""}},
      .candidate = kOdd,
      .rule = CodeRule::kLmEval};
  const auto asked = ParseQuestion(ToLine(question));
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->number, 7);
  EXPECT_EQ(asked->task.setup, kOdd);
  EXPECT_EQ(asked->task.entries, question.task.entries);
  EXPECT_EQ(asked->candidate, kOdd);
  EXPECT_EQ(asked->rule, CodeRule::kLmEval);
  CodeVerdict verdict;
  verdict.official_passed = verdict.suspect = true;
  verdict.result = "suspect";
  verdict.reason = kOdd;
  const auto answered = ParseAnswer(ToLine({.number = 8, .verdict = verdict}));
  ASSERT_TRUE(answered.ok() && answered->verdict.ok());
  EXPECT_EQ(answered->number, 8);
  EXPECT_TRUE(answered->verdict->suspect && answered->verdict->official_passed);
  EXPECT_EQ(answered->verdict->reason, kOdd);
  const auto failed = ParseAnswer(ToLine({.number = 9, .verdict = absl::UnavailableError("sandbox: gone")}));
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->verdict.status(), absl::UnavailableError("sandbox: gone"));
  for (const char* line : {"", "[]", "{}", "{\"number\":1}", "{\"number\":\"1\"}", "{\"number\":1,\"result\":1}"}) {
    EXPECT_EQ(ParseQuestion(line).status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_EQ(ParseAnswer(line).status().code(), absl::StatusCode::kInvalidArgument) << line;
  }
}

// A child of our own making: a shell script.
class Child {
 public:
  explicit Child(const std::string& script) {
    EXPECT_TRUE(WriteFileAtomic(path(), "#!/bin/bash\n" + script).ok());
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  std::string path() const { return dir_.File("tool"); }

 private:
  const testing::TempDir dir_;
};

TEST(ToolJudge, AChildThatDoesNotHoldIsToldInItsWords) {
  const auto message = [](const std::string& script) {
    const Child child(script);
    const auto judge = ToolJudge::Start(child.path(), 2);
    EXPECT_EQ(judge.status().code(), absl::StatusCode::kUnavailable);
    return std::string(judge.status().message());
  };
  EXPECT_EQ(message("echo '{\"refused\":\"sandbox: the network did not hold\"}'; exit 4"),
            "sandbox: the network did not hold");
  EXPECT_THAT(message("echo no bubblewrap here >&2; exit 3"), HasSubstr("no bubblewrap here"));
  EXPECT_THAT(std::string(ToolJudge::Start("/none/iha-tool", 2).status().message()), HasSubstr("/none/iha-tool"));
}

// Answers in any order; many ask at a time.
TEST(ToolJudge, EveryoneGetsTheirOwnAnswer) {
  const Child child(R"(echo '{"parallel":2}'
while read -r a; do
  read -r -t 0.2 b
  for line in "$b" "$a"; do
    [[ $line =~ \"candidate\":\"([0-9]+)\" ]] || continue
    text=${BASH_REMATCH[1]}
    [[ $line =~ \"number\":([0-9]+) ]]
    echo "{\"number\":${BASH_REMATCH[1]},\"official_passed\":true,\"suspect\":false,\"result\":\"$text\",\"reason\":\"\"}"
  done
done)");
  const auto judge = ToolJudge::Start(child.path(), 2);
  ASSERT_TRUE(judge.ok()) << judge.status();
  EXPECT_EQ((*judge)->parallel(), 2);
  EXPECT_TRUE((*judge)->Ready().ok());
  std::atomic<int> right = 0;
  InParallel(60, 8, [&](size_t i) {
    const auto verdict = (*judge)->Judge({}, std::to_string(i), CodeRule::kDefault);
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    if (verdict.ok() && verdict->result == std::to_string(i)) right++;
  });
  EXPECT_EQ(right.load(), 60);
}

TEST(ToolJudge, AChildThatIsLostIsUnavailableToAll) {
  for (const char* rest :
       {"read -r line; exit 1", "read -r line; echo '{\"number\":99}'; sleep 60", "read -r line; echo no; sleep 60"}) {
    const Child child(std::string("echo '{\"parallel\":3}'\n") + rest);
    const auto judge = ToolJudge::Start(child.path(), 3);
    ASSERT_TRUE(judge.ok()) << judge.status();
    InParallel(6, 6, [&](size_t) {
      const auto verdict = (*judge)->Judge({}, "x", CodeRule::kDefault);
      EXPECT_EQ(verdict.status().code(), absl::StatusCode::kUnavailable) << verdict.status();
    });
    EXPECT_EQ((*judge)->Ready().code(), absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace iha::benchmarks
