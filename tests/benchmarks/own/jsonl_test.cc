// A user's own questions: prompts by template, references, metrics, and files that are not what they should be.
#include "benchmarks/own/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/own/template_text.h"
#include "common/file.h"
#include "tests/support/temp_dir.h"

namespace iha::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Jsonl : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<const Benchmark>> Open(const std::string& text, const std::string& options = "") {
    EXPECT_TRUE(WriteFileAtomic(dir_.File("q.jsonl"), text).ok());
    const auto ref = ParseBenchmarkRef("jsonl:" + dir_.File("q.jsonl") + options);
    EXPECT_TRUE(ref.ok()) << ref.status();
    return OpenBenchmark(*ref, "");
  }
  // "WHAT: line N ..." without the folder.
  std::string ErrorOf(const std::string& text, const std::string& options = "") {
    return std::string(Open(text, options).status().message());
  }
  iha::testing::TempDir dir_;
};

TEST_F(Jsonl, PromptsReferencesAndIds) {
  const auto opened = Open("{\"id\":\"a\",\"q\":\"1+1?\",\"n\":3,\"a\":\"2\"}\n\n{\"q\":\"2{}\",\"n\":[1],\"a\":4}\n",
                           "?prompt=Q:%20{q}%20({n})%20{{}}&gold=a&stop=Q:");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Benchmark& benchmark = **opened;
  ASSERT_EQ(benchmark.size(), 2);
  EXPECT_EQ(benchmark.Render(0).text, "Q: 1+1? (3) {}");
  EXPECT_EQ(benchmark.Render(1).text, "Q: 2{} ([1]) {}");
  EXPECT_THAT(benchmark.Render(0).stops, ElementsAre("Q:"));
  EXPECT_EQ(benchmark.ItemId(0), "a");
  EXPECT_EQ(benchmark.ItemId(1), "row/1");
  EXPECT_EQ(benchmark.Gold(1), "4");
  EXPECT_EQ(benchmark.info().default_metrics, std::vector<std::string>{"exact"});
}

TEST_F(Jsonl, ChatStripsThinkingAndThenAppliesTheStop) {
  const auto opened = Open("{\"question\":\"q\",\"answer\":\"7\"}\n", "?form=chat&metric=math.robust&stop=END");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Prompt prompt = (*opened)->Render(0);
  ASSERT_EQ(prompt.messages.size(), 1u);
  EXPECT_EQ(prompt.messages[0].content, "q");
  EXPECT_THAT(prompt.stops, IsEmpty());
  const auto metrics = BaseMetrics((*opened)->info(), {"math.robust"});
  const auto grades = (*opened)->Grade(0, {"<think>END \\boxed{1}</think>\\boxed{7.0} END \\boxed{2}"}, metrics);
  EXPECT_EQ(grades[0][0].extracted, "7.0");
  EXPECT_EQ(grades[0][0].score, (Score{1, 1}));
}

TEST_F(Jsonl, TheChatTemplatesDayIsAnOption) {
  const std::string row = "{\"question\":\"q\",\"answer\":\"7\"}\n";
  const auto digest = [&](const std::string& options) { return PromptDigest(**Open(row, options), 1); };
  EXPECT_EQ((*Open(row, "?form=chat&template_date=2025-01-02"))->Render(0).template_date, "2025-01-02");
  EXPECT_EQ((*Open(row, "?form=chat"))->Render(0).template_date, "2024-07-26");
  EXPECT_EQ((*Open(row))->Render(0).template_date, "");  // no template sees a plain prompt
  EXPECT_NE(digest("?form=chat&template_date=2025-01-02"), digest("?form=chat"));
  EXPECT_EQ(digest("?form=chat&template_date=2024-07-26"), digest("?form=chat"));
  EXPECT_THAT(ErrorOf(row, "?template_date=2025-02-29"), HasSubstr("option template_date: found \"2025-02-29\""));
}

TEST_F(Jsonl, ExactAndRegexGradeTheWholeText) {
  const auto opened = Open("{\"question\":\"q\",\"answer\":\"(?i)the (\\\\w+) one\"}\n", "?metric=regex");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->info().default_metrics, std::vector<std::string>{"regex"});
  const auto metrics = BaseMetrics((*opened)->info(), {"maj@3?metric=regex"});
  const auto grades = (*opened)->Grade(0, {"It is The BLUE one.", "none", "\xff the red one"}, metrics);
  EXPECT_EQ(grades[0][0].extracted, "BLUE");
  EXPECT_EQ(grades[0][0].score, (Score{1, 1}));
  EXPECT_FALSE(grades[1][0].valid);
  EXPECT_EQ(grades[2][0].extracted, "red");
  EXPECT_EQ(grades[2][0].group, 2);
  const auto exact = Open("{\"question\":\"q\",\"answer\":\" yes\"}\n");
  const auto plain = (*exact)->Grade(0, {"yes\n", "yes!", ""}, BaseMetrics((*exact)->info(), {"exact"}));
  EXPECT_EQ(plain[0][0].score, (Score{1, 1}));
  EXPECT_EQ(plain[1][0].score, (Score{0, 1}));
  EXPECT_FALSE(plain[2][0].valid);
}

TEST_F(Jsonl, APatternThatIsNoneOrRunsAwayIsAnErrorOfTheGraderAndNeverWrong) {
  for (const char* pattern : {"(", "(a+)+b", "(?:(?:a*)*)*c"}) {
    const auto opened = Open(fmt::format("{{\"question\":\"q\",\"answer\":\"{}\"}}\n", pattern), "?metric=regex");
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto grades = (*opened)->Grade(0, {fmt::format("{:a>5000}d", "")}, BaseMetrics((*opened)->info(), {"regex"}));
    // PCRE2 may also prove quickly that nothing matches: then it is a clean miss.
    EXPECT_TRUE(grades[0][0].unscored == Unscored::kGraderError || !grades[0][0].valid) << pattern;
    EXPECT_EQ(grades[0][0].score, (Score{0, 1}));
  }
}

TEST_F(Jsonl, BadFilesAreRefusedByTheirLine) {
  EXPECT_THAT(ErrorOf("{\"question\":\"q\",\"answer\":\"1\"}\nnope\n"), HasSubstr("q.jsonl:2:2: not valid JSON"));
  EXPECT_THAT(ErrorOf("{\"question\":\"q\"}\n"), HasSubstr("q.jsonl:1: has no field \"answer\""));
  EXPECT_THAT(ErrorOf("{\"answer\":\"q\"}\n"), HasSubstr("q.jsonl:1: has no field \"question\""));
  EXPECT_THAT(ErrorOf("{\"question\":\"\",\"answer\":\"q\"}\n"), HasSubstr("q.jsonl:1: its prompt is empty"));
  EXPECT_THAT(ErrorOf("\n \n"), HasSubstr("holds no row"));
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(ErrorOf("{\"answer\":\"1\",\"question\":" + deep + "}\n"),
              HasSubstr("q.jsonl:1: JSON nested 1000001 deep"));
  const std::string row = "{\"question\":\"q\",\"answer\":\"1\"}\n";
  EXPECT_THAT(ErrorOf(row, "?prompt={question"), HasSubstr("option prompt: found a '{' without"));
  EXPECT_THAT(ErrorOf(row, "?prompt=a}"), HasSubstr("option prompt: found a '}' without"));
  EXPECT_THAT(ErrorOf(row, "?metric=math.robus"), HasSubstr("math.robust"));
  EXPECT_THAT(ErrorOf(row, "?fewshot=3"), HasSubstr("fewshot"));
  EXPECT_EQ(OpenBenchmark({"jsonl:/nonexistent.jsonl", {}}, "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenBenchmark({"jsonl:/tmp", {}}, "").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(OpenBenchmark({"choice:/tmp", {}}, "").status().code(), absl::StatusCode::kDataLoss);
  for (const char* name : {"jsonl:", "choice:"}) {
    const absl::Status none = OpenBenchmark({name, {}}, "").status();
    EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument) << none;
    EXPECT_THAT(std::string(none.message()), HasSubstr("names no file")) << name;
  }
  EXPECT_THAT(ErrorOf("{\"question\":\"q\",\"answer\":\"1\",\"answer\":\"2\"}\n"),
              HasSubstr("q.jsonl:1: field \"answer\" is there twice"));
  EXPECT_THAT(
      ErrorOf("{\"id\":1,\"question\":\"q\",\"answer\":\"1\"}\n{\"id\":1,\"question\":\"r\",\"answer\":\"2\"}\n"),
      HasSubstr("q.jsonl:2: id \"1\" is that of line 1 too"));
}

TEST_F(Jsonl, WhatIsNoTextIsNeverReadAsOne) {
  const auto row = [](const std::string& id, const std::string& question, const std::string& answer) {
    return fmt::format(R"({{"id":{},"question":{},"answer":{}}})"
                       "\n",
                       id, question, answer);
  };
  ASSERT_TRUE(Open(row("1", "\"q\"", "\"1\"")).ok());
  for (const char* value : {"null", "true", "[1]", "{\"a\":1}"}) {
    const std::string found = fmt::format("found {}, expected a text or a number", value);
    EXPECT_THAT(ErrorOf(row("1", "\"q\"", value)), HasSubstr("q.jsonl:1: field \"answer\": " + found));
    EXPECT_THAT(ErrorOf(row(value, "\"q\"", "\"1\"")), HasSubstr("q.jsonl:1: field \"id\": " + found));
  }
  EXPECT_THAT(ErrorOf(row("1", "null", "\"1\"")),
              HasSubstr("q.jsonl:1: field \"question\": found null, expected a text or a number"));
  // A number that the reader of the file would round is no answer either.
  EXPECT_EQ((*Open(row("1", "\"q\"", "1.5")))->Gold(0), "1.5");
  EXPECT_EQ((*Open(row("1", "\"q\"", "9007199254740993")))->Gold(0), "9007199254740993");
  EXPECT_THAT(ErrorOf(row("1", "\"q\"", "123456789012345678901")),
              HasSubstr("q.jsonl:1: field \"answer\": found 1.2345678901234568e+20, expected a number of at most"));
}

TEST_F(Jsonl, ItsBytesAreItsIdentity) {
  const auto a = Open("{\"question\":\"q\",\"answer\":\"1\"}\n");
  const auto b = Open("{\"question\":\"q\",\"answer\":\"2\"}\n");
  EXPECT_NE((*a)->data_digest(), (*b)->data_digest());
  EXPECT_EQ(PromptDigest(**a, 1), PromptDigest(**b, 1));
}

}  // namespace
}  // namespace iha::benchmarks
