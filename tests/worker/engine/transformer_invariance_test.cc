// ENG-1 on the exact CPU model: for every family and variant of the cases, token ids and the log-probabilities' bits
// are the same alone, in any batch, with any chunking, with and without sharing, after preemption, on any thread count
// and with any instruction set that this machine has (the scalar one included).

#include <filesystem>

#include "kernels/support/simd_target.h"
#include "model/transformer/cpu_backend.h"
#include "tests/support/roots.h"
#include "tests/worker/engine/engine_harness.h"

namespace iha::engine {
namespace {

using checkpoint::Checkpoint;

std::vector<std::string> Folders(const std::string& root) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::string path = entry.path().string();
    if (std::filesystem::exists(path + "/config.json") && !path.ends_with(".v4")) folders.push_back(path);
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::unique_ptr<model::Backend> Open(const Checkpoint& checkpoint, int threads) {
  auto backend = model::OpenCpuBackend(checkpoint, {.threads = threads, .numerics = {}});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? *std::move(backend) : nullptr;
}

// Prompts that share 70 tokens (a block and a part) and grow into their third block; two samples each, one scored.
std::vector<GenerationRequest> Requests(const model::ModelInfo& info) {
  PhiloxStream random(17);
  const int64_t longest = std::min<int64_t>(info.context_tokens, 180);
  const auto ids = [&](int64_t n) {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < n; i++) {
      out.push_back(static_cast<int32_t>(random.NextBelow(static_cast<uint64_t>(info.vocab_size))));
    }
    return out;
  };
  const std::vector<int32_t> common = ids(std::min<int64_t>(70, longest / 2));
  std::vector<GenerationRequest> requests;
  for (const int64_t own : {55, 56, 150}) {
    GenerationRequest request;
    request.prompt = common;
    for (const int32_t id : ids(own)) request.prompt.push_back(id);
    request.sampling.max_new_tokens = 12;
    request.prompt.resize(
        static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(request.prompt.size()), longest - 12)));
    request.sampling.temperature = own == 56 ? 0 : 0.8;
    request.sampling.top_p = 0.95;
    request.logprobs = true;
    request.top_logprobs = 3;
    for (int32_t k = 0; k < 2; k++) {
      request.sample_index = k;
      requests.push_back(request);
    }
  }
  requests[3].continuation = ids(9);
  return requests;
}

// Each request needs 3 blocks in the end, 2 at its start, and shares at most 1: with 5 there must be preemption.
constexpr int32_t kFewBlocks = 5;

std::vector<GenerationResult> RunAll(std::unique_ptr<model::Backend> backend, const SchedulerOptions& options,
                                     int32_t kv_blocks) {
  const std::vector<GenerationRequest> requests = Requests(backend->info());
  // Layers with windows may leave room for all.
  const bool windows = backend->info().kv_windows != std::vector<int64_t>{0};
  const auto engine = MakeEngine(options, kv_blocks, std::move(backend));
  std::vector<GenerationResult> results = RunTogether(*engine, requests);
  if (kv_blocks == kFewBlocks && requests[0].prompt.size() == 125 && !windows) {  // not cut to a short context
    EXPECT_GT(engine->counters().scheduler.preemptions, 0);
  }
  return results;
}

class ForcedTarget {
 public:
  explicit ForcedTarget(int64_t id) { kernels::ForceSimdTargetForTest(id); }
  ~ForcedTarget() { kernels::ForceSimdTargetForTest(0); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
};

constexpr SchedulerOptions kAsInProduction = {512, 64, 256, 128, true, true};

void ExpectSameResults(const std::vector<GenerationResult>& results, const std::vector<GenerationResult>& alone) {
  ASSERT_EQ(results.size(), alone.size());
  for (size_t i = 0; i < results.size(); i++) ExpectSameResult(results[i], alone[i]);
}

void ExpectInvariance(const Checkpoint& checkpoint) {
  const auto alone = RunAll(Open(checkpoint, 1), {4096, 1, 4096, 128, false, false}, 64);
  ASSERT_EQ(alone.size(), 6u);
  for (const GenerationResult& result : alone) ASSERT_TRUE(result.status.ok()) << result.status;
  struct Config {
    int threads;
    SchedulerOptions scheduler;
    int32_t kv_blocks;
  };
  for (const Config& c : {Config{1, {4096, 64, 4096, 128, false, false}, 64},        // together
                          Config{2, kAsInProduction, 64},                            // and with threads
                          Config{2, {64, 7, 7, 128, true, true}, 64},                // small chunks
                          Config{1, {40, 4, 1, 16, false, true}, 64},                // single tokens
                          Config{1, {512, 64, 64, 128, true, true}, kFewBlocks}}) {  // preemption
    SCOPED_TRACE(fmt::format("{} threads, chunks of {}, {} blocks", c.threads, c.scheduler.chunk_tokens, c.kv_blocks));
    ExpectSameResults(RunAll(Open(checkpoint, c.threads), c.scheduler, c.kv_blocks), alone);
  }
  for (const kernels::SimdTarget& target : kernels::SimdTargets()) {
    SCOPED_TRACE(target.name);
    const ForcedTarget forced(target.id);
    ExpectSameResults(RunAll(Open(checkpoint, 1), kAsInProduction, 64), alone);
  }
}

TEST(TransformerInvariance, EveryFamily) {
  IHA_REQUIRE_CASES(cases);
  const auto folders = Folders(cases + "/hf_families");
  ASSERT_FALSE(folders.empty());
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ExpectInvariance(*checkpoint);
  }
}

TEST(TransformerInvariance, EveryVariant) {
  IHA_REQUIRE_CASES(cases);
  const auto folders = Folders(cases + "/attention_oracles");
  ASSERT_FALSE(folders.empty());
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ExpectInvariance(*checkpoint);
  }
}

}  // namespace
}  // namespace iha::engine
