// ENG-10 on the exact CPU model: layers with windows hold the blocks of their windows however long the sequence, and
// what is let go is never read.

#include <algorithm>
#include <limits>
#include <set>

#include "common/status_macros.h"
#include "model/transformer/cpu_backend.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/worker/engine/engine_harness.h"

namespace iha::engine {
namespace {

// Four local layers to one that sees all, as in the paper's hybrid: equal caches, so each layer is a group.
constexpr char kHybrid[] = R"({
  "model_type": "llama", "vocab_size": 258, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 5,
  "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 4096,
  "iha_eval": {"version": 1, "mlp": "gated", "pattern": "per_layer", "attention": [
    {"kind": "local", "rope_pairing": "half", "window": 64, "qk_norm": "none"},
    {"kind": "local", "rope_pairing": "half", "window": 64, "qk_norm": "none"},
    {"kind": "local", "rope_pairing": "half", "window": 64, "qk_norm": "none"},
    {"kind": "local", "rope_pairing": "half", "window": 64, "qk_norm": "none"},
    {"kind": "global", "rope_pairing": "half", "qk_norm": "none"}]}})";

// Windows of every kind, five groups of equal size: virtual units that do not divide into tokens over mixed keys, whole
// tokens over base keys, talking heads, one token.
constexpr char kKinds[] = R"({
  "model_type": "llama", "vocab_size": 258, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 9,
  "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 4096,
  "iha_eval": {"version": 1, "mlp": "gated", "pattern": "per_layer", "attention": [
    {"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
     "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half",
     "window": {"unit": "virtual", "size": 132}, "qk_norm": "none"},
    {"kind": "iha", "pseudo_heads": 4, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
     "mask": "token_causal", "rope_positions": "virtual", "rope_pairing": "half",
     "window": {"unit": "token", "size": 70}, "qk_norm": "none"},
    {"kind": "talking_heads", "rope_pairing": "half", "window": 65, "qk_norm": "none"},
    {"kind": "local", "rope_pairing": "half", "window": 1, "qk_norm": "none"},
    {"kind": "global", "rope_pairing": "half", "qk_norm": "none"},
    {"kind": "iha", "pseudo_heads": 4, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
     "mask": "token_causal", "rope_positions": "virtual", "rope_pairing": "half",
     "window": {"unit": "token", "size": 70}, "qk_norm": "none"},
    {"kind": "local", "rope_pairing": "half", "window": 65, "qk_norm": "none"},
    {"kind": "local", "rope_pairing": "half", "window": 1, "qk_norm": "none"},
    {"kind": "global", "rope_pairing": "half", "qk_norm": "none"}]}})";

constexpr int32_t kPoison = 257;  // the token whose embedding is NaN

// A random checkpoint, but for the poisonous token.
std::string WriteCheckpoint(const std::string& name, const char* config_text) {
  namespace files = checkpoint::testing;
  const std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::create_directories(folder);
  files::WriteText(folder + "/config.json", config_text);
  const auto config = checkpoint::ParseModelConfig(config_text);
  EXPECT_TRUE(config.ok()) << config.status();
  if (!config.ok()) return folder;
  const std::vector<checkpoint::TensorSpec> specs = RequiredTensors(*config);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<checkpoint::NamedTensor> tensors;
  bytes.reserve(specs.size());
  for (const checkpoint::TensorSpec& spec : specs) {
    const checkpoint::TensorPlan plan{spec.name, checkpoint::DType::kF32, spec.shape};
    bytes.push_back(files::RandomTensor(plan));
    if (spec.name == "model.embed_tokens.weight") {
      const std::vector<float> row(static_cast<size_t>(spec.shape[1]), std::numeric_limits<float>::quiet_NaN());
      std::memcpy(bytes.back().data() + kPoison * row.size() * sizeof(float), row.data(), row.size() * sizeof(float));
    }
    tensors.push_back({plan, bytes.back()});
  }
  const absl::Status status = WriteSafetensors(folder + "/model.safetensors", tensors);
  EXPECT_TRUE(status.ok()) << status;
  return folder;
}

// Fills every block that the step does not name with NaN before the step. For engines with one sequence at a time and
// no prefix cache: nobody else has blocks then.
class PoisoningBackend final : public model::Backend {
 public:
  explicit PoisoningBackend(std::unique_ptr<model::Backend> inner) : inner_(std::move(inner)) {}

  const model::ModelInfo& info() const override { return inner_->info(); }
  absl::Status ReserveCache(int32_t blocks) override {
    blocks_ = blocks;
    std::vector<int32_t> table;
    for (size_t group = 0; group < info().kv_windows.size(); group++) {
      table.push_back(blocks + static_cast<int32_t>(group));
    }
    IHA_RETURN_IF_ERROR(inner_->ReserveCache(blocks + static_cast<int32_t>(table.size())));
    const std::vector<int32_t> tokens(model::kKvBlockTokens, kPoison);
    const model::Segment segment{tokens, 0, table, {}};
    return inner_->Forward({&segment, 1}, {}, nullptr);
  }
  absl::Status CopyBlock(int32_t from, int32_t to) override { return inner_->CopyBlock(from, to); }
  absl::Status Forward(std::span<const model::Segment> segments, std::span<float> logits,
                       model::Trace* trace) override {
    EXPECT_EQ(segments.size(), 1u);
    const std::set<int32_t> named(segments[0].blocks.begin(), segments[0].blocks.end());
    const int32_t groups = static_cast<int32_t>(info().kv_windows.size());
    for (int32_t block = 0; block < blocks_; block++) {
      if (!named.contains(block)) IHA_RETURN_IF_ERROR(inner_->CopyBlock(blocks_ + block % groups, block));
    }
    return inner_->Forward(segments, logits, trace);
  }

 private:
  const std::unique_ptr<model::Backend> inner_;
  int32_t blocks_ = 0;
};

std::unique_ptr<model::Backend> Open(const checkpoint::Checkpoint& checkpoint) {
  auto backend = model::OpenCpuBackend(checkpoint, {.threads = 2, .numerics = {}});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? *std::move(backend) : nullptr;
}

GenerationRequest Long(int64_t prompt_tokens, int32_t new_tokens) {
  PhiloxStream random(5);
  GenerationRequest request;
  for (int64_t i = 0; i < prompt_tokens; i++) request.prompt.push_back(static_cast<int32_t>(random.NextBelow(257)));
  request.sampling.max_new_tokens = new_tokens;
  request.sampling.temperature = 1.0;
  request.ignore_eos = true;
  request.forbidden = {kPoison};
  request.logprobs = true;
  return request;
}

struct Outcome {
  std::vector<GenerationResult> results;
  EngineCounters counters;
};

Outcome RunAll(std::unique_ptr<model::Backend> backend, const SchedulerOptions& options, int64_t blocks,
               const std::vector<GenerationRequest>& requests) {
  EngineOptions engine_options;
  engine_options.kv_bytes = blocks * backend->info().kv_block_bytes;
  engine_options.scheduler = options;
  const auto engine = Engine::Create(std::move(backend), ByteDecoders(), engine_options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  Outcome run;
  if (!engine.ok()) return run;
  for (const GenerationRequest& request : requests) {
    const auto id = (*engine)->Submit(request);
    EXPECT_TRUE(id.ok()) << id.status();
  }
  for (auto& [id, result] : RunToEnd(**engine)) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    run.results.push_back(std::move(result));
  }
  run.counters = (*engine)->counters();
  return run;
}

void ExpectSameResults(const Outcome& got, const Outcome& want) {
  ASSERT_EQ(got.results.size(), want.results.size());
  for (size_t i = 0; i < got.results.size(); i++) ExpectSameResult(got.results[i], want.results[i]);
}

// 2,000 positions: 32 blocks of the layer that sees all, and three of each local one (113 positions begin anywhere).
// Without rings it would be 160.
TEST(WindowBlocks, ALongSequenceHoldsItsWindows) {
  const auto checkpoint = checkpoint::Checkpoint::Open(WriteCheckpoint("window_blocks", kHybrid));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  constexpr int64_t kBlocks = 32 + 4 * 3;
  const SchedulerOptions options{.chunk_tokens = 50};
  const std::vector<GenerationRequest> requests = {Long(1990, 11)};
  const model::ModelInfo info = Open(*checkpoint)->info();
  EXPECT_EQ(info.kv_windows, (std::vector<int64_t>{0, 64, 64, 64, 64}));
  const Outcome want = RunAll(Open(*checkpoint), {.max_batch_tokens = 4096, .chunk_tokens = 4096}, 1000, requests);
  const Outcome got = RunAll(Open(*checkpoint), options, kBlocks, requests);
  ExpectSameResults(got, want);
  EXPECT_EQ(got.counters.kv_blocks_peak, kBlocks);
  EXPECT_EQ(got.counters.scheduler.preemptions, 0);

  EngineOptions fewer;
  fewer.kv_bytes = (kBlocks - 1) * info.kv_block_bytes;
  fewer.scheduler = options;
  const auto engine = Engine::Create(Open(*checkpoint), ByteDecoders(), fewer);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->Submit(requests[0]).status().code(), absl::StatusCode::kResourceExhausted);
}

// Chunks of one token to 100 and a budget that makes blocks go round; several prompts, one after the other.
TEST(WindowBlocks, NaNInBlocksThatWereLetGoReachesNoResult) {
  for (const auto& [name, config] : {std::pair{"window_poison", kHybrid}, {"window_poison_kinds", kKinds}}) {
    SCOPED_TRACE(name);
    const auto checkpoint = checkpoint::Checkpoint::Open(WriteCheckpoint(name, config));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const model::ModelInfo info = Open(*checkpoint)->info();
    // Of 132 virtual positions, two a token, a token's first query has 131 before it: they reach into the 66th token
    // back.
    EXPECT_TRUE(config == kHybrid || info.kv_windows == (std::vector<int64_t>{0, 1, 65, 67, 70}))
        << ::testing::PrintToString(info.kv_windows);
    const std::vector<GenerationRequest> requests = {Long(400, 90), Long(130, 20), Long(63, 200)};
    const Outcome want = RunAll(Open(*checkpoint), {.max_batch_tokens = 4096, .chunk_tokens = 4096}, 1000, requests);
    for (const int32_t chunk : {1, 33, 64, 100}) {
      SCOPED_TRACE(chunk);
      const SchedulerOptions options{
          .max_sequences = 1, .chunk_tokens = chunk, .prefix_cache = false, .share_samples = false};
      const Outcome got = RunAll(std::make_unique<PoisoningBackend>(Open(*checkpoint)), options, 30, requests);
      ExpectSameResults(got, want);
    }
  }
}

// Together, with shared samples and prefixes, and with so few blocks that sequences are computed again.
TEST(WindowBlocks, SharingAndPreemptionChangeNoBit) {
  for (const auto& [name, config] : {std::pair{"window_share", kHybrid}, {"window_share_kinds", kKinds}}) {
    SCOPED_TRACE(name);
    const auto checkpoint = checkpoint::Checkpoint::Open(WriteCheckpoint(name, config));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    std::vector<GenerationRequest> requests;
    for (const int64_t own : {1, 64, 150}) {
      GenerationRequest request = Long(300 + own, 100);
      request.prompt.back() = static_cast<int32_t>(own);
      for (int32_t k = 0; k < 3; k++) {
        request.sample_index = k;
        requests.push_back(request);
      }
    }
    const Outcome want = RunAll(Open(*checkpoint),
                                {.max_batch_tokens = 4096,
                                 .max_sequences = 1,
                                 .chunk_tokens = 4096,
                                 .prefix_cache = false,
                                 .share_samples = false},
                                1000, requests);
    for (const int64_t blocks : {1000, 60, 35}) {
      SCOPED_TRACE(blocks);
      const Outcome got = RunAll(Open(*checkpoint), {.max_batch_tokens = 128, .chunk_tokens = 50}, blocks, requests);
      ExpectSameResults(got, want);
      EXPECT_GT(got.counters.scheduler.reused_tokens, 0);
      EXPECT_TRUE(blocks > 35 || got.counters.scheduler.preemptions > 0);
    }
  }
}

}  // namespace
}  // namespace iha::engine
