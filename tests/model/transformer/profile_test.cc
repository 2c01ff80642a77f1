// What a profile of the CPU engine counts for the kinds of attention: work by formulas.
#include <gtest/gtest.h>

#include <numeric>

#include "common/clock.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

constexpr char kConfig[] = R"({"model_type": "llama", "vocab_size": 192, "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "iha_eval": {"version": 1, "mlp": "gated",
    "pattern": "per_layer", "attention": [
    {"kind": "talking_heads", "rope_pairing": "half", "window": null, "qk_norm": "none", "knocking": "linear"},
    {"kind": "global", "rope_pairing": "half", "qk_norm": "none", "knocking": "mlp"},
    {"kind": "diff", "rope_pairing": "half", "window": null, "lambda_init": "depth", "norm_eps": 1e-5}]}})";
constexpr double kHidden = 128, kHeads = 2, kDim = 64;

// A prompt of 66 tokens, then a step of one token each of two sequences that have its first block in common.
OpTotals ProfileOfASharedPrompt(Backend& backend) {
  EXPECT_TRUE(backend.ReserveCache(3).ok());
  std::vector<int32_t> prompt(66);
  std::iota(prompt.begin(), prompt.end(), 1);
  const std::vector<int32_t> next{7}, own{0, 1}, other{0, 2}, row{0}, none;
  const Segment first{.tokens = prompt, .start = 0, .blocks = own, .logit_rows = none};
  EXPECT_TRUE(backend.Forward({&first, 1}, {}, nullptr).ok());
  EXPECT_TRUE(backend.CopyBlock(1, 2).ok());
  const std::vector<Segment> both{{.tokens = next, .start = 66, .blocks = own, .logit_rows = row},
                                  {.tokens = next, .start = 66, .blocks = other, .logit_rows = row}};
  std::vector<float> logits(size_t{2} * 192);
  EXPECT_TRUE(backend.Forward(both, logits, nullptr).ok());
  return backend.profile();
}

TEST(CpuProfile, WorkIsThatOfTheFormulas) {
  const iha::testing::TempDir directory;
  ASSERT_TRUE(testing::WriteTinyCheckpoint(directory.path(), kConfig).ok());
  const auto checkpoint = checkpoint::Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const RealClock clock;
  const auto backend = OpenCpuBackend(*checkpoint, {.threads = 1, .numerics = {}, .clock = &clock});
  ASSERT_TRUE(backend.ok()) << backend.status();
  const OpTotals totals = ProfileOfASharedPrompt(**backend);

  const double tokens = 66 + 2, projections = 3 * 3 * kHidden * kHeads * kDim;
  const double knocked = 3 * kHeads + 3 * kHeads;  // of q, k, v; up, gate, down of v
  EXPECT_EQ(totals[static_cast<size_t>(Op::kQkv)].work.flops, 2 * tokens * (projections + knocked * kDim * kDim));
  const double pairs = 66 * 67 / 2 + 2 * 67, keys = 66 + (64 + 3 + 3);
  const OpWork attention = totals[static_cast<size_t>(Op::kAttention)].work;
  // Of talking heads the two mixes, too; the two heads of diff have one value of twice the size.
  EXPECT_EQ(attention.flops, 2 * pairs * kHeads * ((2 * kDim + 2 * kHeads) + 2 * kDim + 3 * kDim));
  EXPECT_EQ(attention.bytes, keys * (3 * kHeads * 2 * kDim) * sizeof(float));
}

}  // namespace
}  // namespace iha::model
