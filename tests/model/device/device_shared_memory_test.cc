// Shared memory of a block is another on each GPU: a model whose kernels need more is refused when it is opened, one
// that is accepted runs, with the same bits as where there is more.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/device/device_attention.h"
#include "model/device/emulated_backend.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using ::testing::HasSubstr;
using testing::RandomIds;
using testing::Runner;
using testing::SameBits;

constexpr uint32_t kA100 = 163 << 10, kAda = 99 << 10;

std::string Config(int heads, int d, const std::string& attention) {
  return fmt::format(R"({{"model_type": "llama", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 16,
      "num_hidden_layers": 1, "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
      "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "iha_eval": {{"version": 1, "mlp": "gated",
      "pattern": "repeat", "attention": [{{"rope_pairing": "half", {}}}]}}}})",
                     heads, heads, d, attention);
}
std::string Iha(int pseudo, const std::string& rest) {
  return fmt::format(R"("kind": "iha", "pseudo_heads": {}, "alpha_layout": "source_target_pseudo",
      "mask": "flat_causal", "rope_positions": "virtual", "window": null, {})",
                     pseudo, rest);
}

// The least that the check accepts.
uint32_t Least(const checkpoint::ModelConfig& config) {
  uint32_t refused = 0, accepted = kernels::kGpuMaxSharedBytes;
  EXPECT_TRUE(CheckDeviceLayers(config, accepted).ok());
  while (accepted - refused > 1) {
    const uint32_t middle = refused + (accepted - refused) / 2;
    (CheckDeviceLayers(config, middle).ok() ? accepted : refused) = middle;
  }
  return accepted;
}

std::vector<float> Logits(const Checkpoint& checkpoint, uint32_t max_shared_bytes, size_t tokens) {
  const auto backend = OpenEmulatedBackend(checkpoint, EmulatedNumerics(), {.max_shared_bytes = max_shared_bytes});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? Runner(**backend, 2).Run({RandomIds(tokens, 40, 1)}, 0)[0] : std::vector<float>();
}

TEST(DeviceSharedMemory, WhatIsAcceptedRunsWithTheSameBits) {
  const std::string global_iha = R"("collapse": "global", "qk_norm": "post_mix", "xsa": "pseudo")";
  const struct {
    std::string config;
    size_t tokens;
  } cases[] = {
      {Config(2, 256, R"("kind": "global", "qk_norm": "none")"), 18},
      {Config(2, 128, R"("kind": "diff", "window": null, "lambda_init": 0.5, "norm_eps": 1e-5)"), 18},
      {Config(40, 8, R"("kind": "talking_heads", "window": null, "qk_norm": "none")"), 3},
      {Config(2, 256, Iha(2, global_iha)), 9},
      // Rows of alpha and heads of the collapse in parts.
      {Config(40, 8, Iha(12, R"("collapse": "global", "qk_norm": "none")")), 2},
      {Config(40, 8, Iha(12, global_iha)), 2},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.config);
    const iha::testing::TempDir folder;
    ASSERT_TRUE(testing::WriteTinyCheckpoint(folder.path(), c.config).ok());
    const auto checkpoint = Checkpoint::Open(folder.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const uint32_t least = Least(checkpoint->config());
    EXPECT_TRUE(
        SameBits(Logits(*checkpoint, least, c.tokens), Logits(*checkpoint, kernels::kGpuMaxSharedBytes, c.tokens)));
    const auto refused = OpenEmulatedBackend(*checkpoint, EmulatedNumerics(), {.max_shared_bytes = least - 1});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(DeviceSharedMemory, ARefusalNamesWhatIsNeededAndWhatIsThere) {
  checkpoint::ModelConfig config;
  config.num_heads = config.num_kv_heads = 4;
  config.head_dim = 128;
  config.vocab_size = 1000;
  config.layers.resize(2);
  config.layers[1].kind = checkpoint::AttentionKind::kDiff;
  EXPECT_TRUE(CheckDeviceLayers(config, kA100).ok());
  const absl::Status ada = CheckDeviceLayers(config, kAda);
  EXPECT_EQ(ada.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      ada.message(),
      "layer 1: kind diff with heads of 128, 131072 bytes of shared memory for a block (at most 101376): the device "
      "has no kernel for it; use --device cpu");
  config.layers.resize(1);
  EXPECT_TRUE(CheckDeviceLayers(config, kAda).ok());
  config.head_dim = 256;
  EXPECT_TRUE(CheckDeviceLayers(config, kA100).ok());
  EXPECT_THAT(
      std::string(CheckDeviceLayers(config, kAda).message()),
      HasSubstr("layer 0: kind global with heads of 256, 163840 bytes of shared memory for a block (at most 101376)"));
}

}  // namespace
}  // namespace iha::model
