#include "reports/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/aggregate.h"
#include "reports/layout.h"
#include "reports/render.h"
#include "tests/reports/two_models.h"

namespace iha::reports {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BuildTable, ComputesDeltasRanksAndBest) {
  const auto table = BuildTable(TwoModels({{1, 0, 0, 0}, {1, 1, 1, 0}}), {});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->baseline, "model|0");
  EXPECT_EQ(Percent(*table->rows[0].cells[0].cell.value, 2), "25.00");
  EXPECT_EQ(SignedPercent(*table->rows[1].cells[0].delta, 2), "+50.00");
  EXPECT_FALSE(table->rows[0].cells[0].delta.has_value());
  EXPECT_EQ(table->rows[1].average_rank->ToFixed(1), "1.0");
  EXPECT_TRUE(table->rows[1].cells[0].best);
  EXPECT_FALSE(table->rows[0].cells[0].best);
  EXPECT_THAT(RenderMarkdown(*table), HasSubstr("\nBold: the best value of its column.\n"));
  const auto equal = BuildTable(TwoModels({{1, 0, 0, 0}, {1, 0, 0, 0}}), {});
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_THAT(RenderMarkdown(*equal), Not(HasSubstr("Bold")));
}

// Four items: a model that is right where the other is never is before it in every draw; one that is right elsewhere
// in as many as can be counted.
TEST(BuildTable, SaysHowSureTheRanksAre) {
  const auto plain = BuildTable(TwoModels({{0, 0, 0, 0}, {1, 1, 1, 1}}), {});
  ASSERT_TRUE(plain.ok() && plain->rank_spread.has_value());
  EXPECT_EQ(plain->rank_spread->same_order, 1.0);
  EXPECT_EQ(plain->rank_spread->above[1][0], 1.0);
  EXPECT_EQ(plain->rank_spread->low[1], 1.0);
  EXPECT_EQ(plain->rank_spread->high[1], 1.0);
  EXPECT_THAT(plain->notes, Contains(HasSubstr("the printed order holds in 100 %")));

  const auto open = BuildTable(TwoModels({{1, 0, 0, 0}, {0, 1, 1, 0}}), {});
  ASSERT_TRUE(open.ok() && open->rank_spread.has_value());
  // The second is before the first where its two items are drawn more often than the one: in 160 of the 256 ways to
  // draw four items, in 49 as often.
  EXPECT_NEAR(open->rank_spread->above[1][0], (160 + 0.5 * 49) / 256, 4 * 0.011);
  EXPECT_NEAR(open->rank_spread->same_order, (160 + 49) / 256.0, 4 * 0.009);
  EXPECT_EQ(open->rank_spread->low[0], 1.0);
  EXPECT_EQ(open->rank_spread->high[0], 2.0);
  const auto json = nlohmann::json::parse(RenderJson(*open));
  EXPECT_EQ(json["rows"][0]["average_rank_interval"]["high"], 2.0);
  EXPECT_EQ(json["rank_spread"]["draws"], 2000);
  EXPECT_EQ(json["rank_spread"]["above"][0][0], 0.5);

  // Only complete cells are ranked; one model has no rank, imported rows have no items.
  const auto part = BuildTable(TwoModels({{1, 0, 0, 0}, {1, 1}}), {});
  ASSERT_TRUE(part.ok());
  EXPECT_TRUE(nlohmann::json::parse(RenderJson(*part))["rank_spread"]["above"][0][1].is_null());
  EXPECT_FALSE(BuildTable(TwoModels({{1, 0, 0, 0}}), {})->rank_spread.has_value());
  const ImportedRow old{.model = "old", .source = "f", .values = {}, .notes = {}};
  EXPECT_FALSE(BuildTable(TwoModels({{1, 0, 0, 0}, {1, 1, 0, 0}}), {}, {old})->rank_spread.has_value());
}

// Many cells that wait for their first item are one note, not one each.
TEST(BuildTable, CellsWithNothingFinishedAreOneNote) {
  const auto none = BuildTable(TwoModels({{}, {}, {}}), {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->notes, Contains("no item of this sweep has finished yet"));
  EXPECT_THAT(none->notes, Not(Contains(HasSubstr("pending"))));
  const auto one = BuildTable(TwoModels({{1, 0, 0, 0}, {1}, {}}), {});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->notes, Contains(HasSubstr("no item has finished yet in 2 of 6 cells: ")));
  EXPECT_THAT(one->notes, Contains(HasSubstr("3 of 4 items pending")));
  EXPECT_THAT(one->notes, Not(Contains(HasSubstr("4 of 4 items pending"))));
}

TEST(BuildTable, AnIncompleteCellIsMarkedAndNotRanked) {
  const auto table = BuildTable(TwoModels({{1, 0, 0, 0}, {1, 1}}), {});
  ASSERT_TRUE(table.ok()) << table.status();
  const TableCell& cell = table->rows[1].cells[0];
  EXPECT_EQ(cell.cell.scored, 2);
  EXPECT_EQ(cell.cell.unscored.at(Unscored::kPending), 2);
  EXPECT_FALSE(cell.cell.complete());
  EXPECT_FALSE(cell.rank.has_value());
  EXPECT_FALSE(cell.delta.has_value());
  EXPECT_FALSE(table->rows[1].average_rank.has_value());
  EXPECT_THAT(table->notes, Contains(HasSubstr("2 of 4 items pending")));
  EXPECT_THAT(RenderMarkdown(*table), HasSubstr("100.00*"));
  EXPECT_THAT(RenderMarkdown(*table), HasSubstr("\n\\* incomplete: of the items scored so far"));
  const auto whole = BuildTable(TwoModels({{1, 0, 0, 0}, {1, 1, 0, 0}}), {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(RenderMarkdown(*whole), Not(HasSubstr("incomplete")));
}

// When a sequential gate stops a sweep depends on what it sees: a mean of what was run is no result.
TEST(BuildTable, AStoppedSweepShowsNoMeanOfAPart) {
  Snapshot snapshot = TwoModels({{1, 0, 0, 0}, {1, 1}});
  snapshot.spec.item_order = 7;
  for (JobRows& job : snapshot.jobs) job.sequential = true;
  const auto table = BuildTable(snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->rows[0].cells[0].cell.value.has_value());
  const Cell& part = table->rows[1].cells[0].cell;
  EXPECT_FALSE(part.value.has_value());
  EXPECT_FALSE(part.interval.has_value());
  EXPECT_EQ(part.scored, 2);
  EXPECT_THAT(table->notes, Contains(HasSubstr("random order of seed 7")));
  EXPECT_THAT(RenderMarkdown(*table), Not(HasSubstr("100.00")));
  // Nor is one of votes that stopped early, which took samples that depend on what they hold.
  snapshot.spec.entries[0].stop_settled_votes = true;
  for (JobRows& job : snapshot.jobs) {
    job.spec.entry.stop_settled_votes = true;
    for (ItemRow& item : job.items) item.values[0].tie = {1, 1};
  }
  const auto votes = BuildTable(snapshot, {});
  ASSERT_TRUE(votes.ok()) << votes.status();
  const Cell& settled = votes->rows[0].cells[0].cell;
  EXPECT_EQ(settled.scored, settled.planned);
  EXPECT_FALSE(settled.value.has_value());
  EXPECT_FALSE(settled.complete());
  EXPECT_EQ(settled.tie_rate, scoring::Rational());
  EXPECT_THAT(votes->notes, Contains(HasSubstr("samples end once its votes are settled, after 1 at most")));
  EXPECT_THAT(RenderMarkdown(*votes), Not(HasSubstr("incomplete")));
}

// Target "benchmark": greedy grades of the whole list are the answer; of a part they are a sample without replacement.
TEST(BuildTable, IntervalsCanBeAboutTheBenchmarksOwnItems) {
  Snapshot snapshot = TwoModels({{1, 0, 0, 0}, {1, 1, 1, 0}});
  const auto build = [&snapshot](int64_t list_items) {
    TableOptions options;
    options.list_items = {list_items};
    const auto table = BuildTable(snapshot, options);
    EXPECT_TRUE(table.ok()) << table.status();
    return *table;
  };
  const auto interval = [&](int64_t list_items, size_t column) {
    return build(list_items).rows[1].cells[column].cell.interval;
  };
  const scoring::Interval wide = *BuildTable(snapshot, {})->rows[1].cells[0].cell.interval;
  const scoring::Interval part = *interval(8, 0), whole = *interval(4, 0);
  EXPECT_EQ(wide.method, scoring::IntervalMethod::kWilson);
  EXPECT_EQ(part.method, scoring::IntervalMethod::kWilsonEffective);
  EXPECT_LT(part.high - part.low, wide.high - wide.low);
  EXPECT_EQ(whole, (scoring::Interval{0.75, 0.75, scoring::IntervalMethod::kExact}));

  const Table greedy = build(8);
  EXPECT_THAT(greedy.notes, Contains(HasSubstr("the benchmark's own list of items (target benchmark)")));
  EXPECT_THAT(greedy.notes, Contains(HasSubstr("items that a limit kept out are taken to be like")));
  EXPECT_EQ(nlohmann::json::parse(RenderJson(greedy))["interval_target"], "benchmark");
  EXPECT_FALSE(nlohmann::json::parse(RenderJson(*BuildTable(snapshot, {}))).contains("interval_target"));

  // One random sample an item doesn't show its scatter; of two a vote is no mean.
  const auto draw = [&snapshot](int32_t samples) {
    snapshot.spec.entries[0].sampling = {.temperature = 0.6, .samples = samples};
    for (JobRows& job : snapshot.jobs) job.spec.entry.sampling = snapshot.spec.entries[0].sampling;
  };
  draw(1);
  EXPECT_FALSE(interval(4, 0).has_value());
  EXPECT_THAT(build(4).notes, Contains(HasSubstr("one sample an item, drawn at T=0.6, does not show how much")));
  draw(2);
  EXPECT_TRUE(interval(4, 0).has_value());
  EXPECT_FALSE(interval(4, 1).has_value());
  EXPECT_THAT(build(4).notes, Contains(HasSubstr("its value is no mean of samples")));
}

// An item that could not be scored stays in the denominator and is shown by reason.
TEST(BuildTable, UnscoredItemsCountAsWrongAndAreNamed) {
  Snapshot snapshot = TwoModels({{1, 1, 1, 1}});
  snapshot.jobs[0].items[3].unscored = Unscored::kPromptTooLong;
  snapshot.jobs[0].items[3].values.clear();
  const auto table = BuildTable(snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  const Cell& cell = table->rows[0].cells[0].cell;
  EXPECT_EQ(Percent(*cell.value, 1), "75.0");
  EXPECT_EQ(cell.scored, 3);
  EXPECT_EQ(cell.unscored.at(Unscored::kPromptTooLong), 1);
  EXPECT_TRUE(cell.complete());
  EXPECT_THAT(table->notes, Contains(HasSubstr("1 of 4 items prompt_too_long")));
}

// What the benchmark does not have says nothing of the model: it leaves the denominator, and the cell is incomplete.
TEST(BuildTable, ItemsThatDoNotExistLeaveTheMean) {
  Snapshot snapshot = TwoModels({{1, 0, 1, 1}});
  for (const auto& [item, reason] : {std::pair{2, Unscored::kGeneratorDeadEnd}, {3, Unscored::kDataExhausted}}) {
    snapshot.jobs[0].items[static_cast<size_t>(item)].unscored = reason;
    snapshot.jobs[0].items[static_cast<size_t>(item)].values.clear();
  }
  const auto table = BuildTable(snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  const Cell& cell = table->rows[0].cells[0].cell;
  EXPECT_EQ(Percent(*cell.value, 1), "50.0");
  EXPECT_EQ(cell.scored, 2);
  EXPECT_FALSE(cell.complete());
  EXPECT_THAT(table->notes, Contains(HasSubstr("1 of 4 items generator_dead_end")));
  EXPECT_THAT(table->notes, Contains(HasSubstr("1 of 4 items data_exhausted")));
}

TEST(BuildTable, WarnsOfTruncatedSamplesOncePerEntry) {
  Snapshot snapshot = TwoModels({{1, 1, 1, 1}});
  snapshot.jobs[0].items[0].truncated = 1;
  const auto table = BuildTable(snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  int warnings = 0;
  for (const std::string& note : table->notes) warnings += note.find("max_new_tokens") != std::string::npos;
  EXPECT_EQ(warnings, 1);
  EXPECT_THAT(table->notes, Contains(HasSubstr("1 of 4 samples (25.0 %)")));
}

TEST(BuildTable, RefusesUnknownBaselineAndLayout) {
  const Snapshot snapshot = TwoModels({{1, 0, 0, 0}});
  EXPECT_THAT(std::string(BuildTable(snapshot, {.layout = "generic", .baseline = "x"}).status().message()),
              HasSubstr("--baseline \"x\": no such row; the table has model|0"));
  EXPECT_THAT(std::string(BuildTable(snapshot, {.layout = "table9", .baseline = ""}).status().message()),
              HasSubstr("expected generic, table1 or table2"));
}

TEST(Render, EscapesWhatComesFromOutside) {
  Snapshot snapshot = TwoModels({{1, 0, 0, 0}});
  snapshot.spec.models[0].name = "=cmd|'x'\n<b>_i_ a_b";
  const auto table = BuildTable(snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  const std::string md = RenderMarkdown(*table);
  EXPECT_THAT(md, HasSubstr("=cmd\\|'x' \\<b\\>\\_i\\_ a_b"));
  EXPECT_EQ(MarkdownText("~~x~~ &lt;b&gt; a&b=1 \u202Eevil \u009B31m \xff\x1b[31m"),
            "\\~\\~x\\~\\~ \\&lt;b\\&gt; a&b=1 \\\\u{202E}evil \\\\u{9B}31m \\\\xFF\\\\x1B\\[31m");
  EXPECT_THAT(RenderCsv(*table), HasSubstr("\"'=cmd|'x'\n<b>_i_ a_b\""));
  const auto json = nlohmann::json::parse(RenderJson(*table), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["rows"][0]["model"], "=cmd|'x'\n<b>_i_ a_b");
}

TEST(Render, JsonHoldsExactValuesCountsAndProvenance) {
  const auto table = BuildTable(TwoModels({{1, 0, 0, 0}, {1, 1, 1, 0}}), {});
  ASSERT_TRUE(table.ok()) << table.status();
  const auto json = nlohmann::json::parse(RenderJson(*table), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  const auto& cell = json["rows"][1]["cells"][0];
  EXPECT_EQ(cell["value"], 0.75);
  EXPECT_EQ(cell["value_exact"], "3/4");
  EXPECT_EQ(cell["percent"], "75.00");
  EXPECT_EQ(cell["delta_points"], "+50.00");
  EXPECT_EQ(cell["scored"], 4);
  EXPECT_LT(cell["interval"]["low"], 0.75);
  EXPECT_GT(cell["interval"]["high"], 0.75);
  EXPECT_EQ(json["provenance"]["numerics_id"], "cpu-exact/2/weights=stored/act=f32/kv=f32");
  EXPECT_EQ(json["provenance"]["entries"][0]["sampling"]["seed"], 1234);
}

TEST(Render, EqualTablesGiveEqualBytes) {
  const auto one = BuildTable(TwoModels({{1, 0, 0, 1}, {1, 1, 1, 0}}), {});
  const auto two = BuildTable(TwoModels({{1, 0, 0, 1}, {1, 1, 1, 0}}), {});
  for (const std::string format : {"md", "csv", "json", "latex", "html"})
    EXPECT_EQ(*Render(*one, format), *Render(*two, format));
  EXPECT_THAT(std::string(Render(*one, "pdf").status().message()), HasSubstr("expected md, csv, json, latex or html"));
}

TEST(Layout, Table1PicksThePapersColumns) {
  Snapshot snapshot = TwoModels({{1, 0, 0, 0}});
  for (auto* metrics : {&snapshot.spec.entries[0].metrics, &snapshot.jobs[0].spec.entry.metrics}) {
    *metrics = {"gsm8k.robust", "maj@16?metric=gsm8k.robust"};
  }
  snapshot.spec.entries[0].sampling = {.temperature = 0.6, .samples = 16};
  const auto table = BuildTable(snapshot, {.layout = "table1", .baseline = ""});
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->columns.size(), 2u);
  EXPECT_EQ(table->columns[0].header, "GSM8K P@1");
  EXPECT_EQ(table->columns[1].header, "GSM8K Maj@16");
  EXPECT_EQ(table->columns[1].decimals, 1);
  EXPECT_THAT(RenderMarkdown(*table), Not(HasSubstr("| MBPP")));
  EXPECT_THAT(table->notes, Contains("column MBPP P@10 is left out: it needs a sampled entry (temperature above 0) of "
                                     "mbpp with mbpp.pass@10"));
  EXPECT_THAT(table->notes, Not(Contains(HasSubstr("GSM8K"))));
  EXPECT_THAT(BuildTable(snapshot, {})->notes, Not(Contains(HasSubstr("left out"))));
}

TEST(Contributed, IsTheScoreNothingOrZero) {
  const auto of = [](Unscored item, Unscored value) {
    const auto score = Contributed(
        item, {.metric = "m", .unscored = value, .score = {2, 3}, .winner = "", .tie = {0, 1}, .invalid = 0});
    return score.has_value() ? std::to_string(score->num) + "/" + std::to_string(score->den) : "nothing";
  };
  EXPECT_EQ(of(Unscored::kScored, Unscored::kScored), "2/3");
  EXPECT_EQ(of(Unscored::kScored, Unscored::kGraderError), "0/1");
  EXPECT_EQ(of(Unscored::kPromptTooLong, Unscored::kPromptTooLong), "0/1");
  EXPECT_EQ(of(Unscored::kScored, Unscored::kGraderUnavailable), "nothing");
  EXPECT_EQ(of(Unscored::kGeneratorDeadEnd, Unscored::kGeneratorDeadEnd), "nothing");
}

// EM and P@1 are one metric of entries that differ in how they were decoded; the order of entries decides nothing.
TEST(Layout, GenericColumnsOfOneMetricSayWhatTellsTheirEntriesApart) {
  SweepSpec spec = TwoModels({{1, 0, 0, 0}}).spec;
  spec.entries.push_back(spec.entries[0]);
  spec.entries[1].benchmark.options["fewshot"] = "8";
  spec.entries.push_back(spec.entries[1]);
  spec.entries[2].limit.reset();
  const auto columns = ColumnsOf(spec, "generic");
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_EQ((*columns)[0].header, "gsm8k.strict_match fewshot=5 limit=4");
  EXPECT_EQ((*columns)[2].header, "gsm8k.strict_match fewshot=8 limit=4");
  EXPECT_EQ((*columns)[4].header, "gsm8k.strict_match fewshot=8 limit=none");
}

// Which of two entries a column of the paper shows is not left to guess.
TEST(Layout, ANoteNamesTheEntriesThatAColumnDoesNotShow) {
  Snapshot snapshot = TwoModels({{1, 0, 0, 0}});
  snapshot.spec.entries.push_back(snapshot.spec.entries[0]);
  snapshot.spec.entries[1].benchmark.options["fewshot"] = "8";
  EXPECT_THAT(AlsoFitting(snapshot.spec, "table2"),
              ElementsAre("column GSM8K EM shows gsm8k fewshot=5; not shown: gsm8k fewshot=8 (--layout generic shows "
                          "all)"));
  EXPECT_THAT(AlsoFitting(snapshot.spec, "generic"), ElementsAre());
  snapshot.jobs.push_back(snapshot.jobs[0]);
  EXPECT_THAT(BuildTable(snapshot, {.layout = "table2", .baseline = ""})->notes,
              Contains(HasSubstr("not shown: gsm8k fewshot=8")));
  for (SweepEntry& entry : snapshot.spec.entries) entry.sampling = {.temperature = 0.6, .samples = 4};
  snapshot.spec.entries[1].sampling.samples = 16;  // the most samples: no choice is left
  EXPECT_THAT(AlsoFitting(snapshot.spec, "table1"), ElementsAre());
}

TEST(Layout, EmIsTheGreedyEntryAndP1TheMostSampledOne) {
  const auto entry = [](double temperature, int samples, std::vector<std::string> metrics) {
    return SweepEntry{.benchmark = {.name = "gsm8k", .options = {}},
                      .sampling = {.temperature = temperature, .samples = samples},
                      .limit = 4,
                      .metrics = std::move(metrics)};
  };
  const SweepEntry greedy = entry(0, 1, {"gsm8k.robust"});
  const SweepEntry few = entry(0.6, 5, {"gsm8k.robust", "maj@5?metric=gsm8k.robust"});
  const SweepEntry many = entry(0.6, 16, {"gsm8k.robust", "maj@16?metric=gsm8k.robust"});
  const auto columns = [](std::vector<SweepEntry> entries, const std::string& layout) {
    SweepSpec spec;
    spec.entries = std::move(entries);
    std::vector<std::pair<std::string, size_t>> out;
    const auto found = ColumnsOf(spec, layout);
    if (found.ok()) {
      for (const Column& column : *found) out.emplace_back(column.header, column.entry);
    }
    return out;
  };
  using Wanted = std::vector<std::pair<std::string, size_t>>;
  EXPECT_EQ(columns({greedy, few, many}, "table1"), (Wanted{{"GSM8K P@1", 2}, {"GSM8K Maj@16", 2}}));
  EXPECT_EQ(columns({many, few, greedy}, "table1"), (Wanted{{"GSM8K P@1", 0}, {"GSM8K Maj@16", 0}}));
  EXPECT_EQ(columns({greedy, few}, "table1"), (Wanted{{"GSM8K P@1", 1}}));
  EXPECT_EQ(columns({few, greedy}, "table2"), (Wanted{{"GSM8K EM", 1}, {"GSM8K Maj@5", 0}}));
  EXPECT_EQ(columns({few}, "table2"), (Wanted{{"GSM8K Maj@5", 0}}));
  EXPECT_EQ(columns({greedy}, "table1"), Wanted{});
}

// Field bug 85: what a grader could not judge stays in the denominator, shown by its reason. 67: so
// are cut and empty answers.
TEST(FieldBugs, CellsKeepWhatIsUnscoredCutOrEmpty) {
  JobRows job;
  job.spec.entry.metrics = {"m"};
  job.spec.items = 3;
  for (int i = 0; i < 3; ++i) {
    ItemRow& row = job.items.emplace_back();
    row.index = i;
    row.samples = 1;
    row.truncated = i == 1 ? 1 : 0;
    row.empty = i == 2 ? 1 : 0;
    row.values.emplace_back().metric = "m";
    row.values[0].score = {1, 1};
  }
  job.items[2].values[0].unscored = Unscored::kGraderError;
  const Cell cell = CellsOf(job).front();
  EXPECT_EQ(cell.value->ToString(), "2/3");
  EXPECT_EQ(cell.scored, 2);
  EXPECT_EQ(cell.unscored.at(Unscored::kGraderError), 1);
  EXPECT_EQ(cell.truncated, 1);
  EXPECT_EQ(cell.empty, 1);
}

}  // namespace
}  // namespace iha::reports
