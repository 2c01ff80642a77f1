// A step that the system refuses memory is an error of that step: each allocation of a forward pass fails in turn.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/sequence_run.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/failing_allocations.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using ::testing::HasSubstr;
using testing::SameBits;

constexpr int32_t kVocab = 23;

std::string ConfigOf(const std::string& layer) {
  return fmt::format(R"({{
    "model_type": "llama", "vocab_size": {}, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "max_position_embeddings": 512, "tie_word_embeddings": true,
    "iha_eval": {{"version": 1, "mlp": "gated", "pattern": "repeat", "attention": [{{"rope_pairing": "half", {}}}]}}}})",
                     kVocab, layer);
}

TEST(OutOfMemory, EveryAllocationOfAStepMayFail) {
  const std::string iha = R"("kind": "iha", "pseudo_heads": {}, "alpha_layout": "source_target_pseudo",
    "collapse": "per_head", "mask": "flat_causal", "rope_positions": "virtual", "window": null, "qk_norm": "none",
    "xsa": "pseudo")";
  const std::string layers[] = {
      R"("kind": "global", "qk_norm": "pre_rope", "gate": "headwise", "xsa": "output", "knocking": "linear")",
      R"("kind": "talking_heads", "window": null, "qk_norm": "none")",
      R"("kind": "diff", "window": null, "lambda_init": 0.5, "norm_eps": 1e-5)", fmt::format(fmt::runtime(iha), 2),
      fmt::format(fmt::runtime(iha), 3)};  // mixed and base caches
  const iha::testing::TempDir dir;
  std::vector<int32_t> ids(70), blocks = {0, 1}, rows(ids.size());
  for (int32_t i = 0; i < 70; i++) {
    ids[static_cast<size_t>(i)] = i * 7 % kVocab;
    rows[static_cast<size_t>(i)] = i;
  }
  const std::vector<Segment> step = {{ids, 0, blocks, rows}};
  for (const std::string& layer : layers) {
    SCOPED_TRACE(layer);
    const std::string folder = fmt::format("{}/{}", dir.path(), &layer - layers);
    checkpoint::testing::WriteRandomCheckpoint(folder, ConfigOf(layer));
    const auto checkpoint = checkpoint::Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto run = [&](Backend& backend, int64_t allocations, std::vector<float>& logits) {
      logits.assign(ids.size() * kVocab, 0.0f);
      return iha::testing::WithAllocations(allocations, [&] { return backend.Forward(step, logits, nullptr); });
    };
    std::vector<float> want, found;
    int64_t failed = 0;
    for (;; failed++) {
      const auto backend = OpenCpuBackend(*checkpoint, {.threads = 1, .numerics = {.kv_dtype = "bf16"}});
      ASSERT_TRUE(backend.ok()) << backend.status();
      ASSERT_TRUE((*backend)->ReserveCache(2).ok());
      if (want.empty()) {
        ASSERT_TRUE(run(**backend, -1, want).ok());
        continue;  // its scratch is there now
      }
      const absl::Status status = run(**backend, failed - 1, found);
      if (status.ok()) break;
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("a step of 70 tokens: out of memory"));
      ASSERT_TRUE(run(**backend, -1, found).ok());
      EXPECT_TRUE(SameBits(found, want)) << "after allocation " << failed;
    }
    EXPECT_TRUE(SameBits(found, want));
    EXPECT_GT(failed, 10);
  }
}

}  // namespace
}  // namespace iha::model
