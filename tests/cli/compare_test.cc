// compare: what changed between two stored models, as text and as JSON, and its refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/gate/comparison.h"
#include "common/file.h"
#include "tests/cli/two_models.h"

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
  EXPECT_EQ(outcome("ruler.string_match", {0, 1}, false, FinishReason::kEos, ""), "wrong");
  EXPECT_EQ(outcome("ruler.string_match", {0, 1}, false, FinishReason::kLength, ""), "truncated");
  EXPECT_EQ(outcome("mbpp.pass@1", {0, 1}, true, FinishReason::kLength, "timed out"), "timed out");
  EXPECT_EQ(outcome("mbpp.pass@1", {0, 1}, true, FinishReason::kEos, "failed: NameError"), "failed");
}

class CompareCommand : public testing::TwoModels {
 protected:
  void SetUp() override {
    MakeModels();
    // The reference of q0 is what alpha says to it, so that one item flips for sure.
    Write("first", "?");
    RunRows("first", "first");
    const std::string first = ReadFile(Path("first/samples.jsonl")).value_or("");
    Write("q", Json::parse(first.substr(0, first.find('\n')), nullptr, false).value("text", "?"));
    sweep_ = RunRows("q", "out").substr(0, 16);
  }
  void Write(const std::string& file, const std::string& answer) const {
    std::string questions;
    for (int i = 0; i < 6; i++) {
      questions += Json{{"question", fmt::format("q{}", i)}, {"answer", i == 0 ? answer : "never"}}.dump() + "\n";
    }
    ASSERT_TRUE(WriteFileAtomic(Path(file + ".jsonl"), questions).ok());
  }
  RunResult Compare(const std::string& a, const std::string& b, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv = {"iha-eval", "compare", "--db", Path("x.db"), a, b};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  }
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
  std::filesystem::remove(Path("q.jsonl"));
  const std::string without = Compare(sweep_ + "/alpha", sweep_ + "/beta").out;
  EXPECT_THAT(without, HasSubstr("note: jsonl:" + Path("q.jsonl") + ": exemplars not checked: "));
}

// Two settings of one benchmark are two tasks: their samples are not added up.
TEST_F(CompareCommand, CountsWhatBecameOfTheSamplesBySetting) {
  const std::string sweep =
      RunRows("q", "both", {"--bench", "jsonl:" + Path("q.jsonl") + "?samples=3&temperature=0.6"}).substr(0, 16);
  const RunResult result = Compare(sweep + "/alpha", sweep + "/beta", {"--json"});
  ASSERT_EQ(result.exit.code, 0) << result.err;
  const Json json = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  std::map<std::string, int64_t> samples;
  for (const Json& row : json["outcomes"]) {
    for (const Json& count : row["a"]) samples[row["benchmark"].get<std::string>()] += count.get<int64_t>();
  }
  EXPECT_EQ(samples["jsonl:" + Path("q.jsonl") + " T=0 k=1"], 6);
  EXPECT_EQ(samples["jsonl:" + Path("q.jsonl") + " T=0.6 k=3"], 18);
  // B's own sweep has one of the two: it is called as A calls it.
  const RunResult one = Compare(sweep_ + "/alpha", sweep + "/beta", {"--json"});
  const Json single = Json::parse(one.out, nullptr, false);
  ASSERT_EQ(single["outcomes"].size(), 1u) << one.out << one.err;
  EXPECT_EQ(single["outcomes"][0]["benchmark"], "jsonl:" + Path("q.jsonl"));
  EXPECT_THAT(single["notes"][0].get<std::string>(), HasSubstr(" T=0.6 k=3: only the candidate has it"));
}

// One of six items changes, in its mean and in its pass@2.
TEST_F(CompareCommand, SaysThatAnItemCountsForEachMetric) {
  const std::string spec = "jsonl:" + Path("q.jsonl") + "?samples=2&temperature=0";
  const Json sweep = {
      {"version", 1},
      {"models", {"alpha", "beta"}},
      {"benchmarks", {{{"spec", spec}, {"max_new_tokens", 12}, {"metrics", {"exact", "pass@2?metric=exact"}}}}},
      {"numerics", {{"backend", "fake"}}}};
  ASSERT_TRUE(WriteFileAtomic(Path("s.json"), sweep.dump()).ok());
  const RunResult run = RunProgram({"iha-eval", "run", "--sweep", Path("s.json"), "--models-root", Path("."),
                                    "--threads", "1", "--quiet", "--db", Path("x.db"), "--out", Path("two")});
  ASSERT_EQ(run.exit.code, 0) << run.err;
  const std::string id = Json::parse(Read("two/table.json"), nullptr, false).value("sweep", "");
  const auto side = [&](const std::string& model) { return id + "/" + model; };
  const Json json = Json::parse(Compare(side("alpha"), side("beta"), {"--json"}).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["flipped"], 2);
  EXPECT_EQ(json["flipped_items"], 1);
  EXPECT_THAT(Compare(side("alpha"), side("beta")).out,
              HasSubstr("Flipped items: 1 (an item counts once for each metric: 2), shown 2"));
}

TEST_F(CompareCommand, RefusesWhatItCannotCompare) {
  Refuses(Compare("alpha", sweep_ + "/beta"), 2, "A: found \"alpha\", expected SWEEP/MODEL");
  Refuses(Compare(sweep_ + "/alpha", sweep_ + "/bta"), 3, "did you mean \"beta\"?");
  Refuses(Compare(sweep_ + "/alpha", sweep_ + "/beta", {"--metrics", "exakt"}), 3, "unknown metric \"exakt\"");
  Refuses(Compare(sweep_ + "/alpha", sweep_ + "/beta", {"--flips", "-1"}), 2, "--flips");
}

}  // namespace
}  // namespace iha
