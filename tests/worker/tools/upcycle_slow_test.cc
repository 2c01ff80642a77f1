// The imported model, upcycled: the same 64 greedy tokens on every prompt of the parity cases.
#include <algorithm>
#include <fstream>

#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/tools/tool_run.h"

namespace iha::tools {
namespace {

using Json = nlohmann::ordered_json;
using testing::Rows;
using testing::RunTool;

// Greedy tokens of a line, and at each step the gap between the two best log-probabilities, which is that of the
// logits.
struct Line {
  std::vector<int32_t> ids;
  std::vector<double> gaps;
};

std::vector<Line> Generate(const std::string& model, const std::string& input) {
  const RunResult result =
      RunTool({"generate", "--model", model, "--ignore-eos", "--max-new-tokens", "64", "--logprobs", "2"}, input);
  EXPECT_EQ(result.exit.code, 0) << result.exit.ToString() << result.err;
  std::vector<Line> lines;
  for (const Json& row : Rows(result.out)) {
    Line& line = lines.emplace_back();
    const Json& sample = row["samples"][0];
    line.ids = sample["ids"].get<std::vector<int32_t>>();
    for (const Json& step : sample["logprobs"]) {
      line.gaps.push_back(step["top"][0]["logprob"].get<double>() - step["top"][1]["logprob"].get<double>());
    }
    EXPECT_EQ(line.gaps.size(), line.ids.size());
  }
  return lines;
}

TEST(UpcycledModel, GeneratesTheTokensOfTheOriginal) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_MODEL(model);
  std::ifstream file(cases + "/hf_parity/greedy.jsonl");
  std::string input;
  size_t prompts = 0;
  for (std::string line; std::getline(file, line); ++prompts) {
    input += Json{{"ids", nlohmann::json::parse(line)["prompt_ids"]}}.dump() + "\n";
  }
  ASSERT_GE(prompts, 20U);
  const std::vector<Line> original = Generate(model, input);
  ASSERT_EQ(original.size(), prompts);
  const iha::testing::TempDir dir;
  for (const int pseudo_heads : {1, 2, 4}) {
    SCOPED_TRACE(fmt::format("P = {}", pseudo_heads));
    const std::string out = fmt::format("{}/p{}", dir.path(), pseudo_heads);
    const RunResult made = RunTool({"upcycle", "--model", model, "--kind", "iha", "--expand-kv", "--pseudo-heads",
                                    std::to_string(pseudo_heads), "--out", out});
    ASSERT_EQ(made.exit.code, 0) << made.err;
    const std::vector<Line> upcycled = Generate(out, input);
    ASSERT_EQ(upcycled.size(), prompts);
    int differing = 0;
    for (size_t i = 0; i < prompts; ++i) {
      const auto [at, other] = std::mismatch(original[i].ids.begin(), original[i].ids.end(), upcycled[i].ids.begin());
      if (at == original[i].ids.end()) continue;
      ++differing;
      const auto step = static_cast<size_t>(at - original[i].ids.begin());
      if (pseudo_heads == 1) {
        ADD_FAILURE() << "prompt " << i << " differs at step " << step;
      } else {
        EXPECT_LT(original[i].gaps[step], 1e-3) << "prompt " << i << " differs at step " << step;
      }
    }
    RecordProperty(fmt::format("differing_p{}", pseudo_heads), differing);
    std::filesystem::remove_all(out);
  }
}

}  // namespace
}  // namespace iha::tools
