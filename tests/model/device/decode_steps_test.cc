// Recorded decode steps (decode_steps.h): replayed, they give the bits of steps that are enqueued anew, whatever their
// size and however long their sequences have grown.
#include "model/device/decode_steps.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "common/errors.h"
#include "model/device/device_backend.h"
#include "model/device/emulated_runtime.h"
#include "tests/model/device/forwarding_runtime.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using testing::RandomIds;
using testing::Runner;
using testing::SameBits;

// Three layer groups: a window, and layers that see all with one and with two rows a token.
constexpr char kKinds[] = R"({"model_type": "llama", "vocab_size": 60, "hidden_size": 24, "intermediate_size": 32,
    "num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 8,
    "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "iha_eval": {"version": 1, "mlp": "gated",
    "pattern": "per_layer", "attention": [{"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo",
    "collapse": "global", "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half",
    "window": {"unit": "token", "size": 20}, "qk_norm": "pre_mix"},
    {"kind": "global", "rope_pairing": "half", "qk_norm": "none"},
    {"kind": "talking_heads", "rope_pairing": "half", "window": null, "qk_norm": "none"}]}})";

struct Counts {
  int recorded = 0;
  int replayed = 0;
  bool no_memory = false;    // while launches are recorded
  std::string_view failing;  // there is none for what has this name
};

// The emulated device, counting.
class CountingRuntime final : public testing::ForwardingRuntime {
 public:
  explicit CountingRuntime(Counts& counts) : counts_(counts) {}
  absl::StatusOr<void*> Allocate(size_t bytes, DeviceFill fill, const char* name) override {
    if (recording_ && counts_.no_memory) return ResourceExhausted("{}: out of memory", name);
    if (name == counts_.failing) return ResourceExhausted("{}: out of memory", name);
    return ForwardingRuntime::Allocate(bytes, fill, name);
  }
  absl::Status BeginRecording() override {
    recording_ = true;
    return ForwardingRuntime::BeginRecording();
  }
  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() override {
    recording_ = false;
    counts_.recorded++;
    return ForwardingRuntime::EndRecording();
  }
  absl::Status Replay(DeviceGraph& graph) override {
    counts_.replayed++;
    return ForwardingRuntime::Replay(graph);
  }

 private:
  Counts& counts_;
  bool recording_ = false;
};

class DecodeStepsTest : public ::testing::Test {
 protected:
  DecodeStepsTest() {
    EXPECT_TRUE(testing::WriteTinyCheckpoint(folder_.path(), kKinds).ok());
    auto checkpoint = Checkpoint::Open(folder_.path());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    for (const bool record : {false, true}) {
      auto backend = OpenDeviceBackend(*checkpoint, EmulatedNumerics(), std::make_unique<CountingRuntime>(counts_),
                                       {.record_decode = record});
      EXPECT_TRUE(backend.ok()) << backend.status();
      (record ? recorded_ : direct_) = *std::move(backend);
    }
    EXPECT_TRUE(recorded_->ReserveCache(64).ok());
    runner_.emplace(*direct_, 64);
  }

  // A sequence of n tokens in all, of which the first `computed` are in the cache.
  size_t Add(size_t n, size_t computed) {
    const auto ids = RandomIds(n, 60, static_cast<uint32_t>(sequences_.size() + 1));
    Sequence& sequence = sequences_.emplace_back();
    sequence.ids = ids;
    sequence.want = runner_->Run({ids}, 0)[0];
    const size_t groups = recorded_->info().kv_windows.size();
    for (size_t i = 0; i < groups; i++) {
      std::vector<int32_t>& table = sequence.tables.emplace_back();
      for (size_t block = 0; block < n / kKvBlockTokens + 1; block++) table.push_back(next_block_++);
    }
    EXPECT_TRUE(Forward({sequences_.size() - 1}, computed));
    return sequences_.size() - 1;
  }

  // `tokens` more of each, the last one's logits; whether they are those of the whole sequence at once.
  bool Forward(const std::vector<size_t>& which, size_t tokens = 1) {
    const std::vector<int32_t> last = {static_cast<int32_t>(tokens) - 1};
    std::vector<std::vector<int32_t>> blocks;
    std::vector<Segment> segments;
    for (const size_t i : which) {
      Sequence& sequence = sequences_[i];
      const size_t entries = (sequence.computed + tokens + kKvBlockTokens - 1) / kKvBlockTokens;
      std::vector<int32_t>& flat = blocks.emplace_back();
      for (const auto& table : sequence.tables) {
        flat.insert(flat.end(), table.begin(), table.begin() + static_cast<std::ptrdiff_t>(entries));
      }
    }
    for (size_t i = 0; i < which.size(); i++) {
      const Sequence& sequence = sequences_[which[i]];
      segments.push_back({.tokens = std::span(sequence.ids).subspan(sequence.computed, tokens),
                          .start = static_cast<int64_t>(sequence.computed),
                          .blocks = blocks[i],
                          .logit_rows = last});
    }
    std::vector<float> logits(which.size() * 60);
    const absl::Status status = recorded_->Forward(segments, logits, nullptr);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return false;
    bool same = true;
    for (size_t i = 0; i < which.size(); i++) {
      Sequence& sequence = sequences_[which[i]];
      sequence.computed += tokens;
      const auto want = std::span(sequence.want).subspan((sequence.computed - 1) * 60, 60);
      const auto got = std::span(logits).subspan(i * 60, 60);
      same = same && SameBits({got.begin(), got.end()}, {want.begin(), want.end()});
    }
    return same;
  }

  struct Sequence {
    std::vector<int32_t> ids;
    std::vector<std::vector<int32_t>> tables;  // by group
    std::vector<float> want;                   // of every position, computed at once and enqueued as usual
    size_t computed = 0;
  };
  iha::testing::TempDir folder_;
  Counts counts_;
  std::unique_ptr<Backend> direct_, recorded_;
  std::optional<Runner> runner_;
  std::vector<Sequence> sequences_;
  int32_t next_block_ = 0;
};

// Over the ends of blocks, of page tables' sizes and of the window, one to three sequences.
TEST_F(DecodeStepsTest, AReplayHasTheBitsOfADirectStepAtEveryLength) {
  const size_t a = Add(264, 250), b = Add(72, 60);
  EXPECT_EQ(counts_.recorded, 0) << "prefill is not recorded";
  for (int i = 0; i < 10; i++) ASSERT_TRUE(Forward({a, b})) << "step " << i;
  EXPECT_EQ(counts_.recorded, 2) << "two tables of 4 blocks, then of 8";
  EXPECT_EQ(counts_.replayed, 8) << "all but the first of each size";
  const size_t c = Add(12, 5);
  for (int i = 0; i < 2; i++) ASSERT_TRUE(Forward({c, a, b})) << "three fill up to four, step " << i;
  for (int i = 0; i < 3; i++) ASSERT_TRUE(Forward({c})) << "alone, step " << i;
  EXPECT_EQ(counts_.recorded, 4);
  EXPECT_EQ(counts_.replayed, 8 + 1 + 2);
}

// A long prompt makes the tables of the rotations anew, at another place.
TEST_F(DecodeStepsTest, RecordsAgainWhenWhatItRefersToHasMoved) {
  const size_t a = Add(20, 4);
  for (int i = 0; i < 3; i++) ASSERT_TRUE(Forward({a})) << "step " << i;
  EXPECT_EQ(counts_.recorded, 1);
  Add(300, 300);
  for (int i = 0; i < 3; i++) ASSERT_TRUE(Forward({a})) << "step " << i;
  EXPECT_EQ(counts_.recorded, 2);
  // Logits of a step larger than any before.
  const size_t b = Add(20, 4), c = Add(20, 4);
  for (int i = 0; i < 2; i++) ASSERT_TRUE(Forward({a, b, c})) << "step " << i;
  EXPECT_EQ(counts_.recorded, 3);
  for (int i = 0; i < 2; i++) ASSERT_TRUE(Forward({a})) << "step " << i;
  EXPECT_EQ(counts_.recorded, 4);
}

// Of the longer tables cosines are there, sines are not: what was recorded knows neither.
TEST_F(DecodeStepsTest, RecordsAgainWhenMovingHasFailedHalfWay) {
  const size_t a = Add(20, 4);
  for (int i = 0; i < 3; i++) ASSERT_TRUE(Forward({a})) << "step " << i;
  EXPECT_EQ(counts_.recorded, 1);
  counts_.failing = "sin";
  const std::vector<int32_t> ids = RandomIds(300, 60, 9), none;
  std::vector<int32_t> blocks;
  for (size_t i = 0; i < 5 * recorded_->info().kv_windows.size(); i++) blocks.push_back(next_block_++);
  const Segment prompt[] = {{.tokens = ids, .start = 0, .blocks = blocks, .logit_rows = none}};
  EXPECT_EQ(recorded_->Forward(prompt, {}, nullptr).code(), absl::StatusCode::kResourceExhausted);
  counts_.failing = "";
  for (int i = 0; i < 2; i++) ASSERT_TRUE(Forward({a})) << "step " << i;
  EXPECT_EQ(counts_.recorded, 2);
}

TEST_F(DecodeStepsTest, RunsAsOthersWhereARecordingHasNoMemory) {
  counts_.no_memory = true;
  const size_t a = Add(20, 4);
  for (int i = 0; i < 4; i++) ASSERT_TRUE(Forward({a})) << "step " << i;
  EXPECT_EQ(counts_.recorded, 1) << "it is not tried again";
  EXPECT_EQ(counts_.replayed, 0);
}

TEST(DecodeSizes, AreFewAndLargeEnough) {
  for (uint32_t n = 1; n < 600; n++) {
    EXPECT_GE(DecodeSequences(n), n);
    EXPECT_LT(DecodeSequences(n) - n, 32u) << "each filling row takes a slot of one block";
    EXPECT_GE(DecodeBlocks(n, 1 << 20), n);
    EXPECT_GE(DecodeBlocks(n, 10), n) << "whatever the model says";
  }
  std::set<uint32_t> sizes;
  for (uint32_t n = 1; n <= 256; n++) sizes.insert(DecodeSequences(n));
  EXPECT_EQ(sizes.size(), 3u + 8u + 6u);
  EXPECT_EQ(DecodeBlocks(1, 128), 4u);
  EXPECT_EQ(DecodeBlocks(65, 128), 128u);
  EXPECT_EQ(DecodeBlocks(65, 100), 100u) << "not beyond the context";
  EXPECT_EQ(DecodeBlocks(2, 3), 3u);
}

TEST(EmulatedRuntime, UploadsStayInsideOfAnAllocation) {
  const auto runtime = MakeEmulatedRuntime({});
  const auto four = DeviceArray<float>::Make(*runtime, 4, "four");
  ASSERT_TRUE(four.ok());
  EXPECT_TRUE(four->Set(std::vector<float>(4)).ok());
  EXPECT_EQ(four->Set(std::vector<float>(5)).code(), absl::StatusCode::kInternal);
}

// On a GPU the free would become a part of the graph.
TEST(EmulatedRuntime, ARecordingFreesNothingOlder) {
  const auto runtime = MakeEmulatedRuntime({});
  auto before = DeviceArray<float>::Make(*runtime, 4, "before");
  ASSERT_TRUE(before.ok());
  ASSERT_TRUE(runtime->BeginRecording().ok());
  { const auto scratch = DeviceArray<float>::Make(*runtime, 4, "scratch"); }
  EXPECT_TRUE(runtime->EndRecording().ok());
  ASSERT_TRUE(runtime->BeginRecording().ok());
  *before = {};
  EXPECT_FALSE(runtime->EndRecording().ok());
}

}  // namespace
}  // namespace iha::model
