// The sequential gate: verdicts before the last item, what it may look at, and its error rates under peeking.
#include "reports/gate_sequential.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/rng.h"
#include "reports/gate_render.h"

namespace iha::reports {
namespace {

using ::testing::HasSubstr;

// `value(i)` is item i's grade; -1: not committed.
GateRun RunOf(int items, const std::function<int(int)>& value, int entries = 1) {
  GateRun run{.sweep = std::string(64, 'a'),
              .model = "m",
              .weights = {},
              .tokenizer = {},
              .numerics_id = "cpu-exact/1",
              .iha_eval_version = "0.1.0",
              .entries = {}};
  for (int e = 0; e < entries; e++) {
    GateEntry entry;
    entry.benchmark.name = fmt::format("own{}", e);
    entry.planned = items;
    entry.metrics = {{.name = "exact"}};
    for (int i = 0; i < items; i++) {
      if (value(i) < 0) continue;
      entry.items.push_back({.index = i, .id = std::to_string(i), .outputs = {}, .values = {Score{value(i), 1}}});
    }
    run.entries.push_back(std::move(entry));
  }
  FixMargins(run, {});
  return run;
}

int Half(int i) { return i % 2; }

SequentialReport Walked(const GateRun& candidate, const GateRun& baseline, const SequentialOptions& options = {}) {
  const auto report = EvaluateSequentially(candidate, baseline, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.value_or(SequentialReport{});
}

TEST(SequentialGate, StopsOnceTheVerdictIsCertain) {
  const GateRun baseline = RunOf(1000, Half);
  const SequentialOptions wide{.gate = {.margin = 0.05}};
  const SequentialReport same = Walked(baseline, baseline, wide);
  EXPECT_EQ(same.verdict, Verdict::kPass);
  EXPECT_LT(same.used, 600);
  EXPECT_THAT(same.reason, HasSubstr(fmt::format("after {} of 1000 items", same.used)));
  const SequentialReport ruined = Walked(RunOf(1000, [](int) { return 0; }), baseline, wide);
  EXPECT_EQ(ruined.verdict, Verdict::kFail);
  EXPECT_LT(ruined.used, 100);
  const SequentialReport better = Walked(RunOf(1000, [](int) { return 1; }), baseline, wide);
  EXPECT_EQ(better.verdict, Verdict::kPass);
  EXPECT_LT(better.used, same.used);
}

// Votes of 16 that 9 samples settle; an item without samples had no vote to stop.
TEST(SequentialGate, SaysWhatSettledVotesTook) {
  const GateRun baseline = RunOf(1000, Half, 2);
  GateRun candidate = RunOf(1000, Half, 2);
  GateEntry& votes = candidate.entries[1];
  votes.stop_settled_votes = true;
  for (GateItem& item : votes.items) item.samples = item.index % 10 == 0 ? 0 : 9;
  GateRun other = baseline;
  for (GateRun* run : {&candidate, &other}) run->entries[1].sampling.samples = 16;
  const SequentialReport report = Walked(candidate, other, {.gate = {.margin = 0.05}});
  EXPECT_EQ(report.verdict, Verdict::kPass);
  const int64_t used = report.metrics[1].used, voted = report.vote_samples / 9;
  EXPECT_EQ(report.vote_samples, 9 * voted);
  EXPECT_EQ(report.vote_samples_planned, 16 * voted);
  EXPECT_LT(voted, used);
  EXPECT_GT(voted, used * 8 / 10);
  EXPECT_THAT(report.reason,
              HasSubstr(fmt::format("; their votes were settled by {} of {} samples", 9 * voted, 16 * voted)));
  const auto json = nlohmann::json::parse(RenderSequentialJson(report), nullptr, false);
  EXPECT_EQ(json["vote_samples"], 9 * voted);
  EXPECT_EQ(json["vote_samples_planned"], 16 * voted);
  EXPECT_EQ(Walked(baseline, baseline).vote_samples_planned, 0);
}

// A candidate whose votes are an entry of their own, beside a mean of the same setting, which takes all samples.
TEST(SequentialGate, CountsSamplesByTheCandidatesEntries) {
  GateRun baseline = RunOf(1000, Half), candidate = RunOf(1000, Half, 2);
  baseline.entries[0].metrics.push_back({.name = "maj@16", .margin = Margin{0.05, "given"}});
  for (GateItem& item : baseline.entries[0].items) item.values.push_back(item.values[0]);
  candidate.entries[1].benchmark.name = "own0";
  candidate.entries[1].metrics[0].name = "maj@16";
  candidate.entries[1].stop_settled_votes = true;
  for (GateItem& item : candidate.entries[1].items) item.samples = 9;
  for (GateRun* run : {&candidate, &baseline}) {
    for (GateEntry& entry : run->entries) entry.sampling.samples = 16;
  }
  const SequentialReport report = Walked(candidate, baseline, {.gate = {.margin = 0.05}});
  EXPECT_EQ(report.planned, 1000);
  EXPECT_EQ(report.vote_samples, 9 * report.metrics[1].used);
  EXPECT_EQ(report.vote_samples_planned, 16 * report.metrics[1].used);
}

TEST(SequentialGate, EndsAtTheFirstItemThatIsMissing) {
  const GateRun baseline = RunOf(1000, Half);
  const SequentialReport none = Walked(RunOf(1000, [](int) { return -1; }), baseline);
  EXPECT_EQ(none.verdict, Verdict::kInconclusive);
  EXPECT_EQ(none.used, 0);
  // The first 500 by index are no sample: in a random order one of the others comes soon.
  const SequentialReport front = Walked(RunOf(1000, [](int i) { return i < 500 ? Half(i) : -1; }), baseline);
  EXPECT_EQ(front.verdict, Verdict::kInconclusive);
  EXPECT_LT(front.used, 50);
  EXPECT_EQ(front.reason, fmt::format("not certain after {} of 1000 items", front.used));
}

TEST(SequentialGate, EveryMetricMustPassAndOneFails) {
  const GateRun baseline = RunOf(1000, Half, 3);
  GateRun candidate = RunOf(1000, Half, 3);
  candidate.entries[1] = RunOf(
                             1000, [](int) { return 0; }, 3)
                             .entries[1];
  const SequentialReport report = Walked(candidate, baseline, {.gate = {.margin = 0.05}});
  EXPECT_EQ(report.verdict, Verdict::kFail);
  EXPECT_EQ(report.metrics[1].verdict, Verdict::kFail);
  EXPECT_NE(report.metrics[0].verdict, Verdict::kFail);
  EXPECT_EQ(report.planned, 3000);
  EXPECT_EQ(Walked(baseline, baseline, {.gate = {.margin = 0.05}}).verdict, Verdict::kPass);
  GateRun partly = RunOf(1000, Half, 3);
  partly.entries[2].items.clear();
  EXPECT_EQ(Walked(partly, baseline, {.gate = {.margin = 0.05}}).verdict, Verdict::kInconclusive);
}

// What a running sweep shows is what it will show at its end: an entry that is faster than another decides nothing
// alone, and once there is a verdict it stays, with the items that it needed.
TEST(SequentialGate, InStepAPartGivesTheVerdictOfTheWhole) {
  const GateRun baseline = RunOf(400, Half, 2);
  GateRun whole = RunOf(400, Half, 2);
  whole.entries[0] = RunOf(400, [](int) { return 0; }).entries[0];
  const SequentialOptions in_step{.gate = {.margin = 0.05}, .in_step = true};
  const SequentialReport end = Walked(whole, baseline, in_step);
  EXPECT_EQ(end.verdict, Verdict::kFail);
  GateRun fast = whole;
  fast.entries[1].items.clear();
  EXPECT_EQ(Walked(fast, baseline, {.gate = {.margin = 0.05}}).verdict, Verdict::kFail);
  EXPECT_EQ(Walked(fast, baseline, in_step).verdict, Verdict::kInconclusive);
  // Items arrive in the order of the seed.
  const std::vector<int64_t> order = SeededOrder(in_step.seed, 400);
  for (size_t arrived = 0; arrived <= order.size(); arrived += 20) {
    GateRun part = whole;
    for (GateEntry& entry : part.entries) {
      std::erase_if(entry.items, [&](const GateItem& item) {
        return std::find(order.begin(), order.begin() + static_cast<int64_t>(arrived), item.index) ==
               order.begin() + static_cast<int64_t>(arrived);
      });
    }
    const SequentialReport seen = Walked(part, baseline, in_step);
    if (seen.verdict == Verdict::kInconclusive) {
      EXPECT_LE(arrived, static_cast<size_t>(end.metrics[0].used));
    } else {
      EXPECT_EQ(RenderSequentialJson(seen), RenderSequentialJson(end));
    }
  }
}

TEST(SequentialGate, RefusesAsTheGateDoesAndPrintsBothForms) {
  const GateRun baseline = RunOf(20, Half);
  GateRun other = RunOf(20, Half);
  other.entries[0].sampling.seed = 7;
  EXPECT_THAT(std::string(EvaluateSequentially(other, baseline, {}).status().message()),
              HasSubstr("seed: candidate 7"));
  GateRun bare = RunOf(20, Half);
  bare.entries[0].metrics[0].margin.reset();
  EXPECT_THAT(std::string(EvaluateSequentially(baseline, bare, {}).status().message()), HasSubstr("no margin"));
  const SequentialReport report = Walked(baseline, baseline);
  EXPECT_THAT(RenderSequentialText(report), HasSubstr("INCONCLUSIVE (sequential, alpha 0.05): not certain after 20"));
  EXPECT_EQ(nlohmann::json::parse(RenderSequentialJson(report))["items_used"], 20);
}

// Candidates that did not get worse, and some that lost just the margin; a look after every item.
TEST(SequentialGate, PeekingKeepsBothErrorRates) {
  constexpr int kRuns = 400, kItems = 300;
  constexpr double kLimit = 0.05 + 2 * 0.0109;  // two standard errors of 0.05 over 400 runs
  PhiloxStream random(12);
  for (const bool benchmark : {false, true}) {
    int alarms = 0, passes = 0;
    for (int run = 0; run < kRuns; run++) {
      const GateRun baseline = RunOf(kItems, Half);
      // 10 % of the items change. Of the first kind as many are gained as lost; of the second 10 points are lost.
      const auto swap = [&](int i) { return i % 20 < 2 ? 1 - Half(i) : Half(i); };
      const auto lose = [&](int i) { return i % 10 == 1 ? 0 : Half(i); };
      SequentialOptions options{.gate = {.margin = 0.1}, .seed = random.NextBits(), .benchmark = benchmark};
      alarms += Walked(RunOf(kItems, swap), baseline, options).verdict == Verdict::kFail ? 1 : 0;
      passes += Walked(RunOf(kItems, lose), baseline, options).verdict == Verdict::kPass ? 1 : 0;
    }
    RecordProperty(benchmark ? "benchmark_false_alarms" : "false_alarms", alarms);
    RecordProperty(benchmark ? "benchmark_false_passes" : "false_passes", passes);
    EXPECT_LE(alarms, kLimit * kRuns);
    EXPECT_LE(passes, kLimit * kRuns);
  }
}

}  // namespace
}  // namespace iha::reports
