// Figures: which cells they average, their error bars, and the bytes of the SVG.
#include "reports/figure.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "common/digest.h"
#include "reports/aggregate.h"
#include "reports/render_svg.h"
#include "tests/reports/two_models.h"

namespace iha::reports {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Items 0 .. right[model][entry] - 1 of each cell's 20 are right.
Snapshot RulerSweep(const std::vector<std::string>& names, const std::vector<std::vector<int>>& right) {
  Snapshot snapshot;
  snapshot.iha_eval_version = "0.0.0";
  for (const std::string& name : names) {
    SweepEntry entry;
    entry.benchmark.name = name;
    entry.metrics = {"ruler.string_match"};
    snapshot.spec.entries.push_back(entry);
  }
  for (size_t m = 0; m < right.size(); m++) {
    snapshot.spec.models.push_back({.name = fmt::format("m{}", m), .weights_digest = ""});
    for (size_t e = 0; e < names.size(); e++) {
      JobRows& job = snapshot.jobs.emplace_back();
      job.spec.entry = snapshot.spec.entries[e];
      job.spec.items = 20;
      for (int i = 0; i < 20; i++) {
        ItemRow& row = job.items.emplace_back();
        row.index = i;
        row.samples = 1;
        row.values.emplace_back().metric = "ruler.string_match";
        row.values[0].score = {i < right[m][e] ? 1 : 0, 1};
      }
    }
  }
  return snapshot;
}

const std::vector<std::string> kCells = {"ruler:niah_multikey_1@4096", "ruler:niah_multikey_2@4096", "ruler:vt@4096",
                                         "ruler:niah_multikey_1@8192", "ruler:niah_multikey_2@8192", "ruler:vt@8192"};

TEST(RulerFigure, AveragesMultiKeyTasksByLengthAndAllTasks) {
  const Snapshot snapshot = RulerSweep(kCells, {{20, 10, 4, 8, 4, 2}, {0, 0, 20, 0, 0, 20}});
  const auto figure = RulerFigure(snapshot);
  ASSERT_TRUE(figure.ok()) << figure.status();
  ASSERT_EQ(figure->panels.size(), 2u);
  EXPECT_THAT(figure->panels[0].x_names, ElementsAre("4k", "8k"));
  EXPECT_EQ(figure->panels[0].values[0][0]->label, "75.0");
  EXPECT_EQ(figure->panels[0].values[0][1]->label, "30.0");
  EXPECT_EQ(figure->panels[1].values[0][0]->label, "40.0");  // 48 of 120
  EXPECT_EQ(figure->panels[1].values[1][0]->label, "33.3");
  EXPECT_THAT(figure->notes, Contains("multi-key retrieval: mean of niah_multikey_1, niah_multikey_2"));
  EXPECT_THAT(figure->notes, Contains("overall: means over 3 tasks: niah_multikey_1, niah_multikey_2, vt"));
}

// MOVER of two cells by hand; of one cell it is the cell's own interval.
TEST(RulerFigure, ErrorBarsCombineTheCellsIntervals) {
  const Snapshot snapshot = RulerSweep({kCells[0], kCells[1]}, {{15, 5}});
  const auto figure = RulerFigure(snapshot);
  ASSERT_TRUE(figure.ok()) << figure.status();
  const Cell a = CellsOf(snapshot.jobs[0]).front();
  const Cell b = CellsOf(snapshot.jobs[1]).front();
  const FigureValue& value = *figure->panels[1].values[0][0];
  EXPECT_NEAR(value.low, 50 - 50 * std::hypot(0.75 - a.interval->low, 0.25 - b.interval->low), 1e-9);
  EXPECT_NEAR(value.high, 50 + 50 * std::hypot(a.interval->high - 0.75, b.interval->high - 0.25), 1e-9);
  const auto single = RulerFigure(RulerSweep({kCells[0]}, {{15}}));
  EXPECT_NEAR(single->panels[1].values[0][0]->low, 100 * a.interval->low, 1e-9);
}

// Never an average over missing parts (field bug 72).
TEST(RulerFigure, AnIncompleteCellLeavesItsBarsOut) {
  Snapshot snapshot = RulerSweep(kCells, {{20, 10, 4, 8, 4, 2}, {20, 10, 4, 8, 4, 2}});
  snapshot.jobs[kCells.size()].items.resize(19);  // the second model's first cell
  const auto figure = RulerFigure(snapshot);
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_FALSE(figure->panels[0].values[1][0].has_value());
  EXPECT_TRUE(figure->panels[0].values[1][1].has_value());
  EXPECT_FALSE(figure->panels[1].values[1][0].has_value());
  EXPECT_THAT(RenderSvg(*figure), HasSubstr(">–</text>"));
}

TEST(LengthFigure, IsALineForEachModel) {
  const auto figure = LengthFigure(RulerSweep(kCells, {{20, 10, 0, 10, 5, 0}, {0, 0, 0, 0, 0, 0}}));
  ASSERT_TRUE(figure.ok()) << figure.status();
  ASSERT_EQ(figure->panels.size(), 1u);
  EXPECT_EQ(figure->panels[0].kind, Panel::Kind::kLines);
  EXPECT_EQ(figure->panels[0].values[0][0]->label, "50.0");
  EXPECT_EQ(figure->panels[0].values[0][1]->label, "25.0");
  EXPECT_EQ(figure->panels[0].values[1][1]->low, 0);
  EXPECT_GT(figure->panels[0].values[1][1]->high, 0);
}

TEST(RulerFigure, NeedsRuler) {
  EXPECT_THAT(std::string(RulerFigure(TwoModels({{1, 0, 0, 0}})).status().message()),
              HasSubstr("the sweep has no entry of ruler"));
}

Snapshot Checkpoints(const std::vector<std::string>& names) {
  Snapshot snapshot = TwoModels(std::vector<std::vector<int>>(names.size(), {1, 0, 0, 0}));
  for (size_t m = 0; m < names.size(); m++) snapshot.spec.models[m].name = names[m];
  return snapshot;
}

TEST(TrainTokensFigure, IsALineForEachFolderAndNamesWhoIsLeftOut) {
  const Snapshot snapshot = Checkpoints({"iha/b", "iha/a", "global/a", "other"});
  const auto figure = TrainTokensFigure(
      snapshot, {{"iha/a", 1'000'000'000}, {"iha/b", 2'500'000'000}, {"global/a", 1'000'000'000}}, "");
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_THAT(figure->series, ElementsAre("iha", "global"));
  ASSERT_EQ(figure->panels.size(), 2u);
  EXPECT_THAT(figure->panels[0].x_names, ElementsAre("1B", "2.5B"));
  EXPECT_TRUE(figure->panels[0].values[0][1].has_value());
  EXPECT_FALSE(figure->panels[0].values[1][1].has_value());
  EXPECT_THAT(figure->notes, Contains("without train_tokens: other"));
  const auto one = TrainTokensFigure(snapshot, {{"iha/a", 1}}, "gsm8k.strict_match");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->panels.size(), 1u);
}

TEST(TrainTokensFigure, RefusesWhatItCannotPlace) {
  const Snapshot snapshot = Checkpoints({"iha/a", "iha/b"});
  const auto message = [&](const std::map<std::string, int64_t>& tokens, const std::string& metric) {
    return std::string(TrainTokensFigure(snapshot, tokens, metric).status().message());
  };
  EXPECT_THAT(message({}, ""), HasSubstr("no model of the sweep has train_tokens"));
  EXPECT_THAT(message({{"iha/a", 1}}, "x"), HasSubstr("--metric \"x\": no such column; the sweep has gsm8k."));
  EXPECT_THAT(message({{"iha/a", 7}, {"iha/b", 7}}, ""), HasSubstr("iha/a and iha/b have the same train_tokens, 7"));
}

// A label stands 4 above its error bar and is 10 high; the title of its panel ends above that, also where the bar is
// full.
TEST(RenderSvg, NoLabelReachesTheTitle) {
  const auto figure = RulerFigure(RulerSweep(kCells, {{20, 20, 20, 20, 20, 20}}));
  ASSERT_TRUE(figure.ok()) << figure.status();
  const std::string svg = RenderSvg(*figure);
  const auto y_of = [&svg](const std::string& text) {
    const size_t end = svg.find(">" + text + "<");
    const size_t at = svg.rfind(" y=\"", end);
    return end == std::string::npos || at == std::string::npos ? std::nan("") : std::stod(svg.substr(at + 4));
  };
  const double title = y_of(figure->panels[0].title), label = y_of(figure->panels[0].values[0][0]->label);
  EXPECT_LE(title, label - 10) << svg;
}

TEST(RenderSvg, HostileNamesStayText) {
  Snapshot snapshot = RulerSweep(kCells, {{20, 10, 4, 8, 4, 2}});
  snapshot.spec.models[0].name = "</text><script>x</script>&\"'\x01\xff" + std::string(300, 'y');
  const std::string svg = RenderSvg(*RulerFigure(snapshot));
  EXPECT_THAT(svg, HasSubstr("&lt;/text&gt;&lt;script&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("…" + std::string(19, 'y') + "</text>"));
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
}

// Paths differ at their ends; what still looks alike has a number.
TEST(RenderSvg, LongNamesAreToldApartInTheLegend) {
  Snapshot snapshot = RulerSweep(kCells, {{20, 10, 4, 8, 4, 2}, {20, 10, 4, 8, 4, 2}, {20, 10, 4, 8, 4, 2}});
  const std::string folder = "runs/" + std::string(100, 'x');
  snapshot.spec.models[0].name = folder + "/step-1000";
  snapshot.spec.models[1].name = folder + "/step-2000";
  snapshot.spec.models[2].name = "runs/" + std::string(99, 'x') + "/step-2000";
  const std::string svg = RenderSvg(*RulerFigure(snapshot));
  EXPECT_THAT(svg, HasSubstr("xxx/step-1000</text>"));
  EXPECT_THAT(svg, HasSubstr("xxx/step-2000</text>"));
  EXPECT_THAT(svg, HasSubstr("xxx/step-2000 (2)</text>"));
}

TEST(RenderSvg, FortyModelsAreToldApart) {
  const std::vector<std::vector<int>> right(40, {20, 10, 4, 8, 4, 2});
  const std::string bars = RenderSvg(*RulerFigure(RulerSweep(kCells, right)));
  std::set<std::string> patterns;
  for (size_t at = bars.find("<pattern"); at != std::string::npos; at = bars.find("<pattern", at + 1)) {
    const size_t begin = bars.find("fill=", at);  // behind the id
    patterns.insert(bars.substr(begin, bars.find("</pattern>", at) - begin));
  }
  EXPECT_EQ(patterns.size(), 40u);
  EXPECT_THAT(bars, Not(HasSubstr("width=\"-")));
  EXPECT_THAT(bars, HasSubstr("url(#p39)"));
  // Markers have an inside, which shows their colour.
  const std::string lines = RenderSvg(*LengthFigure(RulerSweep(kCells, right)));
  EXPECT_THAT(lines, Not(HasSubstr("<path d=\"M-4 -4 4 4")));
  std::set<std::string> markers;
  for (size_t at = lines.find("<g transform="); at != std::string::npos; at = lines.find("<g transform=", at + 1)) {
    markers.insert(lines.substr(lines.find("fill=", at), lines.find("</g>", at) - lines.find("fill=", at)));
  }
  EXPECT_EQ(markers.size(), 40u);
}

TEST(RenderSvg, APanelWithNothingCompleteSaysSo) {
  Snapshot snapshot = RulerSweep({kCells[0]}, {{20}});
  snapshot.jobs[0].items.clear();
  EXPECT_THAT(RenderSvg(*LengthFigure(snapshot)), HasSubstr(">no complete cell</text>"));
}

// The bytes are a promise: whoever changes how figures look changes this digest and looks at one.
TEST(RenderSvg, TheSameFigureGivesTheSameBytesAnywhere) {
  const Snapshot snapshot = RulerSweep(kCells, {{20, 10, 4, 8, 4, 2}, {13, 7, 5, 3, 2, 1}});
  const std::string bars = RenderSvg(*RulerFigure(snapshot));
  EXPECT_EQ(bars, RenderSvg(*RulerFigure(snapshot)));
  EXPECT_EQ(Sha256Of(bars).Hex().substr(0, 16), "69b10283c1f9e2ed");
  EXPECT_EQ(Sha256Of(RenderSvg(*LengthFigure(snapshot))).Hex().substr(0, 16), "4ce9d30d4f49cf1f");
}

}  // namespace
}  // namespace iha::reports
