// A user's own multiple-choice questions: prompts and choices, which one is right, both metrics, and files that are not
// what they should be.
#include "benchmarks/own/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/scoring/choice_scores.h"
#include "common/file.h"
#include "tests/support/temp_dir.h"

namespace iha::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRow[] = R"({"question":"q","choices":["a","b"],"answer":0})"
                        "\n";

class Choice : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<const Benchmark>> Open(const std::string& text, const std::string& options = "") {
    EXPECT_TRUE(WriteFileAtomic(dir_.File("q.jsonl"), text).ok());
    const auto ref = ParseBenchmarkRef("choice:" + dir_.File("q.jsonl") + options);
    EXPECT_TRUE(ref.ok()) << ref.status();
    return OpenBenchmark(*ref, "");
  }
  // "q.jsonl:LINE: ..." without the folder.
  std::string ErrorOf(const std::string& text, const std::string& options = "") {
    const absl::Status status = Open(text, options).status();
    const std::string message(status.message());
    const size_t at = message.find("q.jsonl");
    EXPECT_EQ(status.code(), !options.empty() ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kDataLoss)
        << status;
    return at == std::string::npos ? message : message.substr(at);
  }
  // Of a row "question", "choices": ["x", "yy", "zzz"], with this answer.
  std::string GoldOf(const std::string& answer) {
    const auto opened = Open(R"({"question":"q","choices":["x","yy","zzz"],"answer":)" + answer + "}\n");
    return opened.ok() ? (*opened)->Gold(0) : std::string(opened.status().message());
  }
  iha::testing::TempDir dir_;
};

std::vector<std::vector<SampleGrade>> Grade(const Benchmark& benchmark, const std::vector<double>& likelihoods) {
  std::vector<scoring::ChoiceScore> scores;
  for (const double value : likelihoods) scores.push_back({value, 1, false});
  return benchmark.Grade(0, {scoring::FormatChoiceScores(scores)}, BaseMetrics(benchmark.info(), {"acc", "acc_norm"}));
}

TEST_F(Choice, PromptsChoicesAndIds) {
  const auto opened = Open(R"({"id":"a","q":"Sky?","c":["blue","no"],"right":1})"
                           "\n\n"
                           R"({"q":"","c":["x","y","z"],"right":"x"})"
                           "\n",
                           "?prompt=Q:%20{q}%0AA:&choices=c&gold=right&delimiter=%20%20");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Benchmark& benchmark = **opened;
  ASSERT_EQ(benchmark.size(), 2);
  EXPECT_EQ(benchmark.Render(0).text, "Q: Sky?\nA:");
  EXPECT_THAT(benchmark.Render(0).choices, ElementsAre("  blue", "  no"));
  EXPECT_THAT(benchmark.Render(0).stops, IsEmpty());
  EXPECT_EQ(benchmark.ItemId(0), "a");
  EXPECT_EQ(benchmark.ItemId(1), "row/1");
  EXPECT_EQ(benchmark.Gold(0), "no");
  EXPECT_EQ(benchmark.Gold(1), "x");
  EXPECT_TRUE(benchmark.info().likelihood);
  EXPECT_THAT(benchmark.info().default_metrics, ElementsAre("acc", "acc_norm"));
  EXPECT_THAT((*Open(kRow))->Render(0).choices, ElementsAre(" a", " b")) << "target_delimiter's default";
}

TEST_F(Choice, TheAnswerIsAnIndexATextOrALetter) {
  EXPECT_EQ(GoldOf("0"), "x");
  EXPECT_EQ(GoldOf("2"), "zzz");
  EXPECT_EQ(GoldOf("\"yy\""), "yy");
  EXPECT_EQ(GoldOf("\"C\""), "zzz");
  for (const char* bad : {"3", "-1", "1.0", "\"D\"", "\"c\"", "\"1\"", "\"\"", "null", "[1]", "18446744073709551615"}) {
    EXPECT_THAT(GoldOf(bad),
                AllOf(HasSubstr("q.jsonl:1: field \"answer\": found " + std::string(bad)),
                      HasSubstr("expected the index of a choice (0 to 2), its text, or its letter (A to C)")));
  }
  // A text that is there goes before a letter, the first of equal texts before the others.
  const auto letters = Open(R"({"question":"q","choices":["B","A","A"],"answer":"A"})");
  ASSERT_TRUE(letters.ok()) << letters.status();
  EXPECT_EQ(Grade(**letters, {-2, -1, -1})[0][0].score, (Score{1, 1}));
  EXPECT_EQ(Grade(**letters, {-2, -3, -1})[0][0].score, (Score{0, 1}));
}

TEST_F(Choice, AccAndAccNormAsLmEval) {
  const auto opened = Open(R"({"question":"q","choices":["aa","bbbb","c"],"answer":1})");
  ASSERT_TRUE(opened.ok()) << opened.status();
  auto grades = Grade(**opened, {-2.1, -4, -9});  // -1.05, -1, -9 by length
  ASSERT_EQ(grades.size(), 1u);
  ASSERT_EQ(grades[0].size(), 2u);
  EXPECT_EQ(grades[0][0].metric, "acc");
  EXPECT_EQ(grades[0][0].extracted, "aa");
  EXPECT_EQ(grades[0][0].score, (Score{0, 1}));
  EXPECT_EQ(grades[0][0].reason, "choice 0: -2.1; the right one is choice 1: -4");
  EXPECT_EQ(grades[0][0].group, 0);
  EXPECT_EQ(grades[0][1].metric, "acc_norm");
  EXPECT_EQ(grades[0][1].extracted, "bbbb");
  EXPECT_EQ(grades[0][1].score, (Score{1, 1}));
  EXPECT_EQ(grades[0][1].reason, "choice 1: -1 per character");
  grades = Grade(**opened, {-3, -3, -3});
  EXPECT_EQ(grades[0][0].extracted, "aa") << "a tie goes to the first";
  // One metric alone.
  const auto one = (*opened)->Grade(0, {"-4 1 0\n-6 1 0\n-9 1 0\n"}, BaseMetrics((*opened)->info(), {"acc_norm"}));
  ASSERT_EQ(one[0].size(), 1u);
  EXPECT_EQ(one[0][0].metric, "acc_norm");
}

TEST_F(Choice, WhatIsNoScoreIsAnErrorOfTheGraderAndNeverWrong) {
  const auto opened = Open(kRow);
  for (const char* text : {"", "Paris", "-1 1 0\n", "-1 1 0\n-2 1 0\n-3 1 0\n"}) {
    const auto grades = (*opened)->Grade(0, {text}, BaseMetrics((*opened)->info(), {"acc"}));
    EXPECT_EQ(grades[0][0].unscored, Unscored::kGraderError) << text;
    EXPECT_FALSE(grades[0][0].valid);
    EXPECT_EQ(grades[0][0].group, -1);
    EXPECT_THAT(grades[0][0].reason, HasSubstr("scores of choices: "));
  }
}

TEST_F(Choice, BadFilesAreRefusedByLineAndField) {
  const std::string good = kRow;
  EXPECT_EQ(ErrorOf(good + "nope\n"), "q.jsonl:2:2: not valid JSON at \"ope\"");
  EXPECT_EQ(ErrorOf(good + "\n[1]\n"), "q.jsonl:3: found [1], expected a JSON object");
  EXPECT_THAT(ErrorOf(good + "{\"question\":\"\xff\"}"), HasSubstr("q.jsonl:2:14: not valid JSON"));
  EXPECT_EQ(ErrorOf(R"({"choices":["a","b"],"answer":0})"),
            "q.jsonl:1: field \"question\": missing; expected it, for option prompt names it");
  EXPECT_EQ(ErrorOf(R"({"question":"q","answer":0})"),
            "q.jsonl:1: field \"choices\": missing; expected an array of texts");
  EXPECT_EQ(ErrorOf(R"({"question":"q","choices":"ab","answer":0})"),
            "q.jsonl:1: field \"choices\": found \"ab\", expected an array of texts");
  EXPECT_EQ(ErrorOf(R"({"question":"q","choices":["a"],"answer":0})"),
            "q.jsonl:1: field \"choices\": found 1 choices, expected 2 to 1000");
  EXPECT_EQ(ErrorOf(R"({"question":"q","choices":["a",""],"answer":0})"),
            "q.jsonl:1: field \"choices\": choice 1: found \"\", expected a text that is not empty");
  EXPECT_EQ(ErrorOf(R"({"question":"q","choices":[1,"a"],"answer":0})"),
            "q.jsonl:1: field \"choices\": choice 0: found 1, expected a text that is not empty");
  EXPECT_THAT(ErrorOf(R"({"question":"q","choices":["a","b"]})"), HasSubstr("q.jsonl:1: field \"answer\": missing"));
  EXPECT_THAT(ErrorOf("\n \n"), HasSubstr("holds no row"));
  std::string many = R"({"question":"q","answer":0,"choices":["a")";
  for (int i = 0; i < 1000; i++) many += ",\"a\"";
  EXPECT_THAT(ErrorOf(many + "]}"), HasSubstr("found 1001 choices, expected 2 to 1000"));
  EXPECT_THAT(ErrorOf(std::string(5000, '[')), HasSubstr("q.jsonl:1: JSON nested 5000 deep"));
  EXPECT_THAT(ErrorOf(good, "?prompt={question"), HasSubstr("option prompt: found a '{' without"));
  EXPECT_THAT(ErrorOf(good, "?fewshot=3"), HasSubstr("fewshot"));
  EXPECT_THAT(ErrorOf(good, "?metric=acc"), HasSubstr("metric"));
  EXPECT_EQ(OpenBenchmark({"choice:/nonexistent.jsonl", {}}, "").status().code(), absl::StatusCode::kNotFound);
}

// Another choice is another prompt; the answer is not part of what a model sees.
TEST_F(Choice, ItsBytesAndItsChoicesAreItsIdentity) {
  const auto a = Open(kRow);
  const auto b = Open(R"({"question":"q","choices":["a","b"],"answer":1})");
  const auto c = Open(R"({"question":"q","choices":["a","c"],"answer":0})");
  const auto d = Open(R"({"question":"q","choices":["b","a"],"answer":0})");
  const auto joined = Open(R"({"question":"q","choices":["a b","x"],"answer":0})");
  const auto split = Open(R"({"question":"q","choices":["a","b x"],"answer":0})");
  EXPECT_NE((*a)->data_digest(), (*b)->data_digest());
  EXPECT_EQ(PromptDigest(**a, 1), PromptDigest(**b, 1));
  EXPECT_NE(PromptDigest(**a, 1), PromptDigest(**c, 1));
  EXPECT_NE(PromptDigest(**a, 1), PromptDigest(**d, 1));
  EXPECT_NE(PromptDigest(**joined, 1), PromptDigest(**split, 1));
}

}  // namespace
}  // namespace iha::benchmarks
