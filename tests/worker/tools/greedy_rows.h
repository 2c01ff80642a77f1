// greedy_rows.h: iha-tool generate on the imported model against transformers' greedy tokens (cases hf_parity).
#pragma once

#include <fstream>

#include "tests/worker/tools/tool_run.h"

namespace iha::tools::testing {

// Runs the first `limit` rows (0 = all) in one go. A differing token is an error where the float64 gap between the two
// best is above the noise of float32 (5e-4: ten times the largest logit error that the parity tests allow); after a
// near tie the row goes its own way.
inline void ExpectGreedyRows(const std::string& model, const std::string& cases, size_t limit,
                             const std::vector<std::string>& flags = {}) {
  std::ifstream file(cases + "/hf_parity/greedy.jsonl");
  std::vector<nlohmann::json> expected;
  std::string input;
  for (std::string line; std::getline(file, line) && (limit == 0 || expected.size() < limit);) {
    expected.push_back(nlohmann::json::parse(line, nullptr, false));
    input += nlohmann::json{{"id", expected.back()["id"]}, {"ids", expected.back()["prompt_ids"]}}.dump() + "\n";
  }
  ASSERT_FALSE(expected.empty());
  std::vector<std::string> arguments = {"generate", "--model", model, "--ignore-eos", "--max-new-tokens", "64"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const RunResult result = RunTool(arguments, input);
  ASSERT_EQ(result.exit.code, 0) << result.exit.ToString() << result.err;
  const auto rows = Rows(result.out);
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); i++) {
    SCOPED_TRACE(rows[i]["id"]);
    EXPECT_EQ(rows[i]["id"], expected[i]["id"].get<int>());
    const std::vector<int32_t> ids = rows[i]["samples"][0]["ids"];
    const std::vector<int32_t> greedy = expected[i]["greedy_ids"];
    ASSERT_EQ(ids.size(), greedy.size());
    const auto [at, other] = std::mismatch(ids.begin(), ids.end(), greedy.begin());
    if (at == ids.end()) continue;
    const size_t step = static_cast<size_t>(at - ids.begin());
    EXPECT_LE(expected[i]["gap64"][step].get<double>(), 5e-4) << "step " << step << ": " << *at << ", not " << *other;
  }
}

}  // namespace iha::tools::testing
