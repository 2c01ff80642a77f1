// RULER's means from cells, and what tables show of them.
#include "reports/ruler_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/render.h"
#include "reports/table.h"

namespace iha::reports {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

SweepEntry EntryOf(const std::string& task, int64_t length, const std::string& mode = "official") {
  return {.benchmark = {.name = "ruler:" + task + "@" + std::to_string(length), .options = {{"mode", mode}}},
          .sampling = {.samples = 1, .max_new_tokens = 30},
          .limit = std::nullopt,
          .metrics = {"ruler.string_match"}};
}

// One model; `scores[e]` are the items' scores in eighths, -1 for one that is not there.
Snapshot SnapshotOf(const std::vector<SweepEntry>& entries, const std::vector<std::vector<int>>& scores) {
  Snapshot snapshot;
  snapshot.iha_eval_version = "0";
  snapshot.spec.entries = entries;
  snapshot.spec.models = {{.name = "m|1", .weights_digest = ""}};
  for (size_t e = 0; e < entries.size(); e++) {
    JobRows& job = snapshot.jobs.emplace_back();
    job.spec.entry = entries[e];
    job.spec.items = static_cast<int64_t>(scores[e].size());
    job.context_tokens = 8192;
    for (size_t i = 0; i < scores[e].size(); i++) {
      ItemRow& row = job.items.emplace_back();
      row.index = static_cast<int64_t>(i);
      row.unscored = scores[e][i] < 0 ? Unscored::kDataExhausted : Unscored::kScored;
      row.samples = scores[e][i] < 0 ? 0 : 1;
      row.values.push_back({.metric = "ruler.string_match",
                            .unscored = row.unscored,
                            .score = {std::max(0, scores[e][i]), 8},
                            .winner = "",
                            .tie = {},
                            .invalid = 0});
    }
  }
  return snapshot;
}

Table TableOf(const Snapshot& snapshot) {
  auto table = BuildTable(snapshot, {});
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

// Two tasks at two lengths: means 3/4 and 1/4 make 1/2 at 4096, 1 and 7/8 make 15/16 at 8192.
Snapshot TwoByTwo() {
  return SnapshotOf({EntryOf("vt", 4096), EntryOf("cwe", 4096), EntryOf("vt", 8192), EntryOf("cwe", 8192)},
                    {{8, 4}, {2, 2}, {8, 8}, {7, 7}});
}

TEST(RulerSummary, LengthsAreMeansOfTasksAndTheirAveragesAreWeighted) {
  const Table table = TableOf(TwoByTwo());
  ASSERT_EQ(table.ruler.size(), 1u);
  const RulerSummary& summary = table.ruler[0];
  EXPECT_EQ(summary.lengths, (std::vector<int64_t>{4096, 8192}));
  EXPECT_EQ(summary.tasks, (std::vector<int>{2, 2}));
  const RulerRowSummary& row = summary.rows.at(0);
  EXPECT_EQ(row.lengths[0].mean->ToString(), "1/2");
  EXPECT_EQ(row.lengths[1].mean->ToString(), "15/16");
  EXPECT_TRUE(row.complete);
  EXPECT_EQ(row.means->average.ToString(), "23/32");
  EXPECT_EQ(row.means->weighted_increasing.ToString(), "19/24");  // (1/2 + 2 * 15/16) / 3
  EXPECT_EQ(row.means->weighted_decreasing.ToString(), "31/48");
  EXPECT_EQ(row.means->effective_length, 8192);
}

// Items of different cells are independent: the squared widths of the weighted cells add up, each side by itself.
TEST(RulerSummary, MeansHaveIntervalsOfTheirCells) {
  const std::vector<int> half = {8, 0, 8, 0, 8, 0, 8, 0, 8, 0, 8, 0}, most = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 0};
  Snapshot snapshot = SnapshotOf({EntryOf("vt", 4096), EntryOf("cwe", 4096), EntryOf("vt", 8192)}, {half, most, most});
  const RulerRowSummary row = TableOf(snapshot).ruler[0].rows[0];
  const auto below = [&](size_t job) {
    const Cell cell = CellsOf(snapshot.jobs[job])[0];
    return cell.value->ToDouble() - cell.interval->low;
  };
  const double short_mean = row.lengths[0].mean->ToDouble();
  EXPECT_NEAR(row.lengths[0].bounds->low, short_mean - std::hypot(below(0), below(1)) / 2, 1e-12);
  EXPECT_NEAR(row.lengths[1].bounds->low, 11.0 / 12 - below(2), 1e-12);
  EXPECT_NEAR(row.bounds[0]->low, row.means->average.ToDouble() - std::hypot(below(0) / 4, below(1) / 4, below(2) / 2),
              1e-12);
  EXPECT_NEAR(row.bounds[1]->low,
              row.means->weighted_increasing.ToDouble() - std::hypot(below(0) / 6, below(1) / 6, below(2) * 2 / 3),
              1e-12);
  EXPECT_NEAR(row.bounds[2]->low,
              row.means->weighted_decreasing.ToDouble() - std::hypot(below(0) / 3, below(1) / 3, below(2) / 3), 1e-12);
  snapshot.jobs[2].items.pop_back();
  const RulerRowSummary part = TableOf(snapshot).ruler[0].rows[0];
  EXPECT_TRUE(part.lengths[0].bounds.has_value());
  EXPECT_FALSE(part.lengths[1].bounds.has_value());
  EXPECT_FALSE(part.bounds[0].has_value());
}

TEST(RulerSummary, EveryFormatShowsThem) {
  const Table table = TableOf(TwoByTwo());
  const std::string markdown = RenderMarkdown(table);
  EXPECT_THAT(markdown, AllOf(HasSubstr("| ruler:vt@4096 |"), HasSubstr("| 4096 (2 tasks) | 8192 (2 tasks) | Avg |"),
                              HasSubstr("| m\\|1 | 50.00 ["), HasSubstr("] | 8192 |")));
  const std::string csv = RenderCsv(table);
  EXPECT_THAT(csv, HasSubstr(",ruler@4096 mean,ruler@4096 mean low,ruler@4096 mean high,ruler@8192 mean,"));
  EXPECT_THAT(csv, HasSubstr(",ruler wAvg dec,ruler wAvg dec low,ruler wAvg dec high,ruler effective length\n"));
  EXPECT_THAT(csv, HasSubstr(",50.00,"));
  EXPECT_THAT(csv, HasSubstr(",64.58,"));
  EXPECT_THAT(csv, HasSubstr(",8192\n"));
  const auto json = nlohmann::json::parse(RenderJson(table));
  EXPECT_EQ(json["ruler"][0]["rows"][0]["average"], 23.0 / 32);
  EXPECT_EQ(json["ruler"][0]["rows"][0]["average_interval"]["low"], table.ruler[0].rows[0].bounds[0]->low);
  EXPECT_EQ(json["ruler"][0]["rows"][0]["effective_length"], 8192);
  // Without RULER nothing of it is said.
  SweepEntry other = EntryOf("vt", 4096);
  other.benchmark.name = "gsm8k";
  const Table none = TableOf(SnapshotOf({other}, {{8}}));
  EXPECT_TRUE(none.ruler.empty());
  EXPECT_THAT(RenderMarkdown(none), Not(HasSubstr("RULER")));
  EXPECT_FALSE(nlohmann::json::parse(RenderJson(none)).contains("ruler"));
}

TEST(RulerSummary, WhatIsMissingIsNotAveragedOver) {
  // Of cwe at 8192 nothing was scored: its length has no mean, and so no average.
  Snapshot snapshot = TwoByTwo();
  for (ItemRow& row : snapshot.jobs[3].items) row.unscored = row.values[0].unscored = Unscored::kGeneratorDeadEnd;
  const RulerRowSummary missing = TableOf(snapshot).ruler[0].rows[0];
  EXPECT_TRUE(missing.lengths[0].complete);
  EXPECT_FALSE(missing.lengths[1].mean.has_value());
  EXPECT_FALSE(missing.means.has_value());
  EXPECT_THAT(RenderMarkdown(TableOf(snapshot)),
              ContainsRegex(R"(\| m\\\|1 \| 50\.00 \[[0-9., ]*\] \| – \| – \| – \| – \| – \|)"));
  // One item of two: the mean is of what there is, and marked.
  const Table part = TableOf(SnapshotOf({EntryOf("vt", 4096), EntryOf("cwe", 4096)}, {{8, -1}, {4, 4}}));
  EXPECT_EQ(part.ruler[0].rows[0].lengths[0].mean->ToString(), "3/4");
  EXPECT_FALSE(part.ruler[0].rows[0].complete);
  EXPECT_THAT(RenderMarkdown(part), HasSubstr("| m\\|1 | 75.00* |"));
}

TEST(RulerSummary, OtherSettingsAreAveragedAlone) {
  const Table table = TableOf(SnapshotOf({EntryOf("vt", 4096), EntryOf("vt", 4096, "seeded")}, {{8}, {0}}));
  ASSERT_EQ(table.ruler.size(), 2u);
  EXPECT_EQ(table.ruler[0].setting, "mode=official k=1 T=0");
  EXPECT_EQ(table.ruler[0].rows[0].means->average.ToString(), "1");
  EXPECT_EQ(table.ruler[1].rows[0].means->average.ToString(), "0");
  EXPECT_EQ(table.ruler[1].rows[0].means->effective_length, std::nullopt);
  EXPECT_THAT(RenderCsv(table), AllOf(HasSubstr(",ruler[0]@4096 mean,"), HasSubstr(",ruler[1] Avg,")));
}

TEST(RulerSummary, AGeneratedHaystackIsNamedAndAveragedWithTheOthers) {
  std::vector<SweepEntry> entries = {EntryOf("niah_single_2", 4096), EntryOf("vt", 4096)};
  entries[0].benchmark.options["haystack"] = "generated";
  entries[1].benchmark.options["haystack"] = "";
  const Table table = TableOf(SnapshotOf(entries, {{8}, {4}}));
  ASSERT_EQ(table.ruler.size(), 1u);
  EXPECT_EQ(table.ruler[0].rows[0].lengths[0].mean->ToString(), "3/4");
  EXPECT_THAT(table.notes,
              Contains(HasSubstr("ruler:niah_single_2@4096: a generated haystack in the place of essays")));
  entries[0].benchmark.options["haystack"] = "essays";
  EXPECT_THAT(TableOf(SnapshotOf(entries, {{8}, {4}})).notes, Not(Contains(HasSubstr("haystack"))));
}

TEST(RulerSummary, SamplesThatWereCutAreAddedUpInOneNote) {
  Snapshot snapshot = TwoByTwo();
  for (JobRows& job : snapshot.jobs) job.items[0].truncated = 1;
  const Table table = TableOf(snapshot);
  EXPECT_THAT(table.notes, Contains("m|1: 4 of 8 samples of RULER ended at their limit of new tokens"));
  EXPECT_THAT(table.notes, Not(Contains(HasSubstr("may be cut"))));
  EXPECT_THAT(TableOf(TwoByTwo()).notes, Not(Contains(HasSubstr("limit of new tokens"))));
}

TEST(RulerSummary, ItemsBeyondTheirLengthAreAddedUpInOneNote) {
  Snapshot snapshot = TwoByTwo();  // 30 new tokens at 4096 and 8192
  snapshot.jobs[0].items[0].prompt_tokens = 4066;
  EXPECT_THAT(TableOf(snapshot).notes, Not(Contains(HasSubstr("exceed"))));
  snapshot.jobs[0].items[1].prompt_tokens = 4067;
  snapshot.jobs[3].items[0].prompt_tokens = 8164;
  const Table table = TableOf(snapshot);
  EXPECT_EQ(table.rows[0].cells[0].cell.over_length, 1);
  EXPECT_THAT(table.notes,
              Contains("m|1: 2 of 8 items of RULER exceed their length by up to 2 tokens, new tokens included"));
  snapshot.jobs[3].items[0].samples = 0;  // never run
  EXPECT_THAT(TableOf(snapshot).notes, Contains(HasSubstr("1 of 8 items of RULER exceed their length")));
}

// New tokens are each task's own: they split nothing.
TEST(RulerSummary, ItemsBeyondTheContextAreMarked) {
  Snapshot snapshot = SnapshotOf({EntryOf("vt", 8192), EntryOf("cwe", 8193)}, {{8}, {8}});
  snapshot.spec.entries[1].sampling.max_new_tokens = 120;
  snapshot.jobs[1].spec.entry = snapshot.spec.entries[1];
  const Table table = TableOf(snapshot);
  EXPECT_EQ(table.ruler.size(), 1u);
  EXPECT_FALSE(table.rows[0].cells[0].cell.over_context);
  EXPECT_TRUE(table.rows[0].cells[1].cell.over_context);
  EXPECT_THAT(table.notes,
              Contains(HasSubstr("ruler:cwe@8193: 8193 tokens an item, beyond the model's context of 8192")));
  EXPECT_THAT(RenderMarkdown(table), HasSubstr("100.00†"));
}

TEST(RulerTables, StandInHtmlAndLatexToo) {
  // Of the second length one item is missing, and it is beyond the context of 8192.
  const Table table = TableOf(SnapshotOf({EntryOf("vt", 4096), EntryOf("vt", 16384)}, {{8, 0}, {4, -1}}));
  const std::string html = Render(table, "html").value();
  EXPECT_THAT(html, HasSubstr("<h2>RULER, mean of the tasks at each length ("));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\"><bdi>m|1</bdi></th><td><bdi>50.00 ["));
  EXPECT_THAT(html, HasSubstr("]</bdi></td><td><bdi>50.00*</bdi></td>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"number\">50.00*†</span>"));
  const std::string latex = RenderLatex(table);
  EXPECT_THAT(latex, ContainsRegex(R"(m\\textbar\{\}1 & 50\.00 \{\[\}[0-9., ]*\{\]\} & 50\.00\{\*\} & )"));
  EXPECT_THAT(latex, HasSubstr("50.00{*}\\textdagger{}"));
  EXPECT_THAT(latex, HasSubstr("& Effective length \\\\\n"));
}

// Of a target whose samples can't tell their scatter a cell has a value and no interval.
TEST(BoundsOfMean, NeedTheIntervalOfEveryCell) {
  Cell cell;
  cell.planned = cell.scored = 1;
  cell.value = scoring::Rational(1, 2);
  ASSERT_TRUE(cell.complete());
  EXPECT_FALSE(BoundsOfMean({{&cell, 1.0}}).has_value());
  cell.interval = {0.25, 0.75, scoring::IntervalMethod::kWilson};
  const auto bounds = BoundsOfMean({{&cell, 1.0}});
  ASSERT_TRUE(bounds.has_value());
  EXPECT_EQ(bounds->low, 0.25);
}

}  // namespace
}  // namespace iha::reports
