// MATH-500: prompts byte for byte those of lm-evaluation-harness, golds that grade themselves, thinking.
#include "benchmarks/reasoning/math500.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/benchmark.h"
#include "benchmarks/graders/graders.h"
#include "tests/support/chat_ml.h"
#include "tests/support/graders.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::benchmarks {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<const Benchmark> Open(const std::string& spec, const std::string& data,
                                      std::shared_ptr<Graders> graders = nullptr) {
  auto opened = OpenBenchmark(*ParseBenchmarkRef(spec), data, std::move(graders));
  EXPECT_TRUE(opened.ok()) << spec << ": " << opened.status();
  return opened.ok() ? *std::move(opened) : nullptr;
}

TEST(Math500, PromptsOfLmEval) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_DATA(data);
  const std::map<std::string, std::string> specs = {
      {"minerva_math500/plain", "math500"},
      {"minerva_math500/chat_multiturn", "math500?prompt=chat&think=keep"},
      {"hendrycks_math500/plain_0shot", "math500_hendrycks"},
      {"hendrycks_math500/plain_4shot", "math500_hendrycks?fewshot=4&exemplars=lm_eval"}};
  int checked = 0;
  for (const auto& row : testing::JsonRows(cases + "/lm_eval/prompts.jsonl")) {
    const auto spec = specs.find(row["task"].get<std::string>() + "/" + row["variant"].get<std::string>());
    if (spec == specs.end()) continue;
    const auto benchmark = Open(spec->second, data);
    ASSERT_NE(benchmark, nullptr);
    const int64_t index = row["doc_index"];
    const Prompt prompt = benchmark->Render(index);
    EXPECT_EQ(prompt.messages.empty() ? prompt.text : testing::ChatMl(prompt.messages), row["prompt"]) << spec->first;
    EXPECT_EQ(prompt.stops, row["until"].get<std::vector<std::string>>());
    EXPECT_EQ(benchmark->ItemId(index), row["doc_id"]);
    if (spec->first.starts_with("hendrycks")) {
      EXPECT_EQ(benchmark->Gold(index), row["target"]);
    }
    ++checked;
  }
  EXPECT_EQ(checked, 26);
}

TEST(Math500, TheTestSetAsExemplarsNeverShowsTheItemItselfButUnderThatToolsDraw) {
  IHA_REQUIRE_DATA(data);
  for (const char* spec : {"math500_hendrycks?fewshot=3", "math500_hendrycks?fewshot=3&exemplars=per_item"}) {
    const auto benchmark = Open(spec, data);
    ASSERT_NE(benchmark, nullptr);
    for (int64_t i = 0; i < 500; ++i) {
      const std::string text = benchmark->Render(i).text;
      const std::string question = text.substr(text.rfind("Problem: "));
      EXPECT_EQ(text.find(question), text.rfind("Problem: ")) << spec << " " << i;
      int shots = 0;
      for (size_t at = text.find("\n\nProblem: "); at != std::string::npos; at = text.find("\n\nProblem: ", at + 1)) {
        ++shots;
      }
      EXPECT_EQ(shots, 3) << spec << " " << i;
    }
  }
  const auto benchmark = Open("math500_hendrycks?fewshot=4&exemplars=lm_eval", data);
  for (const int64_t i : {117, 147, 220, 240, 388, 404, 478}) {  // the rows that the tool's whole run shows
    const std::string text = benchmark->Render(i).text;
    EXPECT_LT(text.find(text.substr(text.rfind("Problem: "))), text.rfind("Problem: ")) << i;
  }
  EXPECT_FALSE(OpenBenchmark(*ParseBenchmarkRef("math500_hendrycks?fewshot=500"), data).ok());
}

TEST(Math500, EveryGoldIsItsOwnAnswerUnderThePureMetrics) {
  IHA_REQUIRE_DATA(data);
  const auto benchmark = Open("math500_boxed", data);
  ASSERT_NE(benchmark, nullptr);
  EXPECT_EQ(benchmark->size(), 500);
  const auto metrics = BaseMetrics(benchmark->info(), {"math.robust", "math.hendrycks"});
  ASSERT_EQ(metrics.size(), 2u);
  for (int64_t i = 0; i < benchmark->size(); ++i) {
    const std::string gold = benchmark->Gold(i);
    const auto grades =
        benchmark->Grade(i, {"<think>\\boxed{17}</think>So it is \\boxed{" + gold + "}.", "$" + gold + "$"}, metrics);
    EXPECT_EQ(grades[0][0].score, (Score{1, 1})) << gold << ": " << grades[0][0].reason;
    EXPECT_EQ(grades[1][1].score, (Score{1, 1})) << gold << ": " << grades[1][1].reason;
  }
}

TEST(Math500, EveryGoldIsItsOwnAnswerUnderMinerva) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_GRADERS(libraries);
  const auto benchmark = Open("math500", data, std::make_shared<Graders>(GraderOptions{.libraries = libraries}));
  ASSERT_NE(benchmark, nullptr);
  const auto rows = testing::JsonRows(data + "/math500/test.jsonl");
  const auto metrics = BaseMetrics(benchmark->info(), {"maj@2?metric=math.minerva"});
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_FALSE(metrics[0].pure);
  for (int64_t i = 0; i < 40; ++i) {
    // The gold answer is what stands in the solution's box, as that tool takes it.
    const std::string closing =
        " Final Answer: The final answer is $" + benchmark->Gold(i) + "$. I hope it is correct.";
    const auto grades = benchmark->Grade(i, {closing, "no idea"}, metrics);
    EXPECT_EQ(grades[0][0].score, (Score{1, 1})) << grades[0][0].reason;
    EXPECT_EQ(grades[1][0].unscored, Unscored::kScored);
    EXPECT_FALSE(grades[1][0].valid);
  }
}

TEST(Math500, ThinkingIsStrippedForEveryMetricInChatAndTheStopsCutTheRest) {
  IHA_REQUIRE_DATA(data);
  const std::string text = "<think>Problem: \\boxed{1}</think>\n\\boxed{2} Problem: \\boxed{3}";
  const auto strip = Open("math500?prompt=chat", data);
  EXPECT_EQ(strip->ref().options.at("think"), "strip");
  EXPECT_THAT(strip->Render(0).stops, IsEmpty());  // a stop inside the thinking must not end it
  const auto metrics = BaseMetrics(strip->info(), {"math.robust", "math.hendrycks"});
  const auto stripped = strip->Grade(0, {text}, metrics);
  EXPECT_EQ(stripped[0][0].extracted, "2");
  EXPECT_EQ(stripped[0][1].extracted, "\\boxed{2} ");
  const auto keep = Open("math500", data);
  EXPECT_EQ(keep->ref().options.at("think"), "keep");
  EXPECT_EQ(keep->Grade(0, {text}, metrics)[0][0].extracted, "3");
  EXPECT_NE(PromptDigest(*Open("math500?prompt=chat&think=keep", data), 5), PromptDigest(*strip, 5));
  const auto bad = OpenBenchmark(*ParseBenchmarkRef("math500?think=no"), data);
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("strip"));
}

}  // namespace
}  // namespace iha::benchmarks
