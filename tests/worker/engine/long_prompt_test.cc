// Prompts of up to 32k tokens on the exact CPU model: their memory is the KV cache's budget, and the work of layers
// with windows grows with the tokens, not with their square.
#include "common/clock.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/support/peak_memory.h"
#include "tests/worker/engine/engine_harness.h"

namespace iha::engine {
namespace {

constexpr char kLocal[] = R"({"kind": "local", "rope_pairing": "half", "window": 100, "qk_norm": "none"})";
constexpr char kGlobal[] = R"({"kind": "global", "rope_pairing": "half", "qk_norm": "none"})";

std::string WriteTwoLayers(const std::string& name, const std::string& second) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  checkpoint::testing::WriteRandomCheckpoint(folder, fmt::format(R"({{
  "model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
  "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 32768,
  "iha_eval": {{"version": 1, "mlp": "gated", "pattern": "per_layer", "attention": [{}, {}]}}}})",
                                                                 kLocal, second));
  return folder;
}

struct LongRun {
  double attention_flops = 0;
  int64_t budget_kib = 0;
  int64_t grown_kib = 0;
};

// One prompt and one new token, in the engine's own chunks, with just the blocks that it needs.
LongRun RunPrompt(const checkpoint::Checkpoint& checkpoint, int64_t tokens, int64_t blocks) {
  const RealClock clock;
  auto opened = model::OpenCpuBackend(checkpoint, {.threads = 2, .numerics = {}, .clock = &clock});
  EXPECT_TRUE(opened.ok()) << opened.status();
  if (!opened.ok()) return {};
  const model::Backend& backend = **opened;
  LongRun run{.budget_kib = blocks * backend.info().kv_block_bytes / 1024};
  GenerationRequest request;
  for (int64_t i = 0; i + 1 < tokens; i++) request.prompt.push_back(static_cast<int32_t>(i * 7 % 251));
  request.sampling.max_new_tokens = 1;
  request.ignore_eos = true;
  const testing::PeakMemory peak;
  EngineOptions options;
  options.kv_bytes = blocks * backend.info().kv_block_bytes;
  const auto engine = Engine::Create(*std::move(opened), ByteDecoders(), options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return run;
  for (const GenerationResult& result : RunTogether(**engine, {request}))
    EXPECT_TRUE(result.status.ok()) << result.status;
  run.attention_flops = backend.profile()[static_cast<size_t>(model::Op::kAttention)].work.flops;
  run.grown_kib = peak.GrowthKib();
  return run;
}

TEST(LongPrompt, WorkOfLocalLayersGrowsWithTheTokens) {
  const auto checkpoint = checkpoint::Checkpoint::Open(WriteTwoLayers("long_local", kLocal));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const double at[] = {RunPrompt(*checkpoint, 8192, 1100).attention_flops,
                       RunPrompt(*checkpoint, 16384, 1100).attention_flops,
                       RunPrompt(*checkpoint, 32768, 1100).attention_flops};
  // Every token but the first 99 sees 100 keys: equal steps for equal numbers of tokens, exactly.
  EXPECT_GT(at[0], 0);
  EXPECT_EQ(at[1] - at[0], 2.0 * 8192 * 100 * (16 + 16) * 2);
  EXPECT_EQ(at[2] - at[1], 2 * (at[1] - at[0]));
}

// Scores of all pairs would be 4 GiB, of a chunk with all keys 32 MiB a head. Rows of a chunk, positions' tables and
// the allocator's slack are what is left.
TEST(LongPrompt, MemoryIsTheBudgetOfTheCache) {
  const auto checkpoint = checkpoint::Checkpoint::Open(WriteTwoLayers("long_global", kGlobal));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const LongRun run = RunPrompt(*checkpoint, 32768, 512 + 16);
  if (testing::kMemoryIsTheProgramsOwn) {
    EXPECT_LT(run.grown_kib, run.budget_kib + 16 * 1024);
  }
}

}  // namespace
}  // namespace iha::engine
