// What the host refuses memory is an error of that call: each allocation of opening a model, of its cache and of its
// steps fails in turn.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/simt/device.h"
#include "model/device/device_backend.h"
#include "model/device/emulated_backend.h"
#include "model/token_drawing.h"
#include "tests/model/device/forwarding_runtime.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/model/transformer/runner.h"
#include "tests/support/failing_allocations.h"
#include "tests/support/temp_dir.h"

namespace iha::model {
namespace {

using checkpoint::Checkpoint;
using iha::testing::WithAllocations;
using ::testing::HasSubstr;
using testing::SameBits;

constexpr int32_t kVocab = 24;
constexpr char kConfig[] = R"({{"model_type": "llama", "vocab_size": 24, "hidden_size": 16, "intermediate_size": 16,
    "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "iha_eval": {{"version": 1, "mlp": "gated",
    "pattern": "repeat", "attention": [{{"rope_pairing": "half", {}}}]}}}})";

// The emulated device, whose launches can be written down in place of being done: kernels of the emulator, too, take
// memory of the host.
class UnlaunchedRuntime final : public testing::ForwardingRuntime {
 public:
  explicit UnlaunchedRuntime(int& recordings) : recordings_(recordings) {}
  void Launch(bool launch) {
    launch_ = launch;
    written_.clear();
    stream()->Record(launch ? nullptr : &written_);
  }
  absl::Status BeginRecording() override {
    IHA_RETURN_IF_ERROR(ForwardingRuntime::BeginRecording());
    recordings_++;
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndRecording() override {
    recordings_--;
    auto graph = ForwardingRuntime::EndRecording();
    stream()->Record(launch_ ? nullptr : &written_);
    return graph;
  }
  absl::Status Replay(DeviceGraph& graph) override {
    return launch_ ? ForwardingRuntime::Replay(graph) : absl::OkStatus();
  }

 private:
  int& recordings_;
  bool launch_ = true;
  std::vector<kernels::simt::RecordedLaunch> written_;
};

class DeviceOutOfMemory : public ::testing::TestWithParam<const char*> {
 protected:
  DeviceOutOfMemory() {
    EXPECT_TRUE(testing::WriteTinyCheckpoint(folder_.path(), fmt::format(kConfig, GetParam())).ok());
    auto checkpoint = Checkpoint::Open(folder_.path());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_.emplace(*std::move(checkpoint));
  }
  absl::StatusOr<std::unique_ptr<Backend>> Open(std::unique_ptr<DeviceRuntime> runtime) {
    return OpenDeviceBackend(*checkpoint_, EmulatedNumerics(), std::move(runtime));
  }
  void OpenAndReserve() {
    auto runtime = std::make_unique<UnlaunchedRuntime>(recordings_);
    runtime_ = runtime.get();
    auto backend = Open(std::move(runtime));
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
    ASSERT_TRUE(backend_->ReserveCache(4).ok());
  }
  // Without launches, after `before`: `work` with 0, 1, .. allocations until it needs no more.
  template <class Before, class Work>
  void EachAllocationFails(const Before& before, const Work& work, int least, const char* what) {
    int64_t allocations = 0;
    for (;; allocations++) {
      runtime_->Launch(true);
      before();
      runtime_->Launch(false);
      const absl::Status status = WithAllocations(allocations, work);
      ASSERT_EQ(recordings_, 0) << what << " is still recorded after allocation " << allocations;
      if (!iha::testing::allocation_failed) {
        EXPECT_TRUE(status.ok()) << status;
        break;
      }
      if (!status.ok()) {  // it may do without a recording
        ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      }
    }
    runtime_->Launch(true);
    EXPECT_GE(allocations, least) << what;
  }
  absl::Status Forward(std::span<const int32_t> ids, int64_t start, std::vector<float>& logits) {
    const int32_t rows[] = {static_cast<int32_t>(ids.size()) - 1};
    const Segment step[] = {{.tokens = ids, .start = start, .blocks = kBlocks, .logit_rows = rows}};
    logits.resize(kVocab);  // has that size already where allocations are counted
    return backend_->Forward(step, logits, nullptr);
  }

  static constexpr int32_t kBlocks[] = {0, 1};
  iha::testing::TempDir folder_;
  std::optional<Checkpoint> checkpoint_;
  int recordings_ = 0;  // that have begun and not ended
  UnlaunchedRuntime* runtime_ = nullptr;
  std::unique_ptr<Backend> backend_;
};

TEST_P(DeviceOutOfMemory, EveryAllocationOfAStepMayFail) {
  ASSERT_NO_FATAL_FAILURE(OpenAndReserve());
  const std::vector<int32_t> ids = testing::RandomIds(8, kVocab, 1);
  const std::span<const int32_t> prompt = std::span(ids).first(5), next = std::span(ids).subspan(5, 1);
  std::vector<float> first, want, logits(kVocab);
  ASSERT_TRUE(Forward(prompt, 0, first).ok());
  ASSERT_TRUE(Forward(next, 5, want).ok());
  const auto nothing = [] {};
  EachAllocationFails(
      nothing, [&] { return Forward(prompt, 0, logits); }, 20, "prompt");
  ASSERT_TRUE(Forward(prompt, 0, logits).ok());
  EXPECT_TRUE(SameBits(logits, first));
  // The first step of a size, the one that is recorded, and one that is replayed.
  const auto one = [&] { return Forward(next, 5, logits); };
  for (int earlier = 0; earlier < 3; earlier++) {
    SCOPED_TRACE(earlier);
    const auto fresh = [&] {
      OpenAndReserve();
      runtime_->Launch(false);
      for (int i = 0; i < earlier; i++) ASSERT_TRUE(one().ok());
    };
    EachAllocationFails(fresh, one, 3, "step");
    ASSERT_TRUE(Forward(prompt, 0, logits).ok());
    EXPECT_TRUE(SameBits(logits, first));
    for (int i = 0; i < 3; i++) {
      ASSERT_TRUE(one().ok());
      EXPECT_TRUE(SameBits(logits, want)) << "step " << i;
    }
  }
  // A step that fails is as if it had not been: the first of its size, and a later one.
  for (const bool first_of_its_size : {true, false}) {
    SCOPED_TRACE(first_of_its_size);
    for (int64_t allocations = 0; allocations < 200; allocations += first_of_its_size ? 11 : 29) {
      if (first_of_its_size) {
        ASSERT_NO_FATAL_FAILURE(OpenAndReserve());
      }
      runtime_->Launch(false);
      WithAllocations(allocations, one).IgnoreError();
      runtime_->Launch(true);
      ASSERT_TRUE(Forward(prompt, 0, logits).ok());
      ASSERT_TRUE(one().ok());
      EXPECT_TRUE(SameBits(logits, want)) << "after allocation " << allocations;
    }
  }
}

TEST_P(DeviceOutOfMemory, EveryAllocationOfADrawAndOfACopyMayFail) {
  ASSERT_NO_FATAL_FAILURE(OpenAndReserve());
  const std::vector<int32_t> ids = testing::RandomIds(5, kVocab, 1), row = {4};
  const Segment step[] = {{.tokens = ids, .start = 0, .blocks = kBlocks, .logit_rows = row}};
  const int32_t forbidden[] = {3};
  DrawRules rules;
  rules.forbidden = forbidden;
  const RowDraw draws[] = {{.draw = true, .rules = rules, .uniform = 0.5}};
  std::vector<int32_t> tokens(1);
  ASSERT_TRUE(backend_->drawing()->ForwardAndDraw(step, draws, tokens).ok());
  const int32_t drawn = tokens[0];
  const auto nothing = [] {};
  EachAllocationFails(
      nothing, [&] { return backend_->drawing()->ForwardAndDraw(step, draws, tokens); }, 20, "draw");
  const int32_t first[] = {0};
  std::vector<float> logits(kVocab);
  EachAllocationFails(
      nothing, [&] { return backend_->drawing()->ReadLogits(first, logits); }, 1, "logits");
  EachAllocationFails(
      nothing, [&] { return backend_->CopyBlock(0, 3); }, 2, "copy");
  ASSERT_TRUE(backend_->drawing()->ForwardAndDraw(step, draws, tokens).ok());
  EXPECT_EQ(tokens[0], drawn);
}

TEST_P(DeviceOutOfMemory, EveryAllocationOfOpeningMayFail) {
  int64_t allocations = 0;
  for (;; allocations++) {
    auto runtime = std::make_unique<UnlaunchedRuntime>(recordings_);
    const auto backend = WithAllocations(allocations, [&] { return Open(std::move(runtime)); });
    if (backend.ok()) break;
    ASSERT_EQ(backend.status().code(), absl::StatusCode::kResourceExhausted) << backend.status();
    EXPECT_THAT(std::string(backend.status().message()), HasSubstr("out of memory"));
  }
  EXPECT_GT(allocations, 50);
  ASSERT_NO_FATAL_FAILURE(OpenAndReserve());
  auto runtime = std::make_unique<UnlaunchedRuntime>(recordings_);
  auto backend = Open(std::move(runtime));
  ASSERT_TRUE(backend.ok());
  for (allocations = 0;; allocations++) {
    const absl::Status status = WithAllocations(allocations, [&] { return (*backend)->ReserveCache(4); });
    if (status.ok()) break;
    ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
  EXPECT_GT(allocations, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DeviceOutOfMemory,
    ::testing::Values(
        R"("kind": "global", "qk_norm": "pre_rope", "gate": "headwise", "xsa": "output", "knocking": "linear")",
        R"("kind": "talking_heads", "window": null, "qk_norm": "none")",
        R"("kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
           "mask": "flat_causal", "rope_positions": "virtual", "window": null, "qk_norm": "none", "xsa": "pseudo")"));

}  // namespace
}  // namespace iha::model
