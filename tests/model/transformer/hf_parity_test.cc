// SmolLM2-135M-Instruct, imported from its GGUF, against transformers (cases hf_parity): every greedy token, and the
// logits of last positions. Needs the imported model (./dev model).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/logits/logits.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/roots.h"
#include "tests/support/worst_error.h"

namespace iha::model {
namespace {

using nlohmann::json;
using testing::Runner;

std::vector<json> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(json::parse(line));
  return rows;
}

class HfParity : public ::testing::Test {
 protected:
  void OpenModel(const std::string& folder) {
    checkpoint_.emplace(*checkpoint::Checkpoint::Open(folder));
    const int threads = static_cast<int>(std::thread::hardware_concurrency());
    backend_ = *OpenCpuBackend(*checkpoint_, {.threads = threads, .numerics = {}});
    runner_.emplace(*backend_, 64);
  }
  std::span<const float> Row(const std::vector<float>& logits, size_t row) const {
    const size_t vocab = static_cast<size_t>(backend_->info().vocab_size);
    return std::span(logits).subspan(row * vocab, vocab);
  }

  std::optional<checkpoint::Checkpoint> checkpoint_;
  std::unique_ptr<Backend> backend_;
  std::optional<Runner> runner_;
};

// Teacher-forced: prefill and decode of a position have the same bits (Families.Chunks...), so one pass over prompt and
// continuation shows what token-by-token decoding would choose. A differing token counts as an error where the float64
// gap between the two best is above the noise of float32: 5e-4, ten times the largest logit error of the test below.
TEST_F(HfParity, GreedyContinuationsAreEqual) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_MODEL(model);
  OpenModel(model);
  int64_t steps = 0;
  for (const json& row : ReadLines(cases + "/hf_parity/greedy.jsonl")) {
    std::vector<int32_t> ids = row["prompt_ids"];
    const size_t prompt = ids.size();
    const std::vector<int32_t> greedy = row["greedy_ids"];
    const std::vector<double> gaps = row["gap64"];
    ids.insert(ids.end(), greedy.begin(), greedy.end());
    ids.pop_back();
    const std::vector<float> logits = runner_->Run({ids}, 512)[0];
    for (size_t step = 0; step < greedy.size(); step++) {
      const auto at = Row(logits, prompt - 1 + step);
      const int32_t best = kernels::Argmax(at);
      steps++;
      if (gaps[step] > 5e-4) {
        EXPECT_EQ(best, greedy[step]) << "row " << row["id"] << " step " << step << " gap " << gaps[step];
      }
    }
  }
  EXPECT_GT(steps, 1000);
}

// HF's float32 run is within 6e-5 of float64 on these logits (SOURCE.md); ours, measured, within 5.3e-5. The bound
// leaves ten times that for other orders of summation, while any misreading (pairing, scale, eps) moves a logit by over
// 1e-1.
TEST_F(HfParity, LastLogitsAreWithinFloat32Noise) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_MODEL(model);
  OpenModel(model);
  std::map<int, std::vector<int32_t>> prompts;
  for (const json& row : ReadLines(cases + "/hf_parity/greedy.jsonl")) {
    prompts[row["id"].get<int>()] = row["prompt_ids"].get<std::vector<int32_t>>();
  }
  iha::testing::WorstError worst;
  for (const json& row : ReadLines(cases + "/hf_parity/logits.jsonl")) {
    const std::vector<int32_t>& ids = prompts.at(row["id"].get<int>());
    const std::vector<float> logits = runner_->Run({ids}, 512)[0];
    const auto last = Row(logits, ids.size() - 1);
    const std::vector<int32_t> top = row["top_ids"];
    const std::vector<double> expected = row["top_logits64"];
    for (size_t i = 0; i < top.size(); i++) {
      const double error = std::abs(last[static_cast<size_t>(top[i])] - expected[i]);
      EXPECT_LT(error, 5e-4) << "row " << row["id"] << " token " << top[i];
      worst.Add(error);
    }
  }
  RecordProperty("worst_logit_error", std::to_string(worst.value()));
}

}  // namespace
}  // namespace iha::model
