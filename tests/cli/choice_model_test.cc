// `choice:FILE` on the imported SmolLM2 against lm-evaluation-harness 0.4.13 (HFLM, float32) on the same questions:
// log-likelihoods, which are greedy, acc and acc_norm. The file holds that program's numbers beside each question; its
// own rows end prompts in several kinds of white space, begin with special tokens, or have no prompt at all.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "common/file.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using nlohmann::json;

std::vector<json> Lines(const std::string& path) {
  const auto text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  std::istringstream in(text.value_or(""));
  std::vector<json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(ChoiceModel, EqualsLmEval) {
  IHA_REQUIRE_MODEL(model);
  const testing::TempDir dir;
  const RunResult run =
      testing::RunProgram({"iha-eval", "run", "--model", model, "--bench", std::string("choice:") + IHA_CHOICE_CASES,
                           "--quiet", "--out", dir.File("o")});
  ASSERT_EQ(run.exit.code, 0) << run.err;
  const std::vector<json> expected = Lines(IHA_CHOICE_CASES), samples = Lines(dir.File("o/samples.jsonl"));
  ASSERT_EQ(samples.size(), 20u);
  ASSERT_EQ(samples.size(), expected.size());
  for (size_t i = 0; i < samples.size(); i++) {
    SCOPED_TRACE(samples[i].at("item_id").get<std::string>());
    const json& choices = samples[i].at("choices");
    const json& theirs = expected[i].at("lm_eval");
    ASSERT_EQ(choices.size(), theirs.at("loglikelihood").size());
    for (size_t c = 0; c < choices.size(); c++) {
      // Noise of float32 logits of this model is at most 5e-5 (hf_parity); a token's log-probability has that of its
      // logit and that of the normaliser.
      const double tolerance = 1e-4 * choices[c].at("tokens").get<double>();
      EXPECT_NEAR(choices[c].at("loglikelihood").get<double>(), theirs.at("loglikelihood")[c].get<double>(), tolerance);
      EXPECT_EQ(choices[c].at("greedy"), theirs.at("greedy")[c]);
    }
    // No two choices of a row lie closer than twenty times the tolerance.
    for (const char* metric : {"acc", "acc_norm"}) {
      EXPECT_EQ(samples[i].at("grades").at(metric).at("score").get<double>(), theirs.at(metric).get<double>())
          << metric;
    }
  }
}

}  // namespace
}  // namespace iha
