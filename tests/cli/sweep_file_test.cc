// sweep.json: what is read, what is refused by which name, and that a written file reads back as the same sweep.
#include "cli/sweep_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "benchmarks/benchmark.h"
#include "reports/layout.h"

namespace iha::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SweepFile, FieldsOverrideTheSpecTextAndTheBenchmark) {
  const auto spec = ParseSweep(R"({
    // comments are fine
    "version": 1,
    "models": ["a", {"name": "b", "weights_digest": "00"}],
    "benchmarks": ["gsm8k?samples=3&fewshot=2",
                   {"spec": "gsm8k?samples=3", "samples": 5, "temperature": 0.5, "seed": 18446744073709551615,
                    "limit": 7, "metrics": ["gsm8k.robust"], "stop_settled_votes": true}],
    "numerics": {"backend": "fake"}, "run_tag": "t", "max_attempts": 2, "shard_tokens": 99,
    "item_order": 18446744073709551615
  })",
                               "f");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->models.size(), 2u);
  EXPECT_EQ(spec->models[1], (ModelRef{.name = "b", .weights_digest = "00"}));
  ASSERT_EQ(spec->entries.size(), 2u);
  EXPECT_EQ(spec->entries[0].sampling.samples, 3);
  EXPECT_EQ(spec->entries[0].benchmark.options, (std::map<std::string, std::string>{{"fewshot", "2"}}));
  EXPECT_FALSE(spec->entries[0].limit.has_value());
  EXPECT_EQ(spec->entries[1].sampling.samples, 5);
  EXPECT_EQ(spec->entries[1].sampling.temperature, 0.5);
  EXPECT_EQ(spec->entries[1].sampling.seed, UINT64_MAX);
  EXPECT_EQ(spec->entries[1].limit, 7);
  EXPECT_EQ(spec->entries[1].metrics, std::vector<std::string>{"gsm8k.robust"});
  EXPECT_FALSE(spec->entries[0].stop_settled_votes);
  EXPECT_TRUE(spec->entries[1].stop_settled_votes);
  EXPECT_EQ(spec->numerics.backend, "fake");
  EXPECT_EQ(spec->run_tag, "t");
  EXPECT_EQ(spec->max_attempts, 2);
  EXPECT_EQ(spec->shard_tokens, 99);
  EXPECT_EQ(spec->item_order, UINT64_MAX);
  const auto again = ParseSweep(SweepToJson(*spec), "again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *spec);
}

TEST(SweepFile, TheTemplateDateReachesEachBenchmarkThatHasOne) {
  const auto parse = [](const std::string& fields) {
    return ParseSweep(R"({"version": 1, "models": ["m"],
      "benchmarks": ["gsm8k_demo?prompt=chat", {"spec": "gsm8k_demo?template_date=2020-02-29"}, "unknown",
      "jsonl:q.jsonl?form=chat"])" +
                          fields + "}",
                      "f");
  };
  const auto spec = parse(R"(, "template_date": "2025-01-02")");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->entries[0].benchmark.options.at("template_date"), "2025-01-02");
  EXPECT_EQ(spec->entries[1].benchmark.options.at("template_date"), "2020-02-29");  // the nearer one
  EXPECT_TRUE(spec->entries[2].benchmark.options.empty());
  EXPECT_EQ(spec->entries[3].benchmark.options.at("template_date"), "2025-01-02");
  EXPECT_TRUE(parse("")->entries[1].benchmark.options.contains("template_date"));
  EXPECT_FALSE(parse("")->entries[0].benchmark.options.contains("template_date"));
  EXPECT_EQ(ParseSweep(SweepToJson(*spec), "again").value(), *spec);

  const auto prompts = [](const SweepSpec& sweep) {
    return benchmarks::PromptDigest(**benchmarks::OpenBenchmark(sweep.entries[0].benchmark, ""), 3);
  };
  EXPECT_EQ(prompts(*parse("")), prompts(*parse(R"(, "template_date": "2024-07-26")")));  // the default
  EXPECT_NE(prompts(*parse("")), prompts(*spec));

  for (const char* date : {"", "2024-02-30", "26 July 2024"}) {
    EXPECT_EQ(std::string(parse(fmt::format(R"(, "template_date": "{}")", date)).status().message()),
              fmt::format("f: template_date: found \"{}\"; expected a day as YYYY-MM-DD", date));
  }
  EXPECT_EQ(std::string(parse(R"(, "template_date": 20240726)").status().message()),
            "f: template_date: found 20240726; expected a string");
}

TEST(SweepFile, ExamplesAreSweeps) {
  for (const char* name : {"table1", "table2", "ruler"}) {
    const auto text = ExampleSweep(name);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto spec = ParseSweep(*text, name);
    ASSERT_TRUE(spec.ok()) << spec.status() << *text;
    for (const SweepEntry& entry : spec->entries) {
      const absl::Status opened = benchmarks::OpenBenchmark(entry.benchmark, "/none").status();
      EXPECT_EQ(std::string(opened.message()).find("unknown benchmark"), std::string::npos) << opened;
    }
    EXPECT_EQ(ParseSweep(SweepToJson(*spec), name).value(), *spec);
  }
  const std::string table2 = ExampleSweep("table2").value();
  for (const char* benchmark : {"gsm8k", "math500", "mbpp", "humaneval"}) {
    EXPECT_THAT(table2, HasSubstr(fmt::format("    {{\"spec\": \"{}", benchmark)));
  }
  EXPECT_THAT(std::string(ExampleSweep("table3").status().message()), HasSubstr("did you mean \"table"));
}

// A short form is written out, each cell with its own number of new tokens; what the file says holds for all.
TEST(SweepFile, RulerIsAnEntryForEachCell) {
  const auto spec = ParseSweep(
      R"({"version": 1, "models": ["m"], "benchmarks": ["gsm8k", {"spec": "ruler@8192,4096?mode=seeded", "limit": 5}]})",
      "f");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->entries.size(), 27u);
  EXPECT_EQ(spec->entries[1].benchmark.name, "ruler:niah_single_1@4096");
  EXPECT_EQ(spec->entries[1].sampling.max_new_tokens, 128);
  EXPECT_EQ(spec->entries[26].benchmark.name, "ruler:qa_2@8192");
  EXPECT_EQ(spec->entries[26].sampling.max_new_tokens, 32);
  EXPECT_EQ(spec->entries[26].limit, 5);
  EXPECT_EQ(spec->entries[26].benchmark.options.at("mode"), "seeded");
  EXPECT_EQ(ParseSweep(SweepToJson(*spec), "again").value(), *spec);
  EXPECT_EQ(ExampleSweep("ruler").ok() ? ParseSweep(*ExampleSweep("ruler"), "e")->entries.size() : 0, 39u);
  const auto bad = ParseSweep(R"({"version": 1, "models": ["m"], "benchmarks": ["gsm8k", "ruler@4k"]})", "f");
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("f: benchmarks[1]: ruler@4k: length '4k'"));
}

// The paper's examples ask for the columns of their layout, every one, and for nothing else.
TEST(SweepFile, ExamplesSubmitWhatTheirLayoutShows) {
  for (const std::string name : {"table1", "table2"}) {
    const auto spec = ParseSweep(ExampleSweep(name).value(), name);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_THAT(reports::LeftOut(*spec, name), IsEmpty());
    std::set<std::pair<size_t, std::string>> shown;
    const std::vector<reports::Column> columns = reports::ColumnsOf(*spec, name).value();
    for (const reports::Column& column : columns) {
      EXPECT_TRUE(shown.insert({column.entry, column.metric}).second) << column.header;
    }
    std::set<std::pair<size_t, std::string>> submitted;
    for (size_t e = 0; e < spec->entries.size(); e++) {
      for (const std::string& metric : spec->entries[e].metrics) submitted.insert({e, metric});
    }
    EXPECT_EQ(shown, submitted) << name;
  }
}

TEST(SweepFile, ErrorsNameThePlace) {
  const auto with = [](const std::string& fields) {
    return R"({"version": 1, "models": ["m"], "benchmarks": [{"spec": "gsm8k")" + fields + "}]}";
  };
  const std::pair<std::string, std::string> rows[] = {
      {"{", "f:1:2: JSON ends too early"},
      {"{\n // it's \"\n \"version\" 1}", "f:3:12: not valid JSON at \"1}\""},
      {R"({"version": 1, "models": ["m"], "benchmark": ["gsm8k"]})",
       "unknown field \"benchmark\" (did you mean \"benchmarks\"?)"},
      {R"({"version": 1, "models": ["m"], "benchmarks": [{"bench": "gsm8k"}]})",
       "benchmarks[0]: unknown field \"bench\""},
      {"[]", "f: sweep: found array; expected an object"},
      {"{}", "f: version: missing; expected 1"},
      {R"({"version": 2})", "f: version: found 2; expected 1"},
      {R"({"version": 1})", "f: models: expected a non-empty array of model names"},
      {R"({"version": 1, "models": []})", "f: models: expected a non-empty array of model names"},
      {R"({"version": 1, "models": [""], "benchmarks": ["gsm8k"]})", "f: models[0]: the model's name is empty"},
      {R"({"version": 1, "models": [{"nmae": "m"}], "benchmarks": ["gsm8k"]})", "models[0]"},
      {R"({"version": 1, "models": ["m"], "benchmarks": {}})", "f: benchmarks: expected a non-empty array"},
      {R"({"version": 1, "models": ["m"], "benchmarks": ["gsm8k?samples=x"]})", "benchmarks[0]"},
      {R"({"version": 1, "models": ["m"], "benchmarks": ["gsm8k"], "modles": 1})", "did you mean \"models\"?"},
      {with(R"(, "seed": -1)"), "benchmarks[0].seed: found -1; expected a whole number from 0"},
      {with(R"(, "samples": 3000000000)"), "benchmarks[0].samples: 3000000000 is out of range"},
      {with(R"(, "limit": 1.5)"), "benchmarks[0].limit: found 1.5; expected a whole number or null"},
      {with(R"(, "limit": 18446744073709551615)"), "benchmarks[0].limit: found 18446744073709551615"},
      {with(R"(, "samples": 18446744073709551615)"), "benchmarks[0].samples: found 18446744073709551615"},
      {with(R"(, "metrics": [1])"), "benchmarks[0].metrics: found 1; expected strings only"},
  };
  for (const auto& [text, message] : rows) {
    const absl::Status status = ParseSweep(text, "f").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << text;
  }
}

}  // namespace
}  // namespace iha::cli
