#include "coordinator/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "coordinator/store/spec_json.h"
#include "tests/coordinator/sim_benchmark.h"
#include "tests/support/temp_dir.h"

namespace iha::coordinator {
namespace {

using ::testing::HasSubstr;

TEST(Planner, CutsWholeItemsBySize) {
  const std::vector<NewShard> shards = CutShards({5, 5, 5, 50, 5, 5}, 10);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const NewShard& shard : shards) ranges.push_back({shard.range.begin, shard.range.end});
  // The item that is larger than a shard stands alone.
  EXPECT_EQ(ranges, (std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 3}, {3, 4}, {4, 6}}));
  EXPECT_EQ(shards[2].estimated_tokens, 50);
  EXPECT_TRUE(CutShards({}, 10).empty());
}

TEST(Planner, EstimatesPromptAndSamples) {
  SamplingParams sampling;
  sampling.samples = 5;
  sampling.max_new_tokens = 100;
  EXPECT_EQ(EstimateTokens({.text = std::string(30, 'x'), .messages = {}, .stops = {}}, sampling), 10 + 500);
  // In chat form the text is unused.
  EXPECT_EQ(
      EstimateTokens({.text = "ignored", .messages = {{"system", "abc"}, {"user", "def"}}, .stops = {}}, sampling),
      2 + 500);
}

TEST(Planner, EstimatesEachChoiceBehindThePrompt) {
  const benchmarks::Prompt prompt{
      .text = std::string(30, 'x'), .messages = {}, .stops = {}, .choices = {"abc", std::string(33, 'y')}};
  EXPECT_EQ(EstimateTokens(prompt, SamplingParams()), 11 + 21);
}

// Nothing is drawn: what could only be a mistake is refused, what changes nothing makes no other sweep.
TEST(Planner, SamplingHasNoPartInScoring) {
  const iha::testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir.File("q"), R"({"question":"q","choices":["a","b"],"answer":0})").ok());
  SweepSpec spec;
  spec.models = {{.name = "m", .weights_digest = ""}};
  spec.entries.emplace_back().benchmark.name = "choice:" + dir.File("q");
  const auto open = [](const BenchmarkRef& ref) { return benchmarks::OpenBenchmark(ref, ""); };
  const auto plain = Plan(spec, open);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->spec.entries[0].metrics, (std::vector<std::string>{"acc", "acc_norm"}));
  SweepSpec other = spec;
  other.entries[0].sampling.seed = 7;
  other.entries[0].sampling.top_p = 0.5;
  other.entries[0].sampling.max_new_tokens = 9;
  const auto same = Plan(other, open);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->id, plain->id);
  EXPECT_FALSE(plain->spec.entries[0].sampling.draws());
  const auto again = Plan(plain->spec, open);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->id, plain->id);
  for (const bool samples : {true, false}) {
    SweepSpec bad = spec;
    if (samples) {
      bad.entries[0].sampling.samples = 5;
    } else {
      bad.entries[0].sampling.temperature = 0.5;
    }
    const auto refused = Plan(bad, open);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("its choices are scored, nothing is drawn"));
  }
}

TEST(Planner, PlansOneJobForEachCellModelMajor) {
  SweepSpec spec = SimSweep(5, 2, 2);
  spec.models.push_back({"family/m2", ""});
  spec.entries.push_back(spec.entries[0]);
  spec.entries[1].sampling.temperature = 0.6;
  const auto plan = Plan(spec, SimOpener());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->jobs.size(), 4u);
  for (size_t j = 0; j < 4; ++j) {
    const JobSpec& job = plan->jobs[j].spec;
    EXPECT_EQ(job.model_index, static_cast<int32_t>(j / 2));
    EXPECT_EQ(job.entry_index, static_cast<int32_t>(j % 2));
    EXPECT_EQ(job.model, plan->spec.models[j / 2]);
    EXPECT_EQ(job.entry, plan->spec.entries[j % 2]);
    EXPECT_EQ(job.sweep, plan->id);
    EXPECT_EQ(job.items, 5);
    EXPECT_EQ(job.grader_version, "sim-grader/1");
    EXPECT_EQ(plan->jobs[j].id, IdOf(job));
    EXPECT_EQ(plan->jobs[j].shards.size(), 3u);
  }
  EXPECT_EQ(plan->id, IdOf(plan->spec));
}

TEST(Planner, FillsInDefaultsSoThatEqualRequestsHaveOneId) {
  const SweepSpec plain = SimSweep(8, 2, 2);
  SweepSpec spelled = plain;
  spelled.entries[0].metrics = {"sim.exact", "maj@2"};
  spelled.entries[0].limit = 8;  // all there are
  const auto a = Plan(plain, SimOpener());
  const auto b = Plan(spelled, SimOpener());
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(a->id, b->id);
  EXPECT_EQ(a->spec.entries[0].metrics, (std::vector<std::string>{"sim.exact", "maj@2?metric=sim.exact"}));
  EXPECT_FALSE(a->spec.entries[0].limit.has_value());
  const auto again = NormalizeSpec(a->spec, SimOpener());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, a->spec);  // idempotent

  SweepSpec options = plain;
  options.entries[0].benchmark.options.clear();  // items=8 is the default
  const auto c = Plan(options, SimOpener());
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->id, a->id);

  SweepSpec digest = plain;
  digest.models[0].weights_digest = std::string(64, 'A');
  const auto d = NormalizeSpec(digest, SimOpener());
  ASSERT_TRUE(d.ok());
  EXPECT_EQ(d->models[0].weights_digest, std::string(64, 'a'));
}

TEST(Planner, WhatIsAskedDecidesTheId) {
  const SweepSpec base = SimSweep(8, 2, 2);
  std::vector<SweepSpec> others(7, base);
  others[0].run_tag = "x";
  others[1].entries[0].sampling.seed += 1;
  others[2].entries[0].limit = 7;
  others[3].models[0].name = "n";
  others[4].numerics.kv_dtype = "bf16";
  others[5].max_attempts = 4;
  others[6].entries[0].metrics = {"sim.any"};
  const auto id = Plan(base, SimOpener())->id;
  for (size_t i = 0; i < others.size(); ++i) {
    const auto plan = Plan(others[i], SimOpener());
    ASSERT_TRUE(plan.ok()) << i << plan.status();
    EXPECT_NE(plan->id, id) << i;
  }
  // Other data: the same request, other jobs.
  const auto changed = Plan(base, SimOpener({.grader_version = "sim-grader/1", .data = "v2"}));
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->id, id);
  EXPECT_NE(changed->jobs[0].id, Plan(base, SimOpener())->jobs[0].id);
}

struct Bad {
  const char* what;
  void (*change)(SweepSpec&);
  const char* message;
};

TEST(Planner, OddModelNamesAreNames) {
  for (const char* name : {"a=b", "a b/c", "caf\xC3\xA9", "..a"}) EXPECT_TRUE(ValidateModelName(name).ok()) << name;
}

TEST(Planner, RefusesBadSpecsWithFieldFoundAndExpected) {
  const Bad rows[] = {
      {"no model", [](SweepSpec& s) { s.models.clear(); }, "models: empty"},
      {"twice", [](SweepSpec& s) { s.models.push_back(s.models[0]); }, "twice"},
      {"parent", [](SweepSpec& s) { s.models[0].name = "a/../b"; }, "\"..\" as a component"},
      {"absolute", [](SweepSpec& s) { s.models[0].name = "/m"; }, "absolute path"},
      {"empty part", [](SweepSpec& s) { s.models[0].name = "a//b"; }, "empty component"},
      {"trailing slash", [](SweepSpec& s) { s.models[0].name = "a/"; }, "empty component"},
      {"C1 control", [](SweepSpec& s) { s.models[0].name = "a\xC2\x9B"; }, "control character"},
      {"bidi", [](SweepSpec& s) { s.models[0].name = "a\xE2\x80\xAE"; }, "direction override"},
      {"bytes", [](SweepSpec& s) { s.models[0].name = "a\xFF"; }, "broken UTF-8"},
      {"control", [](SweepSpec& s) { s.models[0].name = "a\nb"; }, "control character"},
      {"digest", [](SweepSpec& s) { s.models[0].weights_digest = "12"; }, "64 hex characters"},
      {"no entry", [](SweepSpec& s) { s.entries.clear(); }, "benchmarks: empty"},
      {"same entry", [](SweepSpec& s) { s.entries.push_back(s.entries[0]); }, "equal to benchmarks[0]"},
      {"limit 0", [](SweepSpec& s) { s.entries[0].limit = 0; }, "limit 0; expected at least 1"},
      {"limit -1", [](SweepSpec& s) { s.entries[0].limit = -1; }, "limit -1"},
      {"temperature", [](SweepSpec& s) { s.entries[0].sampling.temperature = -1; }, "temperature -1"},
      {"temperature that no engine takes", [](SweepSpec& s) { s.entries[0].sampling.temperature = 1e-5; },
       "temperature 1e-05; expected 0 (greedy), or a number from 0.0001 to 1000"},
      {"nan", [](SweepSpec& s) { s.entries[0].sampling.temperature = std::nan(""); }, "temperature nan"},
      {"top_p", [](SweepSpec& s) { s.entries[0].sampling.top_p = 0; }, "top_p 0; expected a number in (0, 1]"},
      {"top_k", [](SweepSpec& s) { s.entries[0].sampling.top_k = -1; }, "top_k -1"},
      {"samples", [](SweepSpec& s) { s.entries[0].sampling.samples = 0; }, "samples 0"},
      {"tokens", [](SweepSpec& s) { s.entries[0].sampling.max_new_tokens = 0; }, "max_new_tokens 0"},
      {"metric", [](SweepSpec& s) { s.entries[0].metrics = {"sim.exakt"}; }, "sim.exakt"},
      {"backend", [](SweepSpec& s) { s.numerics.backend = "gpu"; }, "numerics.backend: \"gpu\""},
      {"architecture", [](SweepSpec& s) { s.numerics.backend = "torch-cuda"; }, "torch-cuda-sm_NN"},
      {"architecture of our kernels", [](SweepSpec& s) { s.numerics.backend = "cuda-exact"; }, "cuda-exact-sm_NN"},
      {"the form of a name", [](SweepSpec& s) { s.numerics.backend = "torch-cuda-sm_NN"; },
       "numerics.backend: \"torch-cuda-sm_NN\""},
      {"dtype", [](SweepSpec& s) { s.numerics.kv_dtype = "f8"; }, "numerics.kv_dtype: \"f8\""},
      {"tag line", [](SweepSpec& s) { s.run_tag = "a\nb"; }, "run_tag: \"a\\nb\"; expected one line"},
      {"tag bytes", [](SweepSpec& s) { s.run_tag = "\xFF"; }, "run_tag"},
      {"tag length", [](SweepSpec& s) { s.run_tag = std::string(1025, 'x'); }, "run_tag: 1025 bytes; at most 1024"},
      {"attempts", [](SweepSpec& s) { s.max_attempts = 0; }, "max_attempts: 0"},
      {"shard", [](SweepSpec& s) { s.shard_tokens = 0; }, "shard_tokens: 0"},
      {"option", [](SweepSpec& s) { s.entries[0].benchmark.options["x"] = "1"; }, "only option is items"},
  };
  for (const Bad& row : rows) {
    SweepSpec spec = SimSweep(4, 1, 2);
    row.change(spec);
    const auto plan = Plan(spec, SimOpener());
    ASSERT_FALSE(plan.ok()) << row.what;
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << row.what;
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(row.message)) << row.what;
    EXPECT_EQ(plan.status().message().find('\n'), absl::string_view::npos) << row.what;
  }
  SweepSpec unknown = SimSweep(4, 1, 2);
  unknown.entries[0].benchmark.name = "sin";
  EXPECT_EQ(Plan(unknown, SimOpener()).status().code(), absl::StatusCode::kNotFound);
}

TEST(SpecJson, RoundTripsEveryField) {
  SweepSpec spec = SimSweep(5, 3, 2);
  spec.models[0] = {"a/b", std::string(64, 'f')};
  spec.entries[0].limit = 3;
  spec.entries[0].sampling = {
      .temperature = 0.6, .top_p = 0.95, .top_k = 20, .samples = 3, .seed = ~uint64_t{0}, .max_new_tokens = 17};
  spec.entries[0].metrics = {"sim.any"};
  spec.entries[0].stop_settled_votes = true;
  spec.numerics = {"torch", "bf16", "bf16", "bf16"};
  spec.run_tag = "tag \"with\" \\ and \xc3\xa9";
  spec.max_attempts = 7;
  spec.shard_tokens = 99;
  spec.item_order = ~uint64_t{0};
  const auto sweep = ParseSweepSpec(ToJson(spec));
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(*sweep, spec);
  const auto plan = Plan(SimSweep(5, 3, 2), SimOpener());
  ASSERT_TRUE(plan.ok());
  const auto job = ParseJobSpec(ToJson(plan->jobs[0].spec));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(IdOf(*job), plan->jobs[0].id);
}

TEST(SpecJson, DamagedTextIsDataLoss) {
  const std::string good = ToJson(SimSweep(5, 3, 2));
  EXPECT_EQ(ParseSweepSpec("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseSweepSpec("[]").status().code(), absl::StatusCode::kDataLoss);
  for (const char* field : {"models", "entries", "run_tag", "max_attempts", "samples", "kv_dtype", "options"}) {
    std::string bad = good;
    const size_t at = bad.find(std::string("\"") + field + "\"");
    ASSERT_NE(at, std::string::npos);
    bad[at + 1] = '?';
    const auto parsed = ParseSweepSpec(bad);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kDataLoss) << field;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(field));
  }
}

TEST(SpecJson, NumbersOutOfTheirRangeAreDataLoss) {
  SweepSpec spec = SimSweep(5, 3, 2);
  spec.entries[0].limit = 3;
  const std::string good = ToJson(spec);
  for (const auto& [pointer, wrong] :
       std::vector<std::pair<const char*, nlohmann::json>>{{"/entries/0/limit", 1e96},
                                                           {"/entries/0/limit", UINT64_MAX},
                                                           {"/entries/0/limit", "3"},
                                                           {"/entries/0/sampling/samples", int64_t{1} << 32},
                                                           {"/entries/0/sampling/seed", -1},
                                                           {"/max_attempts", 1.5}}) {
    nlohmann::json bad = nlohmann::json::parse(good);
    bad[nlohmann::json::json_pointer(pointer)] = wrong;
    const auto parsed = ParseSweepSpec(bad.dump());
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kDataLoss) << pointer << " " << wrong;
  }
}

}  // namespace
}  // namespace iha::coordinator
