// ENG-1 on the emulated device: token ids and the bits of log-probabilities are the same alone, together, in chunks,
// with shared prefixes and with room for few.
#include <fmt/format.h>

#include "model/device/emulated_backend.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/engine/engine_harness.h"

namespace iha::engine {
namespace {

constexpr char kPlain[] = R"({"model_type": "llama", "vocab_size": 300, "hidden_size": 24, "intermediate_size": 32,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5})";
// A group of a layer with a window, and one of two that see all: equal blocks.
constexpr char kIha[] = R"({"model_type": "llama", "vocab_size": 300, "hidden_size": 24, "intermediate_size": 32,
    "num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 8,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "iha_eval": {"version": 1, "mlp": "gated",
    "pattern": "per_layer", "attention": [{"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo",
    "collapse": "global", "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half",
    "window": {"unit": "token", "size": 20}, "qk_norm": "pre_mix"},
    {"kind": "global", "rope_pairing": "half", "qk_norm": "none"},
    {"kind": "talking_heads", "rope_pairing": "half", "window": null, "qk_norm": "none"}]}})";

// Prompts that share a block and a few tokens; two samples of one, one prompt scored. Of the first three, two prompts
// grow into a third block side by side.
std::vector<GenerationRequest> Requests(int32_t vocabulary) {
  const std::vector<int32_t> common = model::testing::RandomIds(66, vocabulary, 5);
  std::vector<GenerationRequest> requests;
  for (const uint32_t own : {60, 59, 3}) {
    GenerationRequest request;
    request.prompt = common;
    for (const int32_t id : model::testing::RandomIds(own, vocabulary, own)) request.prompt.push_back(id);
    request.sampling.max_new_tokens = 8;
    request.sampling.temperature = own == 3 ? 0 : 0.8;
    request.logprobs = true;
    requests.push_back(request);
    if (own != 60) continue;
    request.sample_index = 1;
    requests.push_back(request);
  }
  requests[3].continuation = model::testing::RandomIds(5, vocabulary, 9);
  return requests;
}

struct Outcome {
  std::vector<GenerationResult> results;
  int64_t preemptions = 0;
};
Outcome RunAll(const checkpoint::Checkpoint& checkpoint, const SchedulerOptions& options, int32_t kv_blocks) {
  auto backend = model::OpenEmulatedBackend(checkpoint, EmulatedNumerics());
  EXPECT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ((*backend)->info().kv_windows.size(), checkpoint.config().num_layers() == 3 ? 2u : 1u);
  const std::vector<GenerationRequest> requests = Requests((*backend)->info().vocab_size);
  const auto engine = MakeEngine(options, kv_blocks, *std::move(backend));
  auto results = RunTogether(*engine, requests);
  return {std::move(results), engine->counters().scheduler.preemptions};
}

TEST(DeviceEngine, ResultsDependOnTheirRequestsAlone) {
  for (const char* config : {kPlain, kIha}) {
    SCOPED_TRACE(config);
    iha::testing::TempDir directory;
    ASSERT_TRUE(model::testing::WriteTinyCheckpoint(directory.path(), config).ok());
    const auto checkpoint = checkpoint::Checkpoint::Open(directory.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto alone = RunAll(*checkpoint, {4096, 1, 4096, 128, false, false}, 16).results;
    ASSERT_EQ(alone.size(), 4u);
    for (const GenerationResult& result : alone) ASSERT_TRUE(result.status.ok()) << result.status;
    struct Case {
      SchedulerOptions scheduler;
      int32_t kv_blocks;
    };
    for (const Case& c : {Case{{512, 64, 256, 128, true, true}, 16},   // together, as in production
                          Case{{64, 7, 7, 128, true, true}, 16},       // small chunks
                          Case{{512, 64, 64, 128, true, true}, 4}}) {  // room for few
      SCOPED_TRACE(fmt::format("chunks of {}, {} blocks", c.scheduler.chunk_tokens, c.kv_blocks));
      const auto [results, preemptions] = RunAll(*checkpoint, c.scheduler, c.kv_blocks);
      EXPECT_EQ(preemptions > 0, c.kv_blocks < 16) << preemptions;
      ASSERT_EQ(results.size(), alone.size());
      for (size_t i = 0; i < results.size(); i++) ExpectSameResult(results[i], alone[i]);
    }
  }
}

// With kv_bytes that hold one block beside the device's own: what the device says decides.
TEST(DeviceEngine, ABudgetThatNobodyChoseFollowsTheDevice) {
  iha::testing::TempDir directory;
  ASSERT_TRUE(model::testing::WriteTinyCheckpoint(directory.path(), kPlain).ok());
  const auto checkpoint = checkpoint::Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto blocks = [&](int64_t free, int64_t sharers) -> int64_t {
    auto backend = model::OpenEmulatedBackend(*checkpoint, EmulatedNumerics(), {.free_bytes = free});
    EXPECT_TRUE(backend.ok()) << backend.status();
    EngineOptions options;
    options.kv_bytes = 2 * (*backend)->info().kv_block_bytes;
    options.device_sharers = sharers;
    options.scheduler.max_sequences = 4;
    const auto engine = Engine::Create(*std::move(backend), ByteDecoders(), options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return engine.ok() ? (*engine)->counters().kv_blocks : -1;
  };
  EXPECT_EQ(blocks(int64_t{1} << 40, 1), 2 * 4 * 4) << "twice 4 sequences of 256 tokens: more can never be in use";
  EXPECT_EQ(blocks(int64_t{1} << 40, 0), 1) << "somebody chose";
  EXPECT_EQ(blocks(0, 1), 1) << "the device does not say";
}

// The block that recorded steps are filled up with is a part of what somebody chose.
TEST(DeviceEngine, ABudgetIsNotExceeded) {
  iha::testing::TempDir directory;
  ASSERT_TRUE(model::testing::WriteTinyCheckpoint(directory.path(), kPlain).ok());
  const auto checkpoint = checkpoint::Checkpoint::Open(directory.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (const bool record : {true, false}) {
    const auto engine = [&](int64_t blocks) {
      auto backend = model::OpenEmulatedBackend(*checkpoint, EmulatedNumerics(), {.record_decode = record});
      EXPECT_TRUE(backend.ok()) << backend.status();
      EngineOptions options;
      options.kv_bytes = blocks * (*backend)->info().kv_block_bytes;
      return Engine::Create(*std::move(backend), ByteDecoders(), options);
    };
    const auto five = engine(5);
    ASSERT_TRUE(five.ok()) << five.status();
    EXPECT_EQ((*five)->counters().kv_blocks, record ? 4 : 5);
    EXPECT_EQ(engine(1).ok(), !record);
    EXPECT_EQ(engine(1).status().code(), record ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk);
  }
}

}  // namespace
}  // namespace iha::engine
