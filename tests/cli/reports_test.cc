// table, figure and export of a finished database as people use them: every format, imported rows, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/eval_types.h"
#include "common/file.h"
#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tools.h"

namespace iha {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunProgram;
using ::testing::StartsWith;
using testing::TempDir;
using Json = nlohmann::json;

class ReportCommands : public ::testing::Test {
 protected:
  // Two checkpoints of one line on the demo set, once for all tests.
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    std::vector<std::string> argv = {"iha-eval", "run"};
    for (const int step : {1, 2}) {
      const std::string model = Path("models/line/step-" + std::to_string(step));
      ASSERT_TRUE(
          model::MakeFakeCheckpoint(model, {.seed = static_cast<uint32_t>(step), .style = model::FakeStyle::kWords})
              .ok());
      Json config = Json::parse(ReadFile(model + "/config.json").value());
      config["train_tokens"] = step * 1'000'000'000LL;
      ASSERT_TRUE(WriteFileAtomic(model + "/config.json", config.dump()).ok());
    }
    const Json sweep = {
        {"version", 1},
        {"models", {"line/step-1", "line/step-2"}},
        {"benchmarks",
         {{{"spec", "gsm8k_demo"}, {"limit", 6}, {"max_new_tokens", 48}},
          // Beyond any context: finished without a score.
          {{"spec", "gsm8k_demo"}, {"limit", 2}, {"max_new_tokens", 1048576}, {"metrics", {"gsm8k.robust"}}}}},
        {"numerics", {{"backend", "fake"}}}};
    ASSERT_TRUE(WriteFileAtomic(Path("sweep.json"), sweep.dump()).ok());
    const RunResult run = RunProgram({"iha-eval", "run", "--sweep", Path("sweep.json"), "--models-root", Path("models"),
                                      "--threads", "1", "--quiet", "--db", Path("x.db"), "--out", Path("o")});
    ASSERT_EQ(run.exit.code, 0) << run.err;
    sweep_ = Json::parse(RunProgram({"iha-eval", "list", "--db", Path("x.db"), "--json"}).out)["sweep"];
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string Path(const std::string& name) { return dir_->path() + "/" + name; }
  static RunResult Table(std::vector<std::string> more) {
    more.insert(more.begin(), {"iha-eval", "table", "--db", Path("x.db"), "--sweep", sweep_});
    return RunProgram(more);
  }
  static RunResult Figure(std::vector<std::string> more) {
    more.insert(more.begin(), {"iha-eval", "figure", "--db", Path("x.db"), "--sweep", sweep_});
    return RunProgram(more);
  }
  static void Refuses(const RunResult& result, int code, const std::string& message) {
    EXPECT_EQ(result.exit.code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  static TempDir* dir_;
  static std::string sweep_;
};
TempDir* ReportCommands::dir_ = nullptr;
std::string ReportCommands::sweep_;

TEST_F(ReportCommands, RenderingTwiceAndElsewhereGivesTheSameBytes) {
  std::filesystem::create_directories(Path("elsewhere"));
  ASSERT_EQ(RunProgram({"iha-eval", "backup", "--db", Path("x.db"), "--out", Path("elsewhere/y.db")}).exit.code, 0);
  for (const std::string format : {"md", "csv", "json", "latex", "html"}) {
    const RunResult first = Table({"--format", format});
    ASSERT_EQ(first.exit.code, 0) << first.err;
    EXPECT_EQ(first.out, Table({"--format", format}).out) << format;
    const RunResult copy =
        RunProgram({"iha-eval", "table", "--db", Path("elsewhere/y.db"), "--sweep", sweep_, "--format", format});
    EXPECT_EQ(first.out, copy.out) << format;
    EXPECT_THAT(first.out, Not(HasSubstr(dir_->path()))) << format;
  }
}

TEST_F(ReportCommands, HtmlShowsSamplesAsManyAsAreAskedFor) {
  EXPECT_EQ(Table({"--format", "html"}).out, ReadFile(Path("o/table.html")).value_or("(unreadable)"));
  const std::string page = Table({"--format", "html", "--show-samples", "2"}).out;
  EXPECT_THAT(page, HasSubstr("(2 of 6 samples)"));
  EXPECT_THAT(page, HasSubstr("href=\"#samples-1-0\""));
  EXPECT_THAT(page, HasSubstr("gsm8k.strict_match 0"));
  EXPECT_THAT(Table({"--format", "html", "--show-samples", "0"}).out, Not(HasSubstr("<details")));
}

TEST_F(ReportCommands, ImportedRowsStandBesideTheSweeps) {
  ASSERT_TRUE(WriteFileAtomic(Path("old.csv"), "Model,gsm8k_demo gsm8k.strict_match\nold,50\n").ok());
  const RunResult table = Table({"--import", Path("old.csv"), "--baseline", "old"});
  EXPECT_EQ(table.exit.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("| old (imported) | "), HasSubstr("Δ in points against old.")));
  const RunResult alone = RunProgram({"iha-eval", "table", "--import", "tests/reports/testdata/paper_table1.csv",
                                      "--layout", "table1", "--baseline", "Global Attention"});
  EXPECT_EQ(alone.exit.code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("| IHA (imported) | **34.3** | +4.8 |"));
  Refuses(Table({"--import", Path("none.csv")}), 3, "none.csv");
  Refuses(Table({"--import", Path("sweep.txt")}), 3, "expected a .csv, .json or .jsonl file");
  Refuses(Table({"--import", "x=" + Path("old.csv")}), 3, "the rows of a CSV bring their names");
  Refuses(RunProgram({"iha-eval", "table", "--db", Path("x.db")}), 2, "--sweep is missing");
  Refuses(RunProgram({"iha-eval", "table", "--import", Path("old.csv"), "--sweep", sweep_}), 2, "give --db FILE");
  Refuses(
      RunProgram({"iha-eval", "table", "--coordinator", "127.0.0.1:9", "--sweep", "1", "--import", Path("old.csv")}), 2,
      "--import: needs --db FILE, not --coordinator");
  Refuses(Table({"--delta-from", "memory"}), 2, "memory");
  EXPECT_EQ(Table({"--delta-from", "exact"}).out, Table({}).out);
  EXPECT_EQ(Table({"--delta-from", "printed"}).exit.code, 0);
}

// What export writes another table takes in, with the same numbers.
TEST_F(ReportCommands, LmEvalFilesGoOutAndComeBack) {
  const RunResult out =
      RunProgram({"iha-eval", "export", "lm-eval", "--db", Path("x.db"), "--sweep", sweep_, "--out", Path("lm")});
  ASSERT_EQ(out.exit.code, 0) << out.err;
  const std::string id = sweep_.substr(0, 16);
  const std::string folder = Path("lm/line__step-1/");
  const Json results = Json::parse(ReadFile(folder + "results_" + id + ".json").value_or("{}"), nullptr, false);
  EXPECT_EQ(results["model_name"], "line/step-1");
  EXPECT_EQ(results["n-samples"]["gsm8k_demo"]["effective"], 6);
  std::istringstream lines(ReadFile(folder + "samples_gsm8k_demo_" + id + ".jsonl").value_or(""));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json sample = Json::parse(line, nullptr, false);
  EXPECT_EQ(sample["doc_id"], 0);
  EXPECT_THAT(sample["arguments"]["gen_args_0"]["arg_0"].get<std::string>(), HasSubstr("Question: "));
  EXPECT_EQ(sample["resps"][0].size(), 1u);
  EXPECT_EQ(sample["metrics"], Json::array({"gsm8k.strict_match"}));
  // What that tool's own files have for each task.
  for (const char* task : {"gsm8k_demo", "gsm8k_demo.entry1"}) {
    for (const char* part : {"results", "group_subtasks", "configs", "versions", "n-shot", "higher_is_better"}) {
      EXPECT_TRUE(results[part].contains(task)) << part;
    }
    EXPECT_EQ(results["configs"][task]["num_fewshot"], results["n-shot"][task]);
    EXPECT_EQ(results["results"][task]["sample_len"], results["n-samples"][task]["effective"]);
  }

  const Json own = Json::parse(Table({"--format", "json"}).out);
  const auto import = [&](const std::string& file) { return "again=" + folder + file; };
  const std::vector<std::string> of_results = {"--import", import("results_" + id + ".json")};
  const std::vector<std::string> of_samples = {"--import", import("samples_gsm8k_demo_" + id + ".jsonl"), "--import",
                                               import("samples_gsm8k_demo.entry1_" + id + ".jsonl")};
  for (std::vector<std::string> flags : {of_results, of_samples}) {
    flags.insert(flags.end(), {"--format", "json"});
    const RunResult back = Table(flags);
    ASSERT_EQ(back.exit.code, 0) << back.err;
    const Json table = Json::parse(back.out);
    ASSERT_EQ(table["rows"].size(), 3u);
    EXPECT_THAT(table["rows"][2]["imported"].get<std::string>(), StartsWith("lm-evaluation-harness"));
    for (size_t c = 0; c < table["columns"].size(); c++) {
      EXPECT_EQ(table["rows"][2]["cells"][c]["value_exact"], own["rows"][0]["cells"][c]["value_exact"]) << flags[1];
    }
  }
  const RunResult bare = RunProgram({"iha-eval", "export", "lm-eval", "--db", Path("x.db"), "--sweep", sweep_, "--out",
                                     Path("bare"), "--no-prompts", "--data-root", "/nowhere"});
  EXPECT_EQ(bare.exit.code, 0) << bare.err;
  Refuses(RunProgram({"iha-eval", "export", "lm-eval", "--db", Path("no.db"), "--sweep", "1", "--out", Path("q")}), 3,
          "no.db");
  EXPECT_FALSE(std::filesystem::exists(Path("q")));
}

// The columns that docs/reports.md promises.
const std::pair<const char*, const char*> kViews[] = {
    {"v_job",
     "sweep, job, model, entry, benchmark, options, samples, temperature, seed, items, numerics_id, "
     "grader_version, benchmark_version, data_digest, prompt_digest, cancelled"},
    {"v_cell", "sweep, model, entry, benchmark, metric, grader_version, planned, scored, value, complete"},
    {"v_item", "sweep, model, entry, benchmark, item, item_id, metric, grader_version, state, score, num, den, winner"},
    {"v_sample",
     "sweep, model, entry, benchmark, item, item_id, sample, text, finish_reason, prompt_tokens, tokens, "
     "metric, grader_version, extracted, valid, state, score, reason"},
    {"v_unscored", "code, name, counts_as_wrong"},
};

TEST_F(ReportCommands, TheViewsStayAndSayWhatTheTableSays) {
  IHA_REQUIRE_TOOL(sqlite, "sqlite3");
  const auto query = [&](const std::string& sql) {
    const RunResult result = RunProgram({sqlite, "-json", Path("x.db"), sql});
    EXPECT_EQ(result.exit.code, 0) << result.err;
    return result.out.empty() ? Json::array() : Json::parse(result.out, nullptr, false);
  };
  const std::string docs = ReadFile("docs/reports.md").value_or("");
  for (const auto& [view, columns] : kViews) {
    std::string found;
    for (const Json& column : query(fmt::format("SELECT name FROM pragma_table_info('{}')", view))) {
      found += (found.empty() ? "" : ", ") + column["name"].get<std::string>();
    }
    EXPECT_EQ(found, columns) << view;
    EXPECT_THAT(docs, HasSubstr(fmt::format("| `{}` |", view)));
    EXPECT_THAT(docs, HasSubstr(fmt::format("| `{}` |\n", columns)));
  }
  const Json reasons = query("SELECT * FROM v_unscored ORDER BY code");
  for (int code = 0; code <= static_cast<int>(kLastUnscored); code++) {
    EXPECT_EQ(reasons[static_cast<size_t>(code)]["name"], NameOf(static_cast<Unscored>(code)));
  }
  const Json table = Json::parse(Table({"--format", "json"}).out);
  const Json cells = query("SELECT * FROM v_cell");
  EXPECT_EQ(cells.size(), table["rows"].size() * table["columns"].size());
  for (const Json& cell : cells) {
    const auto row = std::find_if(table["rows"].begin(), table["rows"].end(),
                                  [&](const Json& r) { return r["model"] == cell["model"]; });
    for (size_t c = 0; c < table["columns"].size(); c++) {
      const Json& column = table["columns"][c];
      if (column["entry"] != cell["entry"] || column["metric"] != cell["metric"]) continue;
      const Json& shown = (*row)["cells"][c];
      EXPECT_NEAR(cell["value"].get<double>(), shown["value"].get<double>(), 1e-12) << cell;
      EXPECT_EQ(cell["scored"], shown["scored"]) << cell;
      EXPECT_EQ(cell["planned"], shown["planned"]) << cell;
      EXPECT_EQ(cell["complete"] == 1, shown["complete"].get<bool>()) << cell;
    }
  }
  const Json samples =
      query("SELECT text FROM v_sample WHERE model = 'line/step-2' AND metric = 'gsm8k.robust' ORDER BY item");
  ASSERT_EQ(samples.size(), 6u);
  EXPECT_THAT(ReadFile(Path("o/samples.jsonl")).value_or(""), HasSubstr(samples[5]["text"].dump()));
}

TEST_F(ReportCommands, FiguresAreTheSameBytesWithoutADate) {
  IHA_REQUIRE_TOOL(converter, "rsvg-convert");
  const std::vector<std::string> tokens = {"--kind", "tokens", "--models-root", Path("models"), "--out"};
  for (const std::string extension : {"svg", "png", "pdf"}) {
    for (const std::string name : {"a.", "b."}) {
      std::vector<std::string> argv = tokens;
      argv.push_back(Path(name + extension));
      const RunResult drawn = Figure(argv);
      ASSERT_EQ(drawn.exit.code, 0) << drawn.err;
    }
    const std::string bytes = ReadFile(Path("a." + extension)).value_or("");
    EXPECT_EQ(bytes, ReadFile(Path("b." + extension)).value_or("(none)"));
    EXPECT_THAT(bytes, Not(HasSubstr("CreationDate")));
    EXPECT_THAT(bytes, StartsWith(extension == "svg" ? "<?xml" : extension == "png" ? "\x89PNG" : "%PDF"));
  }
}

TEST_F(ReportCommands, FiguresSayWhatTheyLack) {
  Refuses(Figure({"--kind", "ruler", "--out", "-"}), 3, "--kind ruler: the sweep has no entry of ruler");
  Refuses(Figure({"--kind", "pie", "--out", "-"}), 2, "pie");
  Refuses(Figure({"--out", Path("x.gif")}), 2, "expected a name that ends in .svg, .png or .pdf");
  Refuses(Figure({"--kind", "tokens", "--out", "-"}), 2, "--models-root");
  Refuses(Figure({"--kind", "ruler", "--metric", "x", "--out", "-"}), 2, "--metric: only with --kind tokens");
  Refuses(Figure({"--kind", "tokens", "--models-root", Path("o"), "--out", "-"}), 3, "has train_tokens");
  Refuses(RunProgram({"iha-eval", "figure", "--db", Path("no.db"), "--sweep", "1", "--out", "-"}), 3, "no.db");
  EXPECT_FALSE(std::filesystem::exists(Path("x.gif")));
}

}  // namespace
}  // namespace iha
