// HumanEval and MBPP: prompts byte for byte those of lm-evaluation-harness (field bug 28: the instruct forms leave the
// answer open), programs that keep every blank (32), metrics over a judge, pass@k (47).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "benchmarks/benchmark.h"
#include "benchmarks/graders/graders.h"
#include "benchmarks/reasoning/code_data.h"
#include "tests/support/chat_ml.h"
#include "tests/support/gz_lines.h"
#include "tests/support/roots.h"

namespace iha::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<const Benchmark> Open(const std::string& spec, const std::string& data,
                                      std::shared_ptr<Graders> graders = nullptr) {
  auto opened = OpenBenchmark(*ParseBenchmarkRef(spec), data, std::move(graders));
  EXPECT_TRUE(opened.ok()) << spec << ": " << opened.status();
  return opened.ok() ? *std::move(opened) : nullptr;
}

// A chat whose last turn is left open: without the template's end of turn and the next header.
std::string OpenChat(std::vector<Message> messages) {
  const std::string begun = messages.back().content;
  messages.pop_back();
  return testing::ChatMl(messages) + begun;
}

TEST(CodeBenchmarks, PromptsOfLmEval) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_DATA(data);
  const std::map<std::string, std::string> specs = {
      {"humaneval/plain", "humaneval"},
      {"humaneval_instruct/plain", "humaneval_instruct?prompt=plain"},
      {"humaneval_instruct/chat_multiturn", "humaneval_instruct"},
      {"mbpp/plain", "mbpp"},
      {"mbpp_instruct/plain", "mbpp_instruct?prompt=plain"},
      {"mbpp_instruct/chat_multiturn", "mbpp_instruct"},
      {"mbpp_instruct/chat_singleturn", "mbpp_instruct?prompt=chat_single"}};
  int checked = 0;
  for (const auto& row : testing::JsonRows(cases + "/lm_eval/prompts.jsonl")) {
    const auto spec = specs.find(row["task"].get<std::string>() + "/" + row["variant"].get<std::string>());
    if (spec == specs.end()) continue;
    const auto benchmark = Open(spec->second, data);
    ASSERT_NE(benchmark, nullptr);
    const int64_t index = row["doc_index"];
    const Prompt prompt = benchmark->Render(index);
    EXPECT_EQ(prompt.messages.empty() ? prompt.text : OpenChat(prompt.messages), row["prompt"]) << spec->first;
    EXPECT_EQ(prompt.stops, row["until"].get<std::vector<std::string>>()) << spec->first;
    const auto& id = row["doc_id"];
    EXPECT_EQ(benchmark->ItemId(index), id.is_string() ? id.get<std::string>() : id.dump());
    const auto& limits = row["generation_kwargs"];
    EXPECT_EQ(benchmark->info().default_sampling.max_new_tokens, limits.value("max_gen_toks", 256)) << spec->first;
    ++checked;
  }
  EXPECT_EQ(checked, 38);
}

// The digests of all prompts: what this version shows can't change unnoticed.
TEST(CodeBenchmarks, PromptsArePinned) {
  IHA_REQUIRE_DATA(data);
  const struct {
    const char* spec;
    int64_t size;
    const char* digest;
  } pinned[] = {{"humaneval", 164, "93a533b76cacfff8"},
                {"humaneval_instruct", 164, "80f5da4fdc105fb0"},
                {"mbpp", 500, "85457ee22eb2961e"},
                {"mbpp_instruct", 500, "da45c28400f2470c"},
                {"mbpp_sanitized", 427, "28eeaed4aa96eb7c"}};
  for (const auto& p : pinned) {
    const auto benchmark = Open(p.spec, data);
    ASSERT_NE(benchmark, nullptr);
    EXPECT_EQ(benchmark->size(), p.size) << p.spec;
    EXPECT_EQ(PromptDigest(*benchmark, benchmark->size()).Hex().substr(0, 16), p.digest) << p.spec;
  }
}

TEST(CodeBenchmarks, AnExemplarIsNeverTheItemItself) {
  IHA_REQUIRE_DATA(data);
  const auto benchmark = Open("mbpp_sanitized", data);
  ASSERT_NE(benchmark, nullptr);
  const auto problems = ReadMbpp(data, MbppSet::kFull);
  ASSERT_TRUE(problems.ok());
  int exemplars = 0;
  for (int64_t i = 0; i < benchmark->size(); ++i) {
    if (benchmark->ItemId(i) != "2" && benchmark->ItemId(i) != "3" && benchmark->ItemId(i) != "4") continue;
    ++exemplars;
    const std::string text = benchmark->Render(i).text;
    for (const MbppProblem& problem : *problems) {
      if (std::to_string(problem.task_id) == benchmark->ItemId(i)) {
        EXPECT_EQ(text.find(problem.code), std::string::npos) << problem.task_id;
      }
      if (problem.task_id == 6) {
        EXPECT_THAT(text, HasSubstr(problem.code + "\n[DONE]\n\n"));
      }
    }
  }
  EXPECT_EQ(exemplars, 3);
}

TEST(CodeBenchmarks, ProgramsKeepEveryBlankOfACompletion) {
  IHA_REQUIRE_DATA(data);
  const auto humaneval = Open("humaneval", data);
  const auto mbpp = Open("mbpp_instruct", data);
  ASSERT_TRUE(humaneval != nullptr && mbpp != nullptr);
  const std::string completion = "    return 1  \n\n";
  EXPECT_THAT(humaneval->Code(2, completion).program, StartsWith(humaneval->Render(2).text + completion + "\n"));
  EXPECT_THAT(humaneval->Code(2, completion).program, EndsWith("\ncheck(truncate_number)"));
  EXPECT_THAT(mbpp->Code(0, "def f():\n    pass\n```\nAnd so on.").program,
              StartsWith("def f():\n    pass\n\nassert "));
}

// Passes candidates that hold "right"; those that hold "forged" as suspects; breaks at "broken".
class WordJudge final : public CodeJudge {
 public:
  absl::Status Ready() override { return absl::OkStatus(); }
  absl::StatusOr<CodeVerdict> Judge(const CodeTask&, const std::string& candidate, CodeRule rule) override {
    {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(asked_.emplace(candidate, rule).second) << "judged twice: " << candidate;
    }
    if (candidate.find("broken") != std::string::npos) return absl::UnavailableError("lost");
    const bool forged = candidate.find("forged") != std::string::npos;
    const bool right = forged || candidate.find("right") != std::string::npos;
    return CodeVerdict{.official_passed = right,
                       .suspect = forged,
                       .result = forged  ? "suspect"
                                 : right ? "passed"
                                         : "failed: AssertionError",
                       .reason = "because",
                       .detail = "",
                       .out = "",
                       .err = ""};
  }
  int parallel() const override { return 3; }

 private:
  std::mutex mutex_;
  std::set<std::pair<std::string, CodeRule>> asked_;
};

TEST(CodeBenchmarks, SuspectsPassByTheOfficialMetricOnly) {
  IHA_REQUIRE_DATA(data);
  auto graders = std::make_shared<Graders>(GraderOptions{.judge = std::make_shared<WordJudge>()});
  const auto benchmark = Open("humaneval", data, graders);
  ASSERT_NE(benchmark, nullptr);
  const std::vector<std::string> texts = {"right", "wrong", "forged", "right", "more right"};
  const auto grades = benchmark->Grade(0, texts, benchmark->info().metrics);
  ASSERT_EQ(grades.size(), texts.size());
  const int passed[] = {1, 0, 0, 1, 1};
  const int official[] = {1, 0, 1, 1, 1};
  for (size_t i = 0; i < texts.size(); i++) {
    EXPECT_EQ(grades[i][0].metric, "humaneval.pass@k");
    EXPECT_EQ(grades[i][0].score.num, passed[i]) << texts[i];
    EXPECT_EQ(grades[i][1].score.num, official[i]) << texts[i];
    EXPECT_EQ(grades[i][0].reason, "because");
  }
  EXPECT_EQ(grades[2][0].extracted, "suspect");
  const auto values =
      ItemValues({"humaneval.pass@1", "humaneval.pass@2", "humaneval.official.pass@5", "humaneval.pass@6"}, grades);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].score, (Score{3, 5}));
  EXPECT_EQ((*values)[1].score, (Score{9, 10}));  // 1 - C(2,2)/C(5,2)
  EXPECT_EQ((*values)[2].score, (Score{1, 1}));
  EXPECT_EQ((*values)[3].unscored, Unscored::kUndefined);
}

TEST(CodeBenchmarks, WithoutAVerdictNothingIsWrong) {
  IHA_REQUIRE_DATA(data);
  const auto none = Open("mbpp", data);
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(none->Grade(0, {"right"}, none->info().metrics)[0][0].unscored, Unscored::kGraderUnavailable);
  auto graders = std::make_shared<Graders>(GraderOptions{.judge = std::make_shared<WordJudge>()});
  const auto broken = Open("mbpp", data, graders);
  EXPECT_EQ(broken->Grade(0, {"broken"}, broken->info().metrics)[0][0].unscored, Unscored::kGraderError);
}

TEST(CodeBenchmarks, MetricsAreFamilies) {
  const auto info = FindBenchmark("humaneval");
  ASSERT_TRUE(info.ok());
  SamplingParams one;
  SamplingParams ten;
  ten.samples = 10;
  EXPECT_THAT(*ResolveMetrics(*info, one, {}), ElementsAre("humaneval.pass@1"));
  EXPECT_THAT(*ResolveMetrics(*info, ten, {}), ElementsAre("humaneval.pass@1", "humaneval.pass@10"));
  EXPECT_THAT(
      *ResolveMetrics(*info, ten, {"humaneval.official.pass@k", "pass@5", "humaneval.pass@100"}),
      ElementsAre("humaneval.official.pass@1", "humaneval.official.pass@10", "humaneval.pass@5", "humaneval.pass@100"));
  EXPECT_THAT(*ResolveMetrics(*info, ten, {"pass@3?metric=humaneval.official.pass@k"}),
              ElementsAre("humaneval.official.pass@3"));
  for (const char* bad : {"humaneval.pass@0", "humaneval.pass@x", "mbpp.pass@1", "maj@5", "humaneval.pass"}) {
    EXPECT_EQ(ResolveMetrics(*info, ten, {bad}).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_THAT(std::string(ResolveMetrics(*info, ten, {"maj@5"}).status().message()), HasSubstr("no answers"));
}

TEST(CodeBenchmarks, BadOptionsAreNamed) {
  IHA_REQUIRE_DATA(data);
  for (const auto& [spec, word] :
       std::map<std::string, std::string>{{"humaneval?prompt=chat", "prompt"},
                                          {"humaneval_instruct?prompt=x", "prompt"},
                                          {"humaneval_instruct?extract=x", "extract"},
                                          {"mbpp?fewshot=4", "fewshot"},
                                          {"mbpp_instruct?template_date=x", "template_date"}}) {
    const auto opened = OpenBenchmark(*ParseBenchmarkRef(spec), data);
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument) << spec;
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(word)) << spec;
  }
}

TEST(CodeData, GzipIsCheckedAndBounded) {
  EXPECT_EQ(Gunzip("not gzip", 100).status().code(), absl::StatusCode::kDataLoss);
  const std::string empty_member("\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", 20);
  const auto text = Gunzip(empty_member, 100);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "");
  EXPECT_EQ(Gunzip(empty_member.substr(0, 12), 100).status().code(), absl::StatusCode::kDataLoss);
  // 64 bytes "a", which fit into the first step of any decoder.
  const std::string member(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\x4c\xa4\x0c\x00\x00\x55\x65\xb4\x89\x40\x00\x00\x00", 24);
  EXPECT_EQ(Gunzip(member, 64).value_or(""), std::string(64, 'a'));
  EXPECT_EQ(Gunzip(member, 63).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace iha::benchmarks
