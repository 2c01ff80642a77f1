// What a profile of a device's operations counts: each operation of each step, its work by formulas, and no bit else.
#include "model/device/device_profile.h"

#include <gtest/gtest.h>

#include "model/device/emulated_backend.h"
#include "tests/model/device/forwarding_runtime.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

// Heads of 64 and rows of 128 are nowhere padded.
constexpr char kConfig[] = R"({"model_type": "llama", "vocab_size": 192, "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "iha_eval": {"version": 1, "mlp": "gated",
    "pattern": "per_layer", "attention": [{"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo",
    "collapse": "global", "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half",
    "window": {"unit": "token", "size": 3}, "qk_norm": "none"},
    {"kind": "global", "rope_pairing": "half", "qk_norm": "none"}]}})";
constexpr double kVocabulary = 192, kHidden = 128, kInner = 256, kRow = 2 * 64;

struct Ran {
  std::vector<std::vector<float>> logits;
  OpTotals totals;
};

// A prompt of five tokens, then three steps of one.
class DeviceProfileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(testing::WriteTinyCheckpoint(directory_.path(), kConfig).ok()); }

  Ran Run(const EmulatedOptions& options) {
    const auto checkpoint = checkpoint::Checkpoint::Open(directory_.path());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto backend = OpenEmulatedBackend(*checkpoint, EmulatedNumerics(), options);
    EXPECT_TRUE(backend.ok()) << backend.status();
    EXPECT_TRUE((*backend)->ReserveCache(4).ok());
    const std::vector<int32_t> ids = testing::RandomIds(8, 192, 1), blocks{0, 1};
    Ran ran;
    for (size_t begin = 0; begin < ids.size();) {
      const size_t count = begin == 0 ? 5 : 1;
      const std::vector<int32_t> tokens(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                        ids.begin() + static_cast<std::ptrdiff_t>(begin + count));
      const std::vector<int32_t> rows{static_cast<int32_t>(count) - 1};
      const Segment segment{
          .tokens = tokens, .start = static_cast<int64_t>(begin), .blocks = blocks, .logit_rows = rows};
      std::vector<float>& logits = ran.logits.emplace_back(192);
      const absl::Status done = (*backend)->Forward({&segment, 1}, logits, nullptr);
      EXPECT_TRUE(done.ok()) << done;
      begin += count;
    }
    ran.totals = (*backend)->profile();
    return ran;
  }

  iha::testing::TempDir directory_;
};

const OpTotal& At(const OpTotals& totals, Op op) { return totals[static_cast<size_t>(op)]; }

TEST_F(DeviceProfileTest, EachOperationOfEachStep) {
  const RealClock clock;
  const absl::Duration begin = clock.Elapsed();
  const Ran ran = Run({.clock = &clock});
  const absl::Duration whole = clock.Elapsed() - begin;
  constexpr int64_t kSteps = 4, kLayers = 2;
  EXPECT_EQ(At(ran.totals, Op::kEmbedding).calls, kSteps);
  EXPECT_EQ(At(ran.totals, Op::kNorm).calls, kSteps * (4 * kLayers + 1));
  EXPECT_EQ(At(ran.totals, Op::kHead).calls, kSteps);
  for (const Op op : {Op::kQkv, Op::kPositions, Op::kAttention, Op::kAttentionOutput, Op::kMlp}) {
    EXPECT_EQ(At(ran.totals, op).calls, kSteps * kLayers) << NameOf(op);
  }
  EXPECT_EQ(At(ran.totals, Op::kCombine).calls, kSteps) << "of the layer of iha";
  absl::Duration sum;
  for (const OpTotal& total : ran.totals) {
    EXPECT_GT(total.time, absl::ZeroDuration());
    sum += total.time;
  }
  EXPECT_LE(sum, whole);
}

// 8 tokens in all; weights are read once a step, of which there are four.
TEST_F(DeviceProfileTest, WorkIsThatOfTheFormulas) {
  const RealClock clock;
  const OpTotals totals = Run({.clock = &clock}).totals;
  const auto expect = [&](Op op, double flops, double bytes) {
    EXPECT_EQ(At(totals, op).work.flops, flops) << NameOf(op);
    EXPECT_EQ(At(totals, op).work.bytes, bytes) << NameOf(op);
  };
  const double projection = kHidden * kRow, mlp = 3 * kHidden * kInner, head = kVocabulary * kHidden;
  expect(Op::kQkv, 2 * 8 * 2 * 3 * projection, 4 * 2 * 3 * projection * 2);
  expect(Op::kAttentionOutput, 2 * 8 * 2 * projection, 4 * 2 * projection * 2);
  expect(Op::kMlp, 2 * 8 * 2 * mlp, 4 * 2 * mlp * 2);
  expect(Op::kHead, 2 * 4 * head, 4 * head * 2);
  expect(Op::kPositions, 3 * 2 * 8 * 2 * 2 * 2 * 64, 0);
  expect(Op::kCombine, 2 * 8 * 2 * 2 * 2 * 64, 0);
  // Token n of the global layer sees n + 1 keys. Of iha, virtual row 2 n + j sees itself and what lies before it, as
  // far as its token and the two before.
  double pairs = 0, keys = 0;
  for (int n = 0; n < 8; n++) {
    const int first = n < 2 ? 0 : 2 * (n - 2);
    pairs += n + 1;
    pairs += (2 * n - first + 1) + (2 * n + 1 - first + 1);
    if (n == 4) keys += 5 + 10;  // the prompt: all of both
    if (n > 4) keys += (n + 1) + (2 * n + 2 - first);
  }
  expect(Op::kAttention, 2 * pairs * 2 * (64 + 64), keys * 2 * (64 + 64) * 2);
}

TEST_F(DeviceProfileTest, NoBitDependsOnIt) {
  const RealClock clock;
  const Ran profiled = Run({.clock = &clock}), plain = Run({});
  EXPECT_EQ(profiled.logits, plain.logits);
  for (const OpTotal& total : plain.totals) EXPECT_EQ(total.calls, 0);
}

// The marks of a step that fails count for nothing.
TEST(DeviceProfile, OnlyWhatSucceededCounts) {
  testing::ForwardingRuntime runtime;
  DeviceProfile profile(runtime, true);
  const auto fails = [] { return absl::InternalError("a launch"); };
  const auto succeeds = [] { return absl::OkStatus(); };
  profile.Begin();
  EXPECT_TRUE(profile.Time(Op::kNorm, {}, succeeds).ok());
  EXPECT_EQ(profile.Time(Op::kMlp, {}, fails), fails());
  profile.Begin();
  EXPECT_TRUE(profile.Time(Op::kHead, {.flops = 3}, succeeds).ok());
  EXPECT_EQ(At(profile.totals(), Op::kHead).calls, 0) << "before the step is over";
  ASSERT_TRUE(profile.End().ok());
  ASSERT_TRUE(profile.End().ok());
  EXPECT_EQ(At(profile.totals(), Op::kNorm).calls, 0);
  EXPECT_EQ(At(profile.totals(), Op::kMlp).calls, 0);
  EXPECT_EQ(At(profile.totals(), Op::kHead).calls, 1);
  EXPECT_EQ(At(profile.totals(), Op::kHead).work.flops, 3);
}

}  // namespace
}  // namespace iha::model
