// RULER from the flag to the table, on a fake checkpoint whose tokens are bytes: rows made by the workers, killed and
// resumed runs of equal bytes, what is over the context, what the generator cannot make.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunProgram;

class RulerRun : public ::testing::Test {
 protected:
  void SetUp() override {
    IHA_REQUIRE_DATA(data);
    data_ = data;
    const model::FakeOptions options{.context_tokens = 4096, .style = model::FakeStyle::kWords};
    ASSERT_TRUE(model::MakeFakeCheckpoint(dir_.File("alpha"), options).ok());
  }

  RunResult Run(const std::string& bench, const std::string& out, const std::vector<std::string>& extra = {},
                const std::string& cache = "cache") const {
    std::vector<std::string> argv = {
        "iha-eval",  "run",        "--model", dir_.File("alpha"), "--bench",        bench,         "--limit",
        "5",         "--numerics", "fake",    "--cache-dir",      dir_.File(cache), "--data-root", data_,
        "--threads", "1",          "--out",   dir_.File(out)};
    argv.insert(argv.end(), extra.begin(), extra.end());
    return RunProgram(argv);
  }
  std::string Read(const std::string& out, const std::string& file) const {
    const auto text = ReadFile(dir_.File(out) + "/" + file);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }
  json Table(const std::string& out) const { return json::parse(Read(out, "table.json")); }

  std::string data_;
  testing::TempDir dir_;
};

constexpr char kBench[] = "ruler:niah_single_1,niah_multikey_2@1536,3072";

TEST_F(RulerRun, KilledAndResumedToTheSameBytes) {
  const RunResult calm = Run(kBench, "calm");
  ASSERT_EQ(calm.exit.code, 0) << calm.err;
  const RunResult killed = Run(kBench, "dead", {"--workers", "2", "--fault", "store.commit.after_insert:kill:7"});
  ASSERT_EQ(killed.exit.signal, SIGKILL) << killed.err;
  // One worker: an item that two lose, each in its first life, is quarantined.
  const RunResult resumed = Run(kBench, "dead", {"--worker-fault", "worker.sample.done:kill:4"});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  // Rows that are made anew, one at a time, are the cached ones.
  const RunResult alone = Run(kBench, "alone", {"--max-batch", "1"}, "other");
  ASSERT_EQ(alone.exit.code, 0) << alone.err;
  for (const char* file : {"table.json", "table.md", "table.csv", "samples.jsonl"}) {
    EXPECT_EQ(Read("calm", file), Read("dead", file)) << file;
    EXPECT_EQ(Read("calm", file), Read("alone", file)) << file;
  }
  const RunResult fsck = RunProgram({"iha-eval", "fsck", "--db", dir_.File("dead") + "/iha-eval.db"});
  EXPECT_EQ(fsck.exit.code, 0) << fsck.out << fsck.err;
}

TEST_F(RulerRun, ItemsAreNamedByTaskLengthAndRow) {
  ASSERT_EQ(Run("ruler:niah_single_1@1536", "o").exit.code, 0);
  const std::string samples = Read("o", "samples.jsonl");
  EXPECT_THAT(samples, AllOf(HasSubstr("\"niah_single_1@1536/0\""), HasSubstr("\"niah_single_1@1536/4\"")));
  const json cell = Table("o")["rows"][0]["cells"][0];
  EXPECT_EQ(cell["metric"], "ruler.string_match");
  EXPECT_EQ(cell["scored"], 5);
  const json entry = Table("o")["provenance"]["entries"][0];
  EXPECT_EQ(entry["benchmark"], "ruler:niah_single_1@1536");
  EXPECT_EQ(entry["sampling"]["max_new_tokens"], 128);
  EXPECT_EQ(entry["options"]["mode"], "official");
}

// The figure is drawn from the stored run: a bar for each model and length, of the very cells that the table shows.
TEST_F(RulerRun, TheFigureShowsWhatTheDatabaseHolds) {
  ASSERT_TRUE(model::MakeFakeCheckpoint(dir_.File("beta"),
                                        {.context_tokens = 4096, .seed = 2, .style = model::FakeStyle::kWords})
                  .ok());
  ASSERT_EQ(Run("ruler:niah_single_1,niah_multikey_2@1024,2048", "o", {"--model", dir_.File("beta")}).exit.code, 0);
  const auto draw = [&](const std::string& kind) {
    const RunResult drawn = RunProgram({"iha-eval", "figure", "--db", dir_.File("o") + "/iha-eval.db", "--sweep",
                                        Table("o")["sweep"], "--kind", kind, "--out", "-"});
    EXPECT_EQ(drawn.exit.code, 0) << drawn.err;
    return drawn.out;
  };
  const std::string svg = draw("ruler");
  EXPECT_THAT(svg, AllOf(HasSubstr(">alpha</text>"), HasSubstr(">beta</text>"), HasSubstr(">1k</text>"),
                         HasSubstr(">2k</text>"), HasSubstr("multi-key retrieval: mean of niah_multikey_2")));
  // Each model: two lengths, all of it, and the legend.
  for (const char* series : {"fill=\"url(#p0)\"", "fill=\"url(#p1)\""}) {
    size_t bars = 0;
    for (size_t at = svg.find(series); at != std::string::npos; at = svg.find(series, at + 1)) bars++;
    EXPECT_EQ(bars, 4u) << series;
  }
  for (const json& row : Table("o")["rows"]) {
    for (const json& cell : row["cells"]) EXPECT_TRUE(cell["complete"]);
    EXPECT_THAT(svg, HasSubstr(fmt::format(">{:.1f}</text>", 100.0 * row["cells"][1]["value"].get<double>())));
  }
  EXPECT_EQ(draw("ruler"), svg);
  EXPECT_THAT(draw("length"), HasSubstr("stroke-dasharray"));
}

TEST_F(RulerRun, ALengthBeyondTheContextIsAnErrorUnlessAllowed) {
  const RunResult refused = Run("ruler:niah_single_1@4097", "no");
  EXPECT_EQ(refused.exit.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("ruler:niah_single_1@4097: items of 4097 tokens, alpha has a context of 4096"));
  EXPECT_THAT(ReadFile(dir_.File("no") + "/iha-eval.db").status().ToString(), HasSubstr("NOT_FOUND"));
  // Next to a length within the context, whose leases must not run on the longer engine's terms.
  const RunResult allowed = Run("ruler:niah_single_1@1536,6000?allow_over_context", "yes");
  ASSERT_EQ(allowed.exit.code, 0) << allowed.err;
  const json row = Table("yes")["rows"][0];
  EXPECT_EQ(row["cells"][1]["scored"], 5) << allowed.out;
  EXPECT_EQ(row["cells"][0]["over_context"], false);
  EXPECT_EQ(row["cells"][1]["over_context"], true);
  EXPECT_THAT(allowed.out, HasSubstr("6000 tokens an item, beyond the model's context of 4096"));
}

// NVIDIA counts no BOS: an official row that fills its length exceeds it by one where the tokenizer adds one.
TEST_F(RulerRun, RowsThatExceedTheirLengthAreCounted) {
  const std::string path = dir_.File("alpha") + "/tokenizer.json";
  json tokenizer = json::parse(ReadFile(path).value());
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"special_tokens", {{"b", {{"id", "b"}, {"ids", {tokenizer.at("added_tokens").at(0).at("id")}}}}}},
      {"single", {{{"SpecialToken", {{"id", "b"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  ASSERT_TRUE(WriteFileAtomic(path, tokenizer.dump()).ok());
  // What a row lacks to its length follows from its key: some of these are filled to the last token.
  std::string lengths = "3000";
  for (int length = 3001; length < 3100; length++) lengths += fmt::format(",{}", length);
  const auto full = [&](const std::string& mode) {
    const RunResult made = RunProgram({"iha-eval", "ruler", "generate", "--tokenizer", dir_.File("alpha"),
                                       "--data-root", data_, "--tasks", "niah_single_1", "--lengths", lengths,
                                       "--samples", "1", "--mode", mode, "--out", dir_.File(mode), "--json"});
    EXPECT_EQ(made.exit.code, 0) << made.err;
    std::vector<int64_t> found;
    std::istringstream lines(made.out);
    for (std::string line; std::getline(lines, line);) {
      const json file = json::parse(line);
      if (file.at("over_length") == 1) found.push_back(file.at("length"));
    }
    return found;
  };
  EXPECT_TRUE(full("seeded").empty());
  const std::vector<int64_t> lengths_filled = full("official");
  ASSERT_FALSE(lengths_filled.empty());
  const std::string bench = fmt::format("ruler:niah_single_1@{}?template=base", lengths_filled[0]);
  const RunResult run = Run(bench, "o");
  ASSERT_EQ(run.exit.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(" of 5 items of RULER exceed their length by up to a token, new tokens included"));
  const RunResult seeded = Run(bench + "&mode=seeded", "s");
  ASSERT_EQ(seeded.exit.code, 0) << seeded.err;
  EXPECT_THAT(seeded.out, Not(HasSubstr("exceed")));
}

TEST_F(RulerRun, WhatTheGeneratorCannotMakeIsUnscoredByName) {
  const RunResult run = Run("ruler:qa_2@1024", "dead");
  ASSERT_EQ(run.exit.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("5 of 5 items generator_dead_end"));
  const json cell = Table("dead")["rows"][0]["cells"][0];
  EXPECT_EQ(cell["scored"], 0);
  EXPECT_EQ(cell["complete"], false);
  EXPECT_EQ(cell["value"], nullptr);
  EXPECT_EQ(cell["unscored"]["generator_dead_end"], 5);
}

TEST_F(RulerRun, ShardsAreSizedByTheLength) {
  std::vector<std::string> argv = {"iha-eval",        "run",        "--model", dir_.File("alpha"), "--bench",
                                   "ruler@2048,4096", "--numerics", "fake",    "--data-root",      data_,
                                   "--dry-run"};
  const RunResult text = RunProgram(argv);
  EXPECT_THAT(text.out,
              HasSubstr("\n    500 items, 63 shards, 960000 prompt tokens (RULER's items counted as full), at most "
                        "1024000 tokens with generations\n"));
  argv.emplace_back("--json");
  const RunResult plan = RunProgram(argv);
  ASSERT_EQ(plan.exit.code, 0) << plan.err;
  const json jobs = json::parse(plan.out)["jobs"];
  ASSERT_EQ(jobs.size(), 26u);
  EXPECT_THAT(jobs[0]["entry"].get<std::string>(), HasSubstr("ruler:niah_single_1@2048?"));
  EXPECT_EQ(jobs[0]["items"], 500);
  EXPECT_EQ(jobs[0]["shards"], 63);  // eight items of 2048 tokens are 16384
  EXPECT_EQ(jobs[25]["shards"], 125);
}

TEST_F(RulerRun, ExplainShowsThePromptWithTheCheckpoint) {
  ASSERT_EQ(Run("ruler:niah_single_1@1536?template=base", "o").exit.code, 0);
  std::vector<std::string> argv = {"iha-eval",    "explain",
                                   "--db",        dir_.File("o") + "/iha-eval.db",
                                   "--sweep",     Table("o")["sweep"].get<std::string>(),
                                   "--model",     "alpha",
                                   "--item",      "3",
                                   "--data-root", data_,
                                   "--json"};
  const RunResult without = RunProgram(argv);
  ASSERT_EQ(without.exit.code, 0) << without.err;
  EXPECT_FALSE(json::parse(without.out).contains("prompt"));
  argv.insert(argv.end(), {"--checkpoint", dir_.File("alpha")});
  const RunResult with = RunProgram(argv);
  ASSERT_EQ(with.exit.code, 0) << with.err;
  const json story = json::parse(with.out);
  EXPECT_THAT(story["prompt"].get<std::string>(), HasSubstr("A special magic number is hidden within"));
  EXPECT_THAT(story["prompt"].get<std::string>(), HasSubstr(story["gold"].get<std::string>()));
  EXPECT_EQ(story["item_id"], "niah_single_1@1536/3");
  const RunResult regraded =
      RunProgram({"iha-eval", "regrade", "--data-root", data_, "--db", dir_.File("o") + "/iha-eval.db", "--sweep",
                  Table("o")["sweep"].get<std::string>()});
  EXPECT_EQ(regraded.exit.code, 0) << regraded.err;
  EXPECT_THAT(regraded.out, HasSubstr("not graded again: its references follow from the checkpoint"));
}

TEST_F(RulerRun, BadSpecsAreOneLine) {
  for (const auto& [bench, said] :
       std::vector<std::pair<std::string, std::string>>{{"ruler:niah_singel_1@4096", "niah_single_1"},
                                                        {"ruler@4k", "length '4k'"},
                                                        {"ruler:vt@4096?mode=fast", "option mode: found 'fast'"},
                                                        {"ruler?fewshot=3", "fewshot"},
                                                        {"rulre@4096", "unknown benchmark"}}) {
    const RunResult run = Run(bench, "bad");
    EXPECT_EQ(run.exit.code, 2) << bench;
    EXPECT_THAT(run.err, HasSubstr(said)) << bench;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

// What the checkpoint's tokenizer says of an entry is found before anything is stored: the shortest length tells.
TEST_F(RulerRun, ALengthTooShortForATaskIsAnErrorThatNamesTheLeast) {
  const RunResult run = Run("ruler:niah_single_1,vt@3072,200", "short");
  EXPECT_EQ(run.exit.code, 3) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("alpha: ruler:niah_single_1@200: RULER niah_single_1: length 200 is too short: with "
                                 "nothing to read between its words it takes "));
  EXPECT_FALSE(fs::exists(dir_.File("short")));
  EXPECT_EQ(Run("ruler:niah_single_1@3072,200", "short", {"--dry-run"}).exit.code, 3);
}

}  // namespace
}  // namespace iha
