// The gate: verdicts as a pure function of two runs, what makes runs incomparable, the bundle, and the formats.
#include "reports/gate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include <nlohmann/json.hpp>

#include "reports/baseline_json.h"
#include "reports/gate_render.h"
#include "reports/gate_sequential.h"

namespace iha::reports {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// One entry of `items` items; the first `right` are solved, then every item whose index is in [from, to) is turned
// over.
GateEntry Entry(int items, int right, int from = 0, int to = 0) {
  GateEntry entry{.benchmark = {.name = "gsm8k", .options = {{"fewshot", "5"}, {"prompt", "plain"}}},
                  .sampling = {},
                  .benchmark_version = "gsm8k/3",
                  .grader_version = "gsm8k/1",
                  .data_digest = Sha256Of("data"),
                  .prompt_digest = Sha256Of("prompts"),
                  .planned = items,
                  .metrics = {{.name = "gsm8k.strict_match"}},
                  .items = {}};
  for (int i = 0; i < items; i++) {
    const bool turned = from <= i && i < to;
    const Score score{(i < right) != turned ? 1 : 0, 1};
    entry.items.push_back(
        {.index = i, .id = std::to_string(i), .outputs = Sha256Of(turned ? "other" : "same"), .values = {score}});
  }
  return entry;
}

GateRun RunOf(const std::string& model, std::vector<GateEntry> entries) {
  return {.sweep = std::string(64, 'a'),
          .model = model,
          .weights = Sha256Of(model),
          .tokenizer = Sha256Of("t"),
          .numerics_id = "cpu-exact/1",
          .iha_eval_version = "0.1.0",
          .entries = std::move(entries)};
}

GateRun BaselineOf(std::vector<GateEntry> entries) {
  GateRun run = RunOf("main", std::move(entries));
  FixMargins(run, {});
  return run;
}

MetricVerdict Only(const absl::StatusOr<GateReport>& report) {
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->metrics.size(), 1U);
  return report->metrics.at(0);
}

TEST(Gate, MarginIsThatAnUnchangedCandidatePassesWithPower) {
  const GateRun greedy = BaselineOf({Entry(1319, 400)});
  // 2.486475 sqrt(0.10 / 1319): 2.17 points.
  EXPECT_NEAR(greedy.entries[0].metrics[0].margin->value, 0.0216502, 1e-6);
  EXPECT_EQ(greedy.entries[0].metrics[0].margin->rule, "assumed_discordance");
  GateEntry sampled = Entry(1319, 400);
  sampled.sampling = {.temperature = 0.6, .samples = 16};
  sampled.metrics[0].within_variance = 0.08;
  const GateRun many = BaselineOf({sampled});
  EXPECT_NEAR(many.entries[0].metrics[0].margin->value, 2.486475 * std::sqrt(2 * 0.08 / 16 / 1319), 1e-7);
  EXPECT_EQ(many.entries[0].metrics[0].margin->rule, "within_item_variance");
}

TEST(Gate, VerdictsFollowBoundsAndMargin) {
  const GateRun baseline = BaselineOf({Entry(500, 250)});
  struct Case {
    const char* what;
    int from, to;
    Verdict verdict;
  };
  // Turning items below 250 loses them, above gains them; the margin is 3.52 points.
  for (const Case& c : {Case{"nothing", 0, 0, Verdict::kPass}, Case{"gains", 250, 270, Verdict::kPass},
                        Case{"evens out", 240, 260, Verdict::kPass}, Case{"loses 8 points", 210, 250, Verdict::kFail},
                        Case{"loses 1 point", 237, 258, Verdict::kPass},
                        Case{"loses 2 of 500 net, many change", 148, 350, Verdict::kInconclusive},
                        Case{"loses 2 points", 238, 250, Verdict::kFail}}) {
    const auto report = EvaluateGate(RunOf("new", {Entry(500, 250, c.from, c.to)}), baseline, {});
    const MetricVerdict verdict = Only(report);
    EXPECT_EQ(verdict.verdict, c.verdict) << c.what << ": " << verdict.reason;
    EXPECT_EQ(report->verdict, c.verdict);
    EXPECT_EQ(verdict.verdict == Verdict::kInconclusive, verdict.more_items.has_value()) << c.what;
  }
}

TEST(Gate, BitIdenticalIsAPassWithoutATestAndEqualScoresAreNot) {
  const GateRun baseline = BaselineOf({Entry(12, 6)});
  const MetricVerdict same = Only(EvaluateGate(RunOf("new", {Entry(12, 6)}), baseline, {.margin = 1e-6}));
  EXPECT_EQ(same.verdict, Verdict::kPass);
  EXPECT_EQ(same.reason, "bit-identical outputs on 12 items");
  GateEntry reworded = Entry(12, 6);
  reworded.items[3].outputs = Sha256Of("other words");
  const MetricVerdict tested = Only(EvaluateGate(RunOf("new", {reworded}), baseline, {.margin = 1e-6}));
  EXPECT_EQ(tested.verdict, Verdict::kInconclusive);
  EXPECT_FALSE(tested.identical);
}

// Five metrics of which one loses a little: by itself worse, not after Holm.
TEST(Gate, ClaimsAreCorrectedOverTheFamilyAndPassNeedsAll) {
  std::vector<GateEntry> before, after;
  for (int e = 0; e < 5; e++) {
    GateEntry entry = Entry(500, 250);
    entry.benchmark.name = fmt::format("own{}", e);
    before.push_back(entry);
    GateEntry changed = Entry(500, 250, e == 0 ? 235 : 0, e == 0 ? 255 : 0);
    changed.benchmark.name = entry.benchmark.name;
    after.push_back(changed);
  }
  const GateRun baseline = BaselineOf(before);
  const GateOptions strict{.margin = 0.01};
  const auto alone = EvaluateGate(RunOf("new", {after[0]}), BaselineOf({before[0]}), strict);
  EXPECT_EQ(Only(alone).verdict, Verdict::kFail) << Only(alone).reason;
  const auto family = EvaluateGate(RunOf("new", after), baseline, strict);
  ASSERT_TRUE(family.ok()) << family.status();
  EXPECT_EQ(family->metrics[0].verdict, Verdict::kInconclusive);
  EXPECT_NEAR(family->metrics[0].adjusted_p, 5 * family->metrics[0].test.p_worse, 1e-12);
  EXPECT_LT(family->metrics[0].test.upper, 0.0);
  EXPECT_EQ(family->verdict, Verdict::kInconclusive);
  const auto chosen = EvaluateGate(RunOf("new", after), baseline, {.metrics = {"nothing"}});
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("gsm8k.strict_match"));
}

// An entry of k samples whose grades differ by `step` on the first `differing` items, up and down in turns but for
// `net` that only lose.
GateEntry Shifted(int items, int differing, int net, double step, bool candidate) {
  GateEntry entry = Entry(items, items / 2);
  entry.sampling = {.temperature = 0.6, .samples = 5};
  for (int i = 0; i < items; i++) {
    const int up = !candidate || i >= differing ? 0 : (i < net || i % 2 == 0 ? -1 : 1);
    entry.items[static_cast<size_t>(i)].values[0] = Score{5 + up * static_cast<int>(10 * step), 10};
    if (up != 0) entry.items[static_cast<size_t>(i)].outputs = Sha256Of("other");
  }
  return entry;
}

// What it says is fed back in: that many more items alike decide, whichever test it is. Three quarters of them may not,
// where the normal approximation asks for more than the test (power), but the betting bound alone decides nothing
// before.
TEST(Gate, SaysHowMuchMoreWouldDecide) {
  struct Case {
    const char* what;
    int items, differing, net;
    double margin;
    scoring::PairedMethod method;
  };
  for (const Case& c : {Case{"bootstrap", 400, 198, 2, 0.02, scoring::PairedMethod::kBootstrapT},
                        Case{"betting", 60, 20, 2, 0.10, scoring::PairedMethod::kBetting},
                        Case{"betting, three items", 3, 2, 1, 0.10, scoring::PairedMethod::kBetting}}) {
    const auto judge = [&](int times_items) {
      // The same differences, repeated evenly: items, and those that differ, grow alike.
      const double by = static_cast<double>(times_items) / c.items;
      const auto grown = [&](int n) { return static_cast<int>(std::lround(by * n)); };
      return Only(EvaluateGate(RunOf("new", {Shifted(times_items, grown(c.differing), grown(c.net), 0.4, true)}),
                               BaselineOf({Shifted(times_items, 0, 0, 0.4, false)}), {.margin = c.margin}));
    };
    const MetricVerdict v = judge(c.items);
    ASSERT_EQ(v.verdict, Verdict::kInconclusive) << c.what << ": " << v.reason;
    ASSERT_EQ(v.test.method, c.method) << c.what;
    ASSERT_TRUE(v.more_items.has_value()) << c.what;
    EXPECT_THAT(v.reason, HasSubstr(fmt::format("about {} more item", *v.more_items)));
    // A twentieth more: the search ends within 1 / 32, and the repeated items are rounded to whole ones.
    const int enough = c.items + static_cast<int>(*v.more_items * 21 / 20) + 1;
    EXPECT_NE(judge(enough).verdict, Verdict::kInconclusive) << c.what << ", " << *v.more_items << " more";
  }
}

// Worse alone, not after Holm: what would decide is asked at Holm's level.
TEST(Gate, MoreItemsKnowOfHolm) {
  const auto more = [](int metrics) {
    std::vector<GateEntry> before, after;
    for (int e = 0; e < metrics; e++) {
      before.push_back(Entry(500, 250));
      after.push_back(Entry(500, 250, 235, e == 0 ? 255 : 265));
      before.back().benchmark.name = after.back().benchmark.name = fmt::format("own{}", e);
    }
    const auto report = EvaluateGate(RunOf("new", after), BaselineOf(before), {.margin = 0.01});
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->metrics[0].verdict, Verdict::kInconclusive) << report->metrics[0].reason;
    return report->metrics[0].more_items.value_or(-1);
  };
  EXPECT_GT(more(8), more(3));
}

// The share of resamples with random signs that pass, drawn here with another generator. 400 and 2000 draws: 3 standard
// errors of their difference are 3 sqrt(1/4 (1/400 + 1/2000)) = 0.083.
TEST(Gate, PowerOfTheBettingBoundIsThatOfItsTest) {
  const MetricVerdict v = Only(EvaluateGate(RunOf("new", {Shifted(60, 20, 2, 0.4, true)}),
                                            BaselineOf({Shifted(60, 0, 0, 0.4, false)}), {.margin = 0.10}));
  ASSERT_EQ(v.test.method, scoring::PairedMethod::kBetting);
  std::mt19937 random(7);
  int passed = 0;
  for (int draw = 0; draw < 2000; draw++) {
    std::vector<double> d;
    for (int i = 0; i < 60; i++) {
      const bool differs = random() % 60 < 20;
      d.push_back(!differs ? 0.0 : (random() % 2 == 0 ? 0.4 : -0.4));
    }
    passed += scoring::CompareDifferences(d, {.draws = 999}).lower > -0.10 ? 1 : 0;
  }
  EXPECT_NEAR(*v.power, passed / 2000.0, 0.083);
  EXPECT_LT(*v.power, scoring::PassPower(v.test.sd, v.test.items, 0.05, 0.10) - 0.1);  // what a formula would claim
}

// 59 items worse and none better: the tail lies below the rounding of 1/2.
TEST(Gate, PValuesAreNotNegative) {
  const MetricVerdict v = Only(EvaluateGate(RunOf("new", {Entry(91, 91, 0, 59)}), BaselineOf({Entry(91, 91)}), {}));
  EXPECT_EQ(v.verdict, Verdict::kFail);
  EXPECT_GT(v.test.p_worse, 0.0);
  EXPECT_LT(v.test.p_worse, 1e-12);
  EXPECT_THAT(v.reason, Not(HasSubstr("p = 0)")));
}

TEST(Gate, EveryOutputStatesAlphaAndPower) {
  const GateRun baseline = BaselineOf({Entry(500, 250)});
  const GateOptions options{.alpha = 0.01, .power = 0.9};
  const auto report = EvaluateGate(RunOf("new", {Entry(500, 250, 210, 250)}), baseline, options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->verdict, Verdict::kFail);
  EXPECT_THAT(RenderGateText(*report), HasSubstr("alpha 0.01, one-sided; power 0.9;"));
  EXPECT_THAT(RenderGateMarkdown(*report), HasSubstr("alpha 0.01, one-sided; power 0.9;"));
  EXPECT_THAT(RenderGateJunit(*report, false), AllOf(HasSubstr("<property name=\"alpha\" value=\"0.01\"/>"),
                                                     HasSubstr("<property name=\"power\" value=\"0.9\"/>")));
  EXPECT_THAT(RenderGateGithub(*report), HasSubstr("(alpha 0.01, power 0.9)"));
  // The margins were fixed at 0.05 and 0.8.
  EXPECT_THAT(report->notes, Contains(HasSubstr("fixed at alpha 0.05 and power 0.8, this gate tests at 0.01 and 0.9")));
  const auto given = EvaluateGate(RunOf("new", {Entry(500, 250)}), baseline, {.alpha = 0.01, .margin = 0.02});
  EXPECT_TRUE(given->notes.empty());
}

TEST(Gate, RefusesWhatIsNotComparableAndNamesTheField) {
  const GateRun baseline = BaselineOf({Entry(20, 10)});
  const auto refused = [&](const std::function<void(GateRun&)>& change) {
    GateRun candidate = RunOf("new", {Entry(20, 10)});
    change(candidate);
    const auto report = EvaluateGate(candidate, baseline, {});
    EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(report.status().message());
  };
  const auto entry = [](GateRun& run) -> GateEntry& { return run.entries[0]; };
  EXPECT_THAT(refused([](GateRun& r) { r.item_order = 1; }), HasSubstr("only the sequential verdict holds"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).prompt_digest = Sha256Of("x"); }),
              HasSubstr("gsm8k: prompt digest: "));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).data_digest = Sha256Of("x"); }),
              HasSubstr("data digest: candidate 2d71"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).grader_version = "gsm8k/2"; }),
              HasSubstr("grader version: candidate gsm8k/2, baseline gsm8k/1"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).benchmark_version = "gsm8k/4"; }),
              HasSubstr("benchmark version: candidate gsm8k/4, baseline gsm8k/3"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).sampling.temperature = 0.5; }),
              HasSubstr("temperature: candidate 0.5, baseline 0;"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).sampling.seed = 1; }), HasSubstr("seed: candidate 1, baseline 1234"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).sampling.top_p = 0.5; }), HasSubstr("top_p: "));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).sampling.top_k = 5; }), HasSubstr("top_k: "));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).sampling.samples = 2; }), HasSubstr("samples: candidate 2"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).sampling.max_new_tokens = 9; }), HasSubstr("max_new_tokens: "));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).planned = 19; }), HasSubstr("items: candidate 19, baseline 20"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).benchmark.options["fewshot"] = "8"; }),
              HasSubstr("option fewshot: candidate 8, baseline 5"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).benchmark.options["system"] = "s"; }),
              HasSubstr("option system: candidate s, baseline (none)"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).benchmark.name = "mbpp"; }),
              HasSubstr("gsm8k: the candidate has not run"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).metrics[0].name = "x"; }), HasSubstr("only the baseline has it"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).items.pop_back(); }), HasSubstr("1 of 20 items without a value"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).items[4].values[0].reset(); }), HasSubstr("1 of 20 items"));
  EXPECT_THAT(refused([&](GateRun& r) { entry(r).items[4].id = "z"; }), HasSubstr("item 4: candidate \"z\""));
}

TEST(Gate, ChatPromptsNeedTheSameTemplateAndOtherNumericsAreShown) {
  GateEntry chat = Entry(20, 10);
  chat.benchmark.options["prompt"] = "chat";
  const GateRun baseline = BaselineOf({chat});
  GateRun candidate = RunOf("new", {chat});
  candidate.numerics_id = "cuda-exact-sm_90/1";
  const auto report = EvaluateGate(candidate, baseline, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->notes,
              Contains(HasSubstr("numerics differ: candidate cuda-exact-sm_90/1, baseline cpu-exact/1")));
  candidate.tokenizer = Sha256Of("other");
  EXPECT_THAT(std::string(EvaluateGate(candidate, baseline, {}).status().message()), HasSubstr("tokenizer digest"));
}

// The entry with equal settings is found whatever the order, and a metric that nobody has a value of is left out.
TEST(Gate, PairsEntriesBySettingsAndLeavesOutUndefinedMetrics) {
  GateEntry greedy = Entry(20, 10), sampled = Entry(20, 12);
  sampled.sampling = {.temperature = 0.6, .samples = 4};
  for (GateItem& item : greedy.items) item.values.emplace_back();
  greedy.metrics.push_back({.name = "pass@9?metric=x"});
  const auto report = EvaluateGate(RunOf("new", {sampled, greedy, Entry(19, 3)}), BaselineOf({greedy, sampled}), {});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->metrics.size(), 2U);
  EXPECT_EQ(report->metrics[0].baseline, scoring::Rational(1, 2));
  EXPECT_EQ(report->metrics[1].baseline, scoring::Rational(3, 5));
  EXPECT_THAT(report->notes,
              Contains(HasSubstr("gsm8k x pass@9: no item of the baseline has a value (of 1 sample an item),")));
  EXPECT_THAT(report->notes, Contains(HasSubstr("only the candidate has it")));
}

// A sweep may ask for two metrics of one setting in two entries; a bundle that says one twice counts it once.
TEST(Gate, FindsAMetricInAnyEntryOfEqualSettings) {
  GateEntry strict = Entry(20, 10), robust = Entry(20, 12);
  robust.metrics[0].name = "gsm8k.robust";
  const GateRun baseline = BaselineOf({strict, robust, robust});
  const auto report = EvaluateGate(RunOf("new", {strict, robust}), baseline, {});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->metrics.size(), 2U);
  EXPECT_EQ(report->metrics[0].metric, "gsm8k.strict_match");
  EXPECT_EQ(report->metrics[1].metric, "gsm8k.robust");
  EXPECT_EQ(report->metrics[1].candidate, scoring::Rational(3, 5));
  EXPECT_TRUE(report->notes.empty());
}

TEST(Gate, PromptsThatFollowFromTheTokenizerNeedTheSame) {
  const auto other_tokenizer = [](const std::string& name, const std::map<std::string, std::string>& options) {
    GateEntry entry = Entry(20, 10);
    entry.benchmark = {.name = name, .options = options};
    GateRun candidate = RunOf("new", {entry});
    candidate.tokenizer = Sha256Of("other");
    return std::string(EvaluateGate(candidate, BaselineOf({entry}), {}).status().message());
  };
  EXPECT_THAT(other_tokenizer("ruler:vt@4096", {}),
              HasSubstr("ruler:vt@4096: tokenizer digest (it measures the length of the prompts): candidate "));
  EXPECT_THAT(other_tokenizer("jsonl:q.jsonl", {{"form", "chat"}, {"prompt", "{q}"}}),
              HasSubstr("tokenizer digest (its chat template renders the prompts)"));
  EXPECT_THAT(other_tokenizer("gsm8k", {{"prompt", "chat_single"}}), HasSubstr("tokenizer digest"));
  EXPECT_EQ(other_tokenizer("jsonl:q.jsonl", {{"form", "plain"}, {"prompt", "chat with {q}"}}), "");
  EXPECT_EQ(other_tokenizer("choice:q.jsonl", {{"prompt", "chat with {q}"}}), "");
  EXPECT_EQ(other_tokenizer("gsm8k", {{"prompt", "plain"}}), "");
}

// -45/800 of a point is -5.625: half away from zero as in tables, not to the even digit of a double.
TEST(Gate, MeansAndDeltaAreRoundedFromExactFractions) {
  GateEntry before = Entry(800, 300), after = Entry(800, 255);
  for (GateItem& item : after.items) item.outputs = Sha256Of("x");
  const auto report = EvaluateGate(RunOf("new", {after}), BaselineOf({before}), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(RenderGateText(*report), HasSubstr("candidate 31.88 %, baseline 37.50 %, Delta -5.63 points"));
  EXPECT_THAT(RenderGateMarkdown(*report), HasSubstr("| 31.88 | 37.50 | -5.63 |"));
  EXPECT_THAT(report->metrics[0].reason, HasSubstr("worse: -5.63 points"));
}

// Items that all come out alike show no scatter: nothing is claimed of what would be seen, and how many more would
// decide is asked of the test itself.
TEST(Gate, WithoutScatterItClaimsNoPower) {
  GateEntry before = Entry(8, 0), after = Entry(8, 0);
  after.items[0].outputs = Sha256Of("other words");
  const GateRun baseline = BaselineOf({before});
  const auto report = EvaluateGate(RunOf("new", {after}), baseline, {});
  const MetricVerdict v = Only(report);
  ASSERT_EQ(v.verdict, Verdict::kInconclusive) << v.reason;
  EXPECT_FALSE(v.detectable.has_value());
  EXPECT_FALSE(v.power.has_value());
  EXPECT_THAT(RenderGateText(*report), HasSubstr("no scatter tells what loss would be seen; 0.0 % of the items"));
  EXPECT_TRUE(nlohmann::json::parse(RenderGateJson(*report))["metrics"][0]["power"].is_null());
  const auto with = [&](int64_t more) {
    const int items = 8 + static_cast<int>(more);
    GateEntry enough = Entry(items, 0);
    enough.items[0].outputs = Sha256Of("other words");
    return Only(EvaluateGate(RunOf("new", {enough}), BaselineOf({Entry(items, 0)}),
                             {.margin = baseline.entries[0].metrics[0].margin->value}))
        .verdict;
  };
  EXPECT_EQ(with(*v.more_items), Verdict::kPass);
  EXPECT_EQ(with(*v.more_items - 1), Verdict::kInconclusive);
}

TEST(BaselineBundle, ComesBackAsItWas) {
  GateEntry entry = Entry(3, 1);
  entry.items[1].values[0] = Score{2, 3};
  entry.metrics[0].within_variance = 0.125;
  GateRun run = RunOf("a\"<b", {entry});
  FixMargins(run, {.alpha = 0.01, .power = 0.9, .discordance = 0.2});
  const std::string text = RenderBaseline(run, {.alpha = 0.01, .power = 0.9, .discordance = 0.2});
  const auto back = ParseBaseline(text, "b.json");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(RenderBaseline(back->run, back->rule), text);
  EXPECT_EQ(back->run.entries[0].items[1].values[0], (Score{2, 3}));
  EXPECT_EQ(back->run.entries[0].metrics[0].margin->value, run.entries[0].metrics[0].margin->value);
}

TEST(BaselineBundle, RefusesWhatItCannotTrust) {
  const GateRun run = BaselineOf({Entry(2, 1)});
  const auto good = nlohmann::ordered_json::parse(RenderBaseline(run, {}));
  const auto refused = [&](const std::string& pointer, const nlohmann::ordered_json& value) {
    auto bad = good;
    bad[nlohmann::ordered_json::json_pointer(pointer)] = value;
    const auto parsed = ParseBaseline(bad.dump(), "b.json");
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << pointer;
    return std::string(parsed.status().message());
  };
  EXPECT_THAT(refused("/schema", "iha-eval/baseline/2"), HasSubstr("b.json: field \"schema\": found"));
  EXPECT_THAT(refused("/surprise", 1), HasSubstr("field \"surprise\": unknown"));
  EXPECT_THAT(refused("/entries/0/metrics/0/margin", 0), HasSubstr("field \"margin\": found 0"));
  EXPECT_THAT(refused("/entries/0/items/0/values/0", "3/2"), HasSubstr("fractions in [0, 1]"));
  EXPECT_THAT(refused("/entries/0/items/0/values/0", "1/0"), HasSubstr("fractions in [0, 1]"));
  EXPECT_THAT(refused("/entries/0/items/1/index", 0), HasSubstr("all items in order"));
  EXPECT_THAT(refused("/entries/0/planned", 3), HasSubstr("expected 2, the number of items"));
  EXPECT_THAT(refused("/entries/0/data_digest", "zz"), HasSubstr("64 hex characters"));
  EXPECT_THAT(refused("/entries/0/sampling/seed", -1), HasSubstr("field \"seed\": found -1"));
  EXPECT_THAT(std::string(ParseBaseline("{", "b.json").status().message()), HasSubstr("b.json:1:"));
}

TEST(GateRender, HostileNamesStayText) {
  GateEntry entry = Entry(20, 10), changed = Entry(20, 10, 0, 10);
  entry.metrics[0].name = changed.metrics[0].name = "m<|>\x1b[31m\n::error::%0A&\"";
  const auto report = EvaluateGate(RunOf("new\n::error title=x::y", {changed}), BaselineOf({entry}), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kFail);
  const std::string xml = RenderGateJunit(*report, false);
  EXPECT_THAT(xml, HasSubstr("failures=\"1\" errors=\"0\""));
  EXPECT_THAT(xml, HasSubstr("m&lt;|&gt;\\x1B[31m\\n::error::%0A&amp;&quot;"));
  const std::string github = RenderGateGithub(*report);
  EXPECT_EQ(std::count(github.begin(), github.end(), '\n'), 1);
  EXPECT_THAT(github, HasSubstr("::error title=iha-eval gate FAIL gsm8k m<|>\\x1B[31m\\n%3A%3Aerror%3A%3A%250A"));
  const std::string markdown = RenderGateMarkdown(*report);
  EXPECT_THAT(markdown, HasSubstr("m\\<\\|\\>\\\\x1B\\[31m"));
  for (const std::string& text : {xml, github, markdown, RenderGateText(*report)}) {
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
  const auto json = nlohmann::json::parse(RenderGateJson(*report));
  EXPECT_EQ(json["verdict"], "FAIL");
  EXPECT_EQ(json["metrics"][0]["worse"], 10);
}

// Two shots of one benchmark: every output tells them apart, and no test case has another's name.
TEST(GateRender, EntriesThatDifferInAnySettingHaveNamesOfTheirOwn) {
  GateEntry five = Entry(20, 10), eight = Entry(20, 10);
  five.benchmark.options["fewshot"] = "5";
  eight.benchmark.options["fewshot"] = "8";
  GateEntry changed = Entry(20, 10, 0, 10);
  changed.benchmark = eight.benchmark;
  GateEntry same = five;
  const auto report = EvaluateGate(RunOf("new", {same, changed}), BaselineOf({five, eight}), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->reason, "worse in 1 of 2 metrics: gsm8k.strict_match fewshot=8");
  EXPECT_EQ(report->metrics[0].benchmark, "gsm8k fewshot=5");
  EXPECT_THAT(RenderGateJunit(*report, false), AllOf(HasSubstr("name=\"gsm8k.strict_match fewshot=5\""),
                                                     HasSubstr("name=\"gsm8k.strict_match fewshot=8\"")));
  EXPECT_THAT(RenderGateGithub(*report), HasSubstr("::error title=iha-eval gate FAIL gsm8k.strict_match fewshot=8::"));
  EXPECT_THAT(RenderGateText(*report), HasSubstr("\ngsm8k.strict_match fewshot=8: FAIL\n"));
  const auto sequential = EvaluateSequentially(RunOf("new", {same, changed}), BaselineOf({five, eight}), {});
  ASSERT_TRUE(sequential.ok()) << sequential.status();
  EXPECT_THAT(RenderSequentialText(*sequential),
              AllOf(HasSubstr("\ngsm8k.strict_match fewshot=5: "), HasSubstr("\ngsm8k.strict_match fewshot=8: ")));
  const auto json = nlohmann::json::parse(RenderSequentialJson(*sequential), nullptr, false);
  EXPECT_EQ(json["metrics"][1]["name"], report->metrics[1].name);
  EXPECT_EQ(json["metrics"][1]["benchmark"], "gsm8k fewshot=8");
  EXPECT_THAT(RenderGateMarkdown(*report), HasSubstr("| gsm8k.strict_match fewshot=8 | FAIL |"));
  EXPECT_EQ(nlohmann::json::parse(RenderGateJson(*report))["metrics"][1]["name"], "gsm8k.strict_match fewshot=8");
}

// One of anything is not told in the plural.
TEST(GateRender, WordsAgreeWithTheirNumber) {
  const GateRun baseline = BaselineOf({Entry(20, 10)});
  const auto pass = EvaluateGate(RunOf("new", {Entry(20, 10)}), baseline, {});
  ASSERT_TRUE(pass.ok()) << pass.status();
  EXPECT_EQ(pass->reason, "the metric is within its margin at alpha 0.05");
  const GateRun one = BaselineOf({Entry(1, 1)});
  const auto alone = EvaluateGate(RunOf("new", {Entry(1, 1)}), one, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_THAT(RenderGateText(*alone),
              AllOf(HasSubstr("bit-identical outputs on 1 item\n"), HasSubstr("1 item, nothing to test")));
  const auto walked = EvaluateSequentially(RunOf("new", {Entry(1, 1)}), one, {});
  ASSERT_TRUE(walked.ok()) << walked.status();
  EXPECT_EQ(walked->reason, "not certain after 1 of 1 item");
}

TEST(GateRender, InconclusiveIsAnErrorOfJunitUnlessItPasses) {
  const auto report = EvaluateGate(RunOf("new", {Entry(500, 250, 148, 350)}), BaselineOf({Entry(500, 250)}), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(RenderGateJunit(*report, false), HasSubstr("<error type=\"inconclusive\""));
  EXPECT_THAT(RenderGateJunit(*report, true), HasSubstr("failures=\"0\" errors=\"0\""));
  EXPECT_THAT(RenderGateGithub(*report), HasSubstr("::warning "));
}

}  // namespace
}  // namespace iha::reports
