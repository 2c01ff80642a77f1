// two_models.h: two fake checkpoints in a folder of their own, for tests of commands on stored sweeps.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace iha::testing {

// "alpha" and "beta", which say different things.
class TwoModels : public ::testing::Test {
 protected:
  void MakeModels() const {
    for (const uint64_t seed : {1U, 2U}) {
      const std::string folder = Path(seed == 1 ? "alpha" : "beta");
      ASSERT_TRUE(model::MakeFakeCheckpoint(folder, {.seed = seed, .style = model::FakeStyle::kWords}).ok());
    }
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  std::string Read(const std::string& name) const { return ReadFile(Path(name)).value_or("(unreadable)"); }

  // `iha-eval run` of some of the models over the rows of FILE.jsonl.
  std::vector<std::string> RunOf(const std::vector<std::string>& models, const std::string& file, const std::string& db,
                                 const std::string& out, const std::string& options = "") const {
    std::vector<std::string> argv = {"iha-eval", "run", "--bench", "jsonl:" + Path(file + ".jsonl") + options};
    for (const std::string& model : models) argv.insert(argv.end(), {"--model", Path(model)});
    argv.insert(argv.end(), {"--max-new-tokens", "12", "--numerics", "fake", "--threads", "1", "--quiet", "--db",
                             Path(db), "--out", Path(out)});
    return argv;
  }

  // Runs both over the rows of FILE.jsonl into x.db (first.db for a file of another name than q); the sweep's id.
  std::string RunRows(const std::string& file, const std::string& out, const std::vector<std::string>& more = {},
                      const std::string& options = "") const {
    std::vector<std::string> argv = RunOf({"alpha", "beta"}, file, file == "q" ? "x.db" : "first.db", out, options);
    argv.insert(argv.end(), more.begin(), more.end());
    const RunResult run = RunProgram(argv);
    EXPECT_EQ(run.exit.code, 0) << run.err;
    const auto table = nlohmann::json::parse(Read(out + "/table.json"), nullptr, false);
    return table.is_object() ? table.value("sweep", "") : "";
  }
  // Rows of q.jsonl whose reference answers are what alpha says: alpha is always right, beta hardly ever. Returns the
  // sweep of both over them.
  std::string AskWhatAlphaSays(int items) const {
    const auto row = [](int i, const nlohmann::json& answer) {
      return nlohmann::json{{"question", fmt::format("item {}, q1", i)}, {"answer", answer}}.dump() + "\n";
    };
    std::string questions;
    for (int i = 0; i < items; i++) questions += row(i, "?");
    EXPECT_TRUE(WriteFileAtomic(Path("first.jsonl"), questions).ok());
    RunRows("first", "first");
    std::istringstream lines(Read("first/samples.jsonl"));
    std::string answered, line;
    for (int i = 0; i < items && std::getline(lines, line); i++) {
      const auto sample = nlohmann::json::parse(line, nullptr, false);
      answered += row(i, sample["text"]);
    }
    EXPECT_TRUE(WriteFileAtomic(Path("q.jsonl"), answered).ok());
    return RunRows("q", "out");
  }
  // The bundle of one of them in the sweep `sweep_` of x.db; its path.
  std::string ExportBaseline(const std::string& model, const std::string& file) const {
    const RunResult done = RunProgram({"iha-eval", "export", "--baseline", sweep_.substr(0, 16) + "/" + model, "--db",
                                       Path("x.db"), "--out", Path(file)});
    EXPECT_EQ(done.exit.code, 0) << done.err;
    return Path(file);
  }
  // Exit `code`, nothing on stdout, one line on stderr that contains `message`.
  void Refuses(const RunResult& result, int code, const std::string& message) const {
    EXPECT_EQ(result.exit.code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, ::testing::HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  void Refuses(const std::vector<std::string>& argv, int code, const std::string& message) const {
    SCOPED_TRACE(::testing::PrintToString(argv));
    Refuses(RunProgram(argv), code, message);
  }

  TempDir dir_;
  std::string sweep_;
};

}  // namespace iha::testing
