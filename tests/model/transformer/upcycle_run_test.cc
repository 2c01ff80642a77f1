// SmolLM2-135M-Instruct upcycled to IHA computes the same function: 64 greedy tokens on 20 prompts (cases hf_parity).
// Needs the imported model (./dev model).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/logits/logits.h"
#include "model/checkpoint/upcycle.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using nlohmann::json;
using testing::Runner;

struct Continuation {
  std::vector<int32_t> ids;  // prompt, then 63 of the 64 greedy tokens
  size_t prompt = 0;
};

std::vector<Continuation> Continuations(const std::string& path) {
  std::ifstream file(path);
  std::vector<Continuation> result;
  for (std::string line; std::getline(file, line);) {
    const json row = json::parse(line);
    Continuation c{.ids = row["prompt_ids"], .prompt = row["prompt_ids"].size()};
    if (c.prompt > 500) continue;  // 20 of 22 are left: the long ones cost as much as all others
    const std::vector<int32_t> greedy = row["greedy_ids"];
    c.ids.insert(c.ids.end(), greedy.begin(), greedy.end() - 1);
    result.push_back(std::move(c));
  }
  return result;
}

// Logits of a checkpoint, one sequence at a time.
class Model {
 public:
  explicit Model(const std::string& folder) : checkpoint_(*Checkpoint::Open(folder)) {
    const int threads = static_cast<int>(std::thread::hardware_concurrency());
    backend_ = *OpenCpuBackend(checkpoint_, {.threads = threads, .numerics = {}});
    runner_.emplace(*backend_, 16);
  }
  std::vector<float> Logits(const std::vector<int32_t>& ids) { return runner_->Run({ids}, 512)[0]; }
  size_t vocab() const { return static_cast<size_t>(backend_->info().vocab_size); }

 private:
  Checkpoint checkpoint_;
  std::unique_ptr<Backend> backend_;
  std::optional<Runner> runner_;
};

// Teacher-forced on the original's tokens: the generations are equal as long as every choice is. P = 1 must give the
// same bits. P = 2 (mixed keys cached) and P = 4 (base keys cached) sum P copies of each key: rounding only, so a
// choice may differ where the original's two best are within 1e-3.
TEST(UpcycleRun, GreedyTokensAreTheOriginals) {
  IHA_REQUIRE_CASES(cases);
  IHA_REQUIRE_MODEL(folder);
  const std::vector<Continuation> continuations = Continuations(cases + "/hf_parity/greedy.jsonl");
  ASSERT_GE(continuations.size(), 20U);
  const iha::testing::TempDir dir;
  Model original(folder);
  std::vector<std::optional<Model>> upcycled(3);
  const int64_t pseudo[] = {1, 2, 4};
  for (size_t i = 0; i < 3; i++) {
    const std::string out = dir.File(std::to_string(pseudo[i]));
    const auto made = checkpoint::Upcycle(folder, out, {.pseudo_heads = pseudo[i], .expand_kv = true});
    ASSERT_TRUE(made.ok()) << made.status();
    upcycled[i].emplace(out);
    std::filesystem::remove_all(out);  // packed by now
  }
  const size_t vocab = original.vocab();
  int64_t steps = 0, close = 0;
  for (const Continuation& c : continuations) {
    const std::vector<float> want = original.Logits(c.ids);
    EXPECT_EQ(upcycled[0]->Logits(c.ids), want);
    for (size_t i = 1; i < 3; i++) {
      const std::vector<float> found = upcycled[i]->Logits(c.ids);
      for (size_t at = c.prompt - 1; at < c.ids.size(); at++) {
        const auto row = std::span(want).subspan(at * vocab, vocab),
                   other = std::span(found).subspan(at * vocab, vocab);
        const int32_t best = kernels::Argmax(row), choice = kernels::Argmax(other);
        ASSERT_TRUE(best >= 0 && choice >= 0) << "NaN at step " << at - c.prompt + 1;
        float second = -1e30f;
        for (size_t id = 0; id < vocab; id++) {
          if (static_cast<int32_t>(id) != best) second = std::max(second, row[id]);
        }
        steps++;
        if (row[static_cast<size_t>(best)] - second < 1e-3f) {
          close++;
          continue;
        }
        EXPECT_EQ(choice, best) << "P " << pseudo[i] << " step " << at - c.prompt + 1;
      }
    }
  }
  EXPECT_EQ(steps, static_cast<int64_t>(2 * 64 * continuations.size()));
  EXPECT_LT(close, steps / 20);
}

}  // namespace
}  // namespace iha::model
