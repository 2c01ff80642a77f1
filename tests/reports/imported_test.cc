// Rows that were not scored here, and the paper's two tables out of them: as printed, in every format.
#include "reports/imported.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "reports/csv.h"
#include "reports/render.h"
#include "tests/reports/paper_fixture.h"
#include "tests/reports/two_models.h"

namespace iha::reports {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Rows = std::vector<std::vector<std::string>>;

std::vector<std::string> Split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = 0; (end = text.find(separator, begin)) != std::string::npos; begin = end + separator.size()) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string Without(std::string text, const std::string& pattern) {
  return std::regex_replace(text, std::regex(pattern), "");
}

// A row of each format as the plain texts of its cells, the name without its mark.
std::vector<std::string> Plain(std::vector<std::string> cells) {
  EXPECT_THAT(cells.front(), HasSubstr(" (imported)"));
  cells.front() = Split(cells.front(), " (imported)").front();
  return cells;
}

Rows FromMarkdown(const std::string& text) {
  Rows rows;
  for (const std::string& line : Split(text, "\n")) {
    if (line.find("(imported)") == std::string::npos || !line.starts_with("| ")) continue;
    std::vector<std::string> cells = Split(Without(line, R"(\*\*)").substr(2), " |");
    cells.pop_back();
    for (std::string& cell : cells) cell = Without(cell, "^ +");
    rows.push_back(Plain(cells));
  }
  return rows;
}

// low, high, scored and planned stand between a value and its delta, empty.
Rows FromCsv(const std::string& text) {
  const Rows all = ParseCsv(text).value();
  Rows rows;
  for (size_t r = 1; r < all.size(); r++) {
    std::vector<std::string> cells = {all[r][0]};
    for (size_t c = 1; c < all[r].size(); c++) {
      if (all[0][c].ends_with(" low") || all[0][c].ends_with(" high") || all[0][c].ends_with(" scored") ||
          all[0][c].ends_with(" planned")) {
        EXPECT_EQ(all[r][c], "") << all[0][c];
        continue;
      }
      const bool is_value = all[0][c] != "Avg. Rank" && !all[0][c].ends_with(" delta");
      cells.push_back(is_value && all[r][c].empty() ? "–" : all[r][c]);
    }
    rows.push_back(Plain(cells));
  }
  return rows;
}

Rows FromJson(const std::string& text) {
  Rows rows;
  const auto table = nlohmann::json::parse(text);
  for (const auto& row : table["rows"]) {
    EXPECT_THAT(row["imported"].get<std::string>(), HasSubstr("CSV file "));
    std::vector<std::string> cells = {row["model"]};
    for (const auto& cell : row["cells"]) {
      cells.push_back(cell["value"].is_null() ? "–" : cell["percent"].get<std::string>());
      cells.push_back(cell.value("delta_points", ""));
    }
    cells.push_back(row["average_rank_printed"]);
    rows.push_back(cells);
  }
  return rows;
}

Rows FromLatex(const std::string& text) {
  Rows rows;
  for (const std::string& line : Split(text, "\n")) {
    if (line.find("(imported) &") == std::string::npos) continue;
    std::string plain = Without(line, R"( \\\\$)");
    plain = std::regex_replace(plain, std::regex(R"(\\textcolor\{[a-z]+\}\{\$([^$]*)\$\})"), "$1");
    plain = std::regex_replace(plain, std::regex(R"(\\textbf\{([^}]*)\})"), "$1");
    std::vector<std::string> cells = Split(Without(plain, R"(\$)"), " & ");
    for (std::string& cell : cells) cell = cell == "--" ? "–" : cell;
    rows.push_back(Plain(cells));
  }
  return rows;
}

Rows FromHtml(const std::string& text) {
  Rows rows;
  const std::regex cell(R"(<t[dh][^>]*>(.*?)</t[dh]>)");
  for (const std::string& line : Split(text, "\n")) {
    if (!line.starts_with("<tr data-i=")) continue;
    const std::string shown = Without(line, R"(<div class="tip.*?</div>)");
    std::vector<std::string> cells;
    for (std::sregex_iterator at(shown.begin(), shown.end(), cell), end; at != end; ++at) {
      cells.push_back(Without((*at)[1], "<[^>]*>"));
    }
    rows.push_back(Plain(cells));
  }
  return rows;
}

TEST(PaperFixture, PrintsEveryDeltaAndRankInEveryFormat) {
  for (const PaperTable& paper : PaperTables()) {
    SCOPED_TRACE(paper.layout);
    const Table table = BuiltPaperTable(paper);
    EXPECT_EQ(FromMarkdown(RenderMarkdown(table)), paper.rows);
    EXPECT_EQ(FromCsv(RenderCsv(table)), paper.rows);
    EXPECT_EQ(FromJson(RenderJson(table)), paper.rows);
    EXPECT_EQ(FromLatex(RenderLatex(table)), paper.rows);
    EXPECT_EQ(FromHtml(Render(table, "html").value()), paper.rows);
    EXPECT_TRUE(table.notes.empty()) << table.notes.front();
  }
}

TEST(Imported, ATableOfThemIsNeverExact) {
  for (const std::string format : {"md", "json", "latex", "html"}) {
    const std::string text = Render(BuiltPaperTable(PaperTables()[0]), format).value();
    EXPECT_THAT(text, Not(HasSubstr("exact)"))) << format;
    EXPECT_THAT(text, HasSubstr("imported")) << format;
  }
}

TEST(Imported, StandBehindTheSweepsRowsAndAreRanked) {
  const auto rows = ImportCsv("m,gsm8k.strict_match,other\nold,60.0,1\n", "old.csv");
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = BuildTable(TwoModels({{1, 0, 0, 0}, {1, 1, 1, 0}}), {}, *rows);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(SignedPercent(*table->rows[2].cells[0].delta, 1), "+35.0");
  EXPECT_EQ(table->rows[2].cells[0].rank->ToFixed(1), "2.0");
  EXPECT_FALSE(table->rows[2].cells[1].rank.has_value());
  EXPECT_THAT(table->notes, Contains("old: imported values without a column here: other"));
  const std::string md = RenderMarkdown(*table);
  EXPECT_THAT(md, HasSubstr("| old (imported) | 60.00 | +35.00 | – |  | 2.0 |"));
  EXPECT_THAT(md, HasSubstr("Imported rows were not scored by iha-eval"));
  EXPECT_THAT(md, HasSubstr("- model old · imported from CSV file "));
}

TEST(Imported, NamesWhatIsWrong) {
  const auto refused = [](const std::string& csv) { return std::string(ImportCsv(csv, "old.csv").status().message()); };
  EXPECT_THAT(refused("m,a\nx,one\n"), HasSubstr("old.csv: row 1 (x), column a: \"one\" is not a decimal number"));
  EXPECT_THAT(refused("m,a,a\nx,1,2\n"), HasSubstr("old.csv: column \"a\" appears twice"));
  EXPECT_THAT(refused(""), HasSubstr("old.csv: expected a header line"));
  EXPECT_THAT(refused("m,a\nx,100\ny,100.5\n"),
              HasSubstr("old.csv: row 2 (y), column a: 100.5 is no percentage between 0 and 100"));
  EXPECT_THAT(refused("m,a\nx,-1\n"), HasSubstr("-1 is no percentage"));
  EXPECT_THAT(refused("m,a\nx,1e400\n"), HasSubstr("1e400 is no percentage"));
  EXPECT_THAT(refused("m,a\n\"x\ny\",1,2\n"), HasSubstr("row 1 (x\\ny): 3 fields"));
  EXPECT_THAT(refused("m,\"a\nb\"\nx,one\n"), HasSubstr("column a\\nb: \"one\""));
  EXPECT_THAT(refused("m,a\nx,1\n ,2\n"), HasSubstr("old.csv: row 2 has no name"));
  const auto rows = ImportCsv("m,a\nmodel|0,1\n", "old.csv").value();
  EXPECT_THAT(std::string(BuildTable(TwoModels({{1, 0, 0, 0}}), {}, rows).status().message()),
              HasSubstr("imported row \"model|0\": the table has a row of that name"));
  EXPECT_THAT(std::string(BuildImportedTable(rows, {.layout = "table1", .baseline = ""}).status().message()),
              HasSubstr("the imported rows have none of its columns"));
  EXPECT_THAT(std::string(BuildImportedTable(rows, {.layout = "generic", .baseline = "b"}).status().message()),
              HasSubstr("--baseline \"b\": no such row; the table has model|0"));
  EXPECT_FALSE(BuildImportedTable({}, {}).ok());
}

TEST(Imported, TheLayoutSaysWhichColumnsNoRowHas) {
  const auto rows = ImportCsv("m,MBPP P@1,GSM8K P@1\nx,1.25,2\n", "old.csv").value();
  const auto table = BuildImportedTable(rows, {.layout = "table1", .baseline = ""});
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->columns.size(), 2u);
  EXPECT_EQ(table->columns[0].header, "GSM8K P@1");
  EXPECT_EQ(table->columns[1].decimals, 1);
  EXPECT_THAT(table->notes, Contains("column MBPP P@10 is left out: no imported row has it"));
}

// 1/3 and 2/3 print as 33.33 and 66.67; the difference of the printed values is one hundredth larger.
TEST(BuildTable, DeltasAreExactUnlessThePrintedOnesAreAskedFor) {
  Snapshot snapshot = TwoModels({{1, 0, 0, 0}, {1, 1, 0, 0}});
  for (JobRows& job : snapshot.jobs) {
    job.items.resize(3);
    job.spec.items = 3;
  }
  const auto exact = BuildTable(snapshot, {});
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_EQ(SignedPercent(*exact->rows[1].cells[0].delta, 2), "+33.33");
  const auto printed = BuildTable(snapshot, {.layout = "generic", .baseline = "", .printed_deltas = true});
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(SignedPercent(*printed->rows[1].cells[0].delta, 2), "+33.34");
}

}  // namespace
}  // namespace iha::reports
