// LaTeX tables: pdflatex compiles them, whatever stands in the names.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/child_process.h"
#include "common/file.h"
#include "reports/render.h"
#include "tests/reports/paper_fixture.h"
#include "tests/reports/two_models.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tools.h"

namespace iha::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;

struct Compiled {
  int exit = -1;
  std::string log;
};

Compiled Compile(const std::string& pdflatex, const std::string& tables) {
  const TempDir dir;
  const std::string document = fmt::format(
      "\\documentclass{{article}}\n\\usepackage{{booktabs,graphicx,xcolor}}\n\\begin{{document}}\n{}\\end{{document}}"
      "\n",
      tables);
  EXPECT_TRUE(WriteFileAtomic(dir.File("t.tex"), document).ok());
  ChildOptions options;
  options.argv = {pdflatex, "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "t.tex"};
  options.env.push_back("HOME=" + dir.path());
  options.cwd = dir.path();
  const auto run = RunChild(options, "", {.timeout = absl::Minutes(2)});
  EXPECT_TRUE(run.ok()) << run.status();
  return {run->exit.code, ReadFile(dir.File("t.log")).value_or("no log")};
}

TEST(RenderLatex, ThePapersTablesCompileAndFitThePage) {
  IHA_REQUIRE_TOOL(pdflatex, "pdflatex");
  std::string tables;
  for (const PaperTable& paper : PaperTables()) tables += RenderLatex(BuiltPaperTable(paper));
  const Compiled compiled = Compile(pdflatex, tables);
  EXPECT_EQ(compiled.exit, 0) << compiled.log;
  EXPECT_THAT(compiled.log, Not(HasSubstr("Overfull")));
  EXPECT_THAT(compiled.log, HasSubstr("Output written on t.pdf (1 page"));
}

// Every printable ASCII character first, alone and doubled (ligatures, a star or bracket behind a line end), then what
// pdflatex has no glyph for, controls, broken UTF-8, and commands.
TEST(RenderLatex, HostileNamesStayText) {
  IHA_REQUIRE_TOOL(pdflatex, "pdflatex");
  std::vector<std::string> names;
  for (int c = 0x20; c < 0x7F; c++) names.push_back(fmt::format("{0}{0}", static_cast<char>(c)));
  names.insert(names.end(), {"[2pt] x", "*", "\\input{/etc/passwd}", "a\nb\r\nc\\\\", "%\\end{tabular}", "^^M\\end",
                             "é Ü ß ÷", "ð Þ", "中文", "\xff\xfe",
                             "\xe2\x80\xae"
                             "abc",
                             "a\x1b[31m\x01", "---", "?`!`<<,,''``"});
  Snapshot snapshot = TwoModels(std::vector<std::vector<int>>(names.size(), {1, 0, 1, 0}));
  for (size_t m = 0; m < names.size(); m++) snapshot.spec.models[m].name = names[m];
  snapshot.spec.entries[0].benchmark.options["system"] = "100 % \\undefined $x_1$ & {";
  const auto table = BuildTable(snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  const std::string tex = RenderLatex(*table);
  // 108 rows, and more notes than a page holds.
  const Compiled compiled = Compile(pdflatex, tex);
  EXPECT_EQ(compiled.exit, 0) << compiled.log << tex;
  EXPECT_THAT(compiled.log, Not(HasSubstr("Float too large")));
  EXPECT_THAT(tex, HasSubstr("\\textbackslash{}input\\{/etc/passwd\\}"));
  EXPECT_THAT(tex, HasSubstr("{[}U+4E2D{]}{[}U+6587{]}"));
  EXPECT_THAT(tex, HasSubstr("{[}U+FFFD{]}"));
  EXPECT_THAT(tex, HasSubstr("\n{[}2pt{]} x &"));
}

// A name of 300 characters leaves the table as large as it was, and stands below in whole, within the page.
TEST(RenderLatex, LongNamesShrinkNothingAndStandBelow) {
  IHA_REQUIRE_TOOL(pdflatex, "pdflatex");
  Snapshot snapshot = TwoModels({{1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 1, 0}});
  const std::string same(299, 'm');
  snapshot.spec.models[0].name = same + "1";
  snapshot.spec.models[1].name = same + "2";
  snapshot.spec.models[2].name = std::string(100, '&') + std::string(100, '_') + "\xe4\xb8\xad";
  snapshot.spec.entries[0].benchmark.options["system"] = std::string(200, 'x');
  const auto table = BuildTable(snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  std::string tex = RenderLatex(*table);
  EXPECT_THAT(tex, HasSubstr("\n" + std::string(26, 'm') + "\\ldots{} (1) & "));
  EXPECT_THAT(tex, HasSubstr("\n" + std::string(26, 'm') + "\\ldots{} (2) & "));
  EXPECT_THAT(tex, HasSubstr("\n(1) mmmm"));
  const auto width_at = tex.find("\\leavevmode");
  ASSERT_NE(width_at, std::string::npos);
  tex.insert(width_at, "\\typeout{width \\the\\wd0 of \\the\\linewidth}");
  const Compiled compiled = Compile(pdflatex, tex);
  EXPECT_EQ(compiled.exit, 0) << compiled.log << tex;
  EXPECT_THAT(compiled.log, Not(HasSubstr("Overfull"))) << tex;
  double width = 0, line = 0;
  const size_t at = compiled.log.find("width ");
  ASSERT_EQ(sscanf(compiled.log.c_str() + at, "width %lfpt of %lfpt", &width, &line), 2) << compiled.log;
  EXPECT_LT(width, 1.6 * line);
}

// More columns than a line holds stand in blocks below each other, ranks behind the last.
TEST(RenderLatex, ManyColumnsStandInBlocks) {
  IHA_REQUIRE_TOOL(pdflatex, "pdflatex");
  Snapshot snapshot = TwoModels({{1, 0, 1, 0}, {1, 1, 0, 0}});
  const SweepEntry entry = snapshot.spec.entries[0];
  const std::vector<JobRows> jobs = snapshot.jobs;
  snapshot.jobs.clear();
  snapshot.spec.entries.clear();
  for (int e = 0; e < 4; e++) {
    snapshot.spec.entries.push_back(entry);
    snapshot.spec.entries.back().benchmark.options["fewshot"] = std::to_string(e);
  }
  for (const JobRows& job : jobs) snapshot.jobs.insert(snapshot.jobs.end(), 4, job);
  const auto table = BuildTable(snapshot, {});
  ASSERT_TRUE(table.ok()) << table.status();
  const std::string tex = RenderLatex(*table);
  const auto count = [&](const std::string& text) {
    size_t found = 0;
    for (size_t at = tex.find(text); at != std::string::npos; at = tex.find(text, at + 1)) found++;
    return found;
  };
  EXPECT_EQ(count("\\begin{tabular}{lr@{\\ \\ }lr@{\\ \\ }lr@{\\ \\ }lr@{\\ \\ }l"), 2u) << tex;
  EXPECT_EQ(count("Avg.{} Rank"), 1u);
  EXPECT_LT(tex.find("fewshot=1"), tex.find("Avg.{} Rank"));
  for (int e = 0; e < 4; e++) EXPECT_EQ(count(fmt::format("fewshot={}}}", e)), 2u) << e;
  const Compiled compiled = Compile(pdflatex, tex);
  EXPECT_EQ(compiled.exit, 0) << compiled.log << tex;
  EXPECT_THAT(compiled.log, Not(HasSubstr("Overfull"))) << tex;
}

TEST(RenderLatex, MarksBestDeltasIntervalsAndIncompleteCells) {
  const auto table = BuildTable(TwoModels({{1, 0, 0, 0}, {1, 1, 1, 0}, {1, 1}}), {});
  ASSERT_TRUE(table.ok()) << table.status();
  const std::string tex = RenderLatex(*table);
  EXPECT_THAT(tex, HasSubstr("\\textbf{75.00} & \\textcolor{ihagain}{$+50.00$}"));
  EXPECT_THAT(tex, HasSubstr("100.00{*}"));
  EXPECT_THAT(tex, HasSubstr("\\scriptsize {[}4.6, 69.9{]}"));
  EXPECT_THAT(tex, HasSubstr("Note: model\\textbar{}2 / "));
  EXPECT_THAT(tex, HasSubstr("\n% sweep "));
  const auto worse = BuildTable(TwoModels({{1, 1, 1, 0}, {1, 0, 0, 0}}), {});
  EXPECT_THAT(RenderLatex(*worse), HasSubstr("\\textcolor{ihaloss}{$-50.00$}"));
}

}  // namespace
}  // namespace iha::reports
