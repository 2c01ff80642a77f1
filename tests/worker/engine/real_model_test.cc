// SmolLM2-135M-Instruct through the engine, all prompts of cases hf_parity in one batch, against transformers' greedy
// continuations. Needs the imported model (./dev model).

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "model/transformer/cpu_backend.h"
#include "tests/support/roots.h"
#include "tests/worker/engine/engine_harness.h"

namespace iha::engine {
namespace {

using nlohmann::json;

struct Row {
  GenerationRequest request;
  std::vector<int32_t> greedy;
  std::vector<double> gap;  // float64, between the two best
};

std::vector<Row> ReadRows(const std::string& path) {
  std::ifstream file(path);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    const json fields = json::parse(line);
    Row row{{}, fields["greedy_ids"], fields["gap64"]};
    row.request.prompt = fields["prompt_ids"].get<std::vector<int32_t>>();
    row.request.sampling.max_new_tokens = static_cast<int32_t>(row.greedy.size());
    row.request.logprobs = true;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::unique_ptr<Engine> OpenEngine(const std::string& folder, const SchedulerOptions& options) {
  const auto checkpoint = checkpoint::Checkpoint::Open(folder);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  return MakeEngine(options, 400, *model::OpenCpuBackend(*checkpoint, {.threads = threads, .numerics = {}}));
}

TEST(RealModel, ABatchOfGreedyContinuationsEqualsTransformers) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_MODEL(model);
  const std::vector<Row> rows = ReadRows(cases + "/hf_parity/greedy.jsonl");
  ASSERT_EQ(rows.size(), 22u);
  const auto engine = OpenEngine(model, {});
  for (const Row& row : rows) ASSERT_TRUE(engine->Submit(row.request).ok());
  const auto together = RunToEnd(*engine);
  ASSERT_EQ(together.size(), rows.size());
  int64_t equal = 0;
  for (size_t i = 0; i < rows.size(); i++) {
    const GenerationResult& result = together.at(SequenceId{static_cast<int64_t>(i)});
    ASSERT_EQ(result.tokens.size(), rows[i].greedy.size());
    for (size_t step = 0; step < result.tokens.size(); step++) {
      // Below 5e-4, ten times the noise of float32 logits, either of the two best is right; the texts part there.
      if (result.tokens[step] != rows[i].greedy[step] && rows[i].gap[step] <= 5e-4) break;
      ASSERT_EQ(result.tokens[step], rows[i].greedy[step]) << "row " << i << " step " << step;
      equal++;
    }
  }
  EXPECT_GT(equal, 1300);  // of 22 x 64

  // The shortest prompt alone, in chunks of 7: the same tokens and the same bits of every log-probability.
  size_t shortest = 0;
  for (size_t i = 1; i < rows.size(); i++) {
    if (rows[i].request.prompt.size() < rows[shortest].request.prompt.size()) shortest = i;
  }
  const auto lone = OpenEngine(model, {.chunk_tokens = 7, .prefix_cache = false, .share_samples = false});
  ASSERT_TRUE(lone->Submit(rows[shortest].request).ok());
  ExpectSameResult(RunToEnd(*lone).begin()->second, together.at(SequenceId{static_cast<int64_t>(shortest)}));
}

}  // namespace
}  // namespace iha::engine
