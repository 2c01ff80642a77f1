// Benchmark specs as text, the registry, options and their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/benchmark.h"

namespace iha::benchmarks {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

TEST(BenchmarkSpec, RoundTripsWithEscapes) {
  const auto ref = ParseBenchmarkRef("gsm8k?prompt=chat&fewshot=8&system=Be%20brief%26kind%3D%25");
  ASSERT_TRUE(ref.ok()) << ref.status();
  EXPECT_EQ(ref->name, "gsm8k");
  EXPECT_EQ(ref->options.at("system"), "Be brief&kind=%");
  EXPECT_EQ(ToString(*ref), "gsm8k?fewshot=8&prompt=chat&system=Be%20brief%26kind%3D%25");
  EXPECT_EQ(*ParseBenchmarkRef(ToString(*ref)), *ref);
  EXPECT_EQ(ToString(*ParseBenchmarkRef("gsm8k")), "gsm8k");
  EXPECT_EQ(ParseBenchmarkRef("gsm8k?system=")->options.at("system"), "");
}

TEST(BenchmarkSpec, BadSpecsNameTheirPart) {
  const std::pair<const char*, const char*> bad[] = {
      {"", "name is empty"},        {"?a=1", "name is empty"},        {"gsm8k?fewshot", "option=value"},
      {"gsm8k?=3", "option=value"}, {"gsm8k?a=1&a=2", "given twice"}, {"gsm8k?a=%2", "two hex digits"},
      {"gsm8k?", "option=value"},
  };
  for (const auto& [spec, part] : bad) {
    const auto ref = ParseBenchmarkRef(spec);
    EXPECT_EQ(ref.status().code(), absl::StatusCode::kInvalidArgument) << spec;
    EXPECT_THAT(ErrorOf(ref.status()), HasSubstr(part)) << spec;
  }
}

TEST(TakeSampling, MovesSamplingSettingsOutOfTheOptions) {
  BenchmarkRef ref = *ParseBenchmarkRef("gsm8k?samples=5&temperature=0.6&fewshot=8&seed=18446744073709551615&top_k=3");
  SamplingParams sampling;
  ASSERT_TRUE(TakeSampling(ref, sampling).ok());
  EXPECT_EQ(ToString(ref), "gsm8k?fewshot=8");
  SamplingParams expected;
  expected.samples = 5;
  expected.temperature = 0.6;
  expected.seed = 18446744073709551615u;
  expected.top_k = 3;
  EXPECT_EQ(sampling, expected);
}

TEST(TakeSampling, RefusesWhatIsNoNumberOfTheRange) {
  for (const char* spec : {"gsm8k?samples=0", "gsm8k?samples=5x", "gsm8k?samples=", "gsm8k?temperature=-1",
                           "gsm8k?temperature=nan", "gsm8k?temperature=inf", "gsm8k?top_p=0", "gsm8k?top_p=1.5",
                           "gsm8k?seed=-1", "gsm8k?max_new_tokens=0", "gsm8k?samples=99999999999"}) {
    BenchmarkRef ref = *ParseBenchmarkRef(spec);
    SamplingParams sampling;
    const absl::Status status = TakeSampling(ref, sampling);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec;
    EXPECT_EQ(sampling, SamplingParams{}) << spec;
  }
}

TEST(Registry, ListsEachBenchmarkOnceWithWhatItNeeds) {
  std::set<std::string> names;
  for (const BenchmarkInfo& info : ListBenchmarks()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.version.empty() || info.grader_version.empty() || info.protocol.empty()) << info.name;
    EXPECT_FALSE(info.default_metrics.empty());
    for (const MetricInfo& metric : info.metrics) EXPECT_FALSE(metric.description.empty()) << metric.name;
  }
  EXPECT_EQ(names.count("gsm8k") + names.count("gsm8k_demo"), 2u);
}

TEST(Registry, UnknownNameSuggestsTheNearest) {
  const auto opened = OpenBenchmark({"gsm8k_dem", {}}, "");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(opened.status()), HasSubstr("gsm8k_demo"));
}

TEST(Options, BadOnesAreRefusedWithWhatIsExpected) {
  const std::pair<std::map<std::string, std::string>, const char*> bad[] = {
      {{{"fewshots", "5"}}, "fewshot"},
      {{{"fewshot", "six"}}, "integer from 0 to 5"},
      {{{"fewshot", "6"}}, "integer from 0 to 5"},
      {{{"fewshot", "-1"}}, "integer from 0 to 5"},
      {{{"exemplars", "random"}}, "first_n, per_item, lm_eval"},
      {{{"prompt", "chatty"}}, "plain, chat, chat_single"},
      {{{"fewshot_seed", "1.5"}}, "fewshot_seed"},
  };
  for (const auto& [options, part] : bad) {
    const auto opened = OpenBenchmark({"gsm8k_demo", options}, "");
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument) << part;
    EXPECT_THAT(ErrorOf(opened.status()), HasSubstr(part));
  }
}

TEST(Options, DefaultsAreFilledIn) {
  const auto opened = OpenBenchmark({"gsm8k_demo", {{"fewshot", "2"}}}, "");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(ToString((*opened)->ref()),
            "gsm8k_demo?exemplars=first_n&fewshot=2&fewshot_seed=1234&prompt=plain&system=&template_date=2024-07-26&"
            "think=keep");
}

TEST(Options, TheTemplateDateIsADay) {
  for (const char* date :
       {"", "2024-7-26", "2024-02-30", "today", "2024-07-26 ", "0000-01-01", "-024-01-01", "10000-01-01"}) {
    const auto opened = OpenBenchmark({"gsm8k_demo", {{"template_date", date}}}, "");
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument) << date;
    EXPECT_THAT(opened.status().message(), ::testing::HasSubstr("option template_date: found")) << date;
  }
  const auto opened = OpenBenchmark({"gsm8k_demo", {{"prompt", "chat"}, {"template_date", "2025-01-02"}}}, "");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->Render(0).template_date, "2025-01-02");
}

TEST(PromptDigest, ChangesWithAnythingThatThePromptDependsOn) {
  const auto digest = [](const std::map<std::string, std::string>& options, int64_t items) {
    return PromptDigest(**OpenBenchmark({"gsm8k_demo", options}, ""), items);
  };
  EXPECT_EQ(digest({}, 24), digest({{"fewshot", "5"}}, 24));
  EXPECT_NE(digest({}, 24), digest({}, 23));
  EXPECT_NE(digest({}, 24), digest({{"fewshot", "4"}}, 24));
  EXPECT_NE(digest({}, 24), digest({{"exemplars", "per_item"}}, 24));
  EXPECT_NE(digest({}, 24), digest({{"prompt", "chat"}}, 24));
  EXPECT_NE(digest({}, 24), digest({{"system", "x"}}, 24));
  EXPECT_NE(digest({{"prompt", "chat"}}, 24), digest({{"prompt", "chat"}, {"template_date", "2024-07-27"}}, 24));
}

}  // namespace
}  // namespace iha::benchmarks
