// compare: what changed between two stored models, as text and as JSON, and its refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/gate/comparison.h"
#include "common/file.h"
#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;
using testing::RunProgram;
using Json = nlohmann::json;

TEST(OutcomeOf, NamesWhatBecameOfASample) {
  const auto outcome = [](const std::string& metric, Score score, bool valid, FinishReason finish,
                          const std::string& extracted = "7", Unscored unscored = Unscored::kScored) {
    return cli::OutcomeOf(
        {.metric = metric, .extracted = extracted, .valid = valid, .unscored = unscored, .score = score, .reason = ""},
        finish);
  };
  EXPECT_EQ(outcome("m", {1, 1}, true, FinishReason::kLength), "correct");
  EXPECT_EQ(outcome("m", {0, 1}, true, FinishReason::kEos), "wrong");
  EXPECT_EQ(outcome("m", {1, 2}, true, FinishReason::kEos), "partly");
  EXPECT_EQ(outcome("m", {0, 1}, false, FinishReason::kStop), "no_answer");
  EXPECT_EQ(outcome("m", {0, 1}, false, FinishReason::kLength), "truncated");
  EXPECT_EQ(outcome("m", {0, 1}, false, FinishReason::kEos, "", Unscored::kGraderError), "grader_error");
  EXPECT_EQ(outcome("mbpp.pass@1", {0, 1}, true, FinishReason::kLength, "timed out"), "timed out");
  EXPECT_EQ(outcome("mbpp.pass@1", {0, 1}, true, FinishReason::kEos, "failed: NameError"), "failed");
}

class CompareCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"alpha", "beta"}) {
      ASSERT_TRUE(
          model::MakeFakeCheckpoint(Path(name), {.seed = name[0] == 'a' ? 1U : 2U, .style = model::FakeStyle::kWords})
              .ok());
    }
    // The reference of q0 is what alpha says to it, so that one item flips for sure.
    Write("first", "?");
    Run("first", "first");
    const std::string first = ReadFile(Path("first/samples.jsonl")).value_or("");
    Write("q", Json::parse(first.substr(0, first.find('\n')), nullptr, false).value("text", "?"));
    sweep_ = Run("q", "out").substr(0, 16);
  }
  void Write(const std::string& file, const std::string& answer) const {
    std::string questions;
    for (int i = 0; i < 6; i++) {
      questions += Json{{"question", fmt::format("q{}", i)}, {"answer", i == 0 ? answer : "never"}}.dump() + "\n";
    }
    ASSERT_TRUE(WriteFileAtomic(Path(file + ".jsonl"), questions).ok());
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  std::string Run(const std::string& file, const std::string& out) const {
    const RunResult run =
        RunProgram({"iha-eval", "run", "--model", Path("alpha"), "--model", Path("beta"), "--bench",
                    "jsonl:" + Path(file + ".jsonl"), "--max-new-tokens", "12", "--numerics", "fake", "--threads", "1",
                    "--quiet", "--db", Path(file == "q" ? "x.db" : "first.db"), "--out", Path(out)});
    EXPECT_EQ(run.exit.code, 0) << run.err;
    return Json::parse(ReadFile(Path(out + "/table.json")).value_or("{}"), nullptr, false).value("sweep", "");
  }
  RunResult Compare(const std::string& a, const std::string& b, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv = {"iha-eval", "compare", "--db", Path("x.db"), a, b};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  }

  testing::TempDir dir_;
  std::string sweep_;
};

TEST_F(CompareCommand, ShowsFlippedItemsWithBothTexts) {
  const RunResult result = Compare(sweep_ + "/alpha", sweep_ + "/beta", {"--json", "--metrics", "exact"});
  ASSERT_EQ(result.exit.code, 0) << result.err;
  const Json json = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["metrics"][0]["test"], "mcnemar");
  EXPECT_EQ(json["metrics"][0]["worse"], 1);
  EXPECT_EQ(json["metrics"][0]["p"], 1.0);
  EXPECT_EQ(json["metrics"][0]["mid_p"], 0.5);
  ASSERT_EQ(json["flips"].size(), 1U);
  const Json& flip = json["flips"][0];
  EXPECT_EQ(flip["index"], 0);
  EXPECT_EQ(flip["a"]["value"], "1");
  EXPECT_EQ(flip["a"]["outcome"], "correct");
  EXPECT_EQ(flip["b"]["value"], "0");
  EXPECT_NE(flip["a"]["text"], flip["b"]["text"]);
  EXPECT_EQ(json["outcomes"][0]["a"]["correct"], 1);

  const RunResult text = Compare(sweep_ + "/alpha", sweep_ + "/beta");
  EXPECT_EQ(text.exit.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Flipped items: 1, shown 1"));
  EXPECT_THAT(text.out, HasSubstr("item 0 (row/0) · sample 0: A 1 (correct), B 0 ("));
  EXPECT_THAT(text.out, HasSubstr(" | "));
  EXPECT_THAT(Compare(sweep_ + "/alpha", sweep_ + "/alpha").out, HasSubstr("bit-identical outputs on 6 items"));
}

TEST_F(CompareCommand, RefusesWhatItCannotCompare) {
  const auto refuses = [](const RunResult& result, int code, const std::string& message) {
    EXPECT_EQ(result.exit.code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refuses(Compare("alpha", sweep_ + "/beta"), 3, "A: found \"alpha\", expected SWEEP/MODEL");
  refuses(Compare(sweep_ + "/alpha", sweep_ + "/bta"), 3, "did you mean \"beta\"?");
  refuses(Compare(sweep_ + "/alpha", sweep_ + "/beta", {"--metrics", "exakt"}), 3, "unknown metric \"exakt\"");
  refuses(Compare(sweep_ + "/alpha", sweep_ + "/beta", {"--flips", "-1"}), 2, "--flips");
}

}  // namespace
}  // namespace iha
