// engine_harness.h: fake-model engines for the tests of this folder, and an oracle that knows nothing of batches.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rng.h"
#include "model/fake_model.h"
#include "worker/engine/engine.h"

namespace iha::engine {

// Ids 0..255 are bytes. Incomplete UTF-8 is held back, and U+FFFD if nothing completes it.
class ByteDecoder final : public TextDecoder {
 public:
  std::string Push(int32_t id) override {
    if (id > 255) return "";
    held_ += static_cast<char>(id);
    const auto lead = static_cast<unsigned char>(held_[0]);
    const size_t need = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return held_.size() >= need ? std::exchange(held_, "") : "";
  }
  std::string Finish() override { return held_.empty() ? "" : "\xef\xbf\xbd"; }

 private:
  std::string held_;
};

inline TextDecoderFactory ByteDecoders() {
  return [] { return std::make_unique<ByteDecoder>(); };
}

inline std::vector<int32_t> Bytes(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

inline int64_t BlockBytes() { return model::FakeModel({}).info().kv_block_bytes; }

// kv_blocks: for each layer group.
inline std::unique_ptr<Engine> MakeEngine(const SchedulerOptions& scheduler, int32_t kv_blocks,
                                          std::unique_ptr<model::Backend> backend) {
  EngineOptions options;
  const model::ModelInfo& info = backend->info();
  options.kv_bytes =
      (kv_blocks * static_cast<int64_t>(info.kv_windows.size()) + info.spare_blocks) * info.kv_block_bytes;
  options.scheduler = scheduler;
  auto engine = Engine::Create(std::move(backend), ByteDecoders(), options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

inline std::unique_ptr<Engine> MakeFakeEngine(const SchedulerOptions& scheduler, int32_t kv_blocks,
                                              const model::FakeOptions& fake = {}) {
  return MakeEngine(scheduler, kv_blocks, std::make_unique<model::FakeModel>(fake));
}

// Steps until nothing is left, checking the invariants after every step. Results by id.
inline std::map<SequenceId, GenerationResult> RunToEnd(Engine& engine) {
  std::map<SequenceId, GenerationResult> results;
  while (true) {
    const auto worked = engine.Step();
    EXPECT_TRUE(worked.ok()) << worked.status();
    const absl::Status invariants = engine.CheckInvariants();
    EXPECT_TRUE(invariants.ok()) << invariants;
    while (auto result = engine.TryPopResult()) results.emplace(result->id, *std::move(result));
    if (!worked.ok() || !*worked || !invariants.ok()) return results;
  }
}

// The requests in a fresh engine; results in the order of the requests.
inline std::vector<GenerationResult> RunTogether(Engine& engine, const std::vector<GenerationRequest>& requests) {
  for (const GenerationRequest& request : requests) EXPECT_TRUE(engine.Submit(request).ok());
  std::vector<GenerationResult> results;
  for (auto& [id, result] : RunToEnd(engine)) results.push_back(std::move(result));
  return results;
}

// The request alone: the whole prefix through a fresh model for every token.
inline GenerationResult Oracle(const GenerationRequest& request, const model::FakeOptions& fake) {
  ActiveRequest active(SequenceId{0}, request, std::make_unique<ByteDecoder>(), nullptr);
  Sampler sampler;
  std::vector<int32_t> tokens = request.prompt;
  const size_t vocab = static_cast<size_t>(fake.vocab_size);
  while (true) {
    model::FakeModel model(fake);
    std::vector<int32_t> blocks;
    const size_t entries = (tokens.size() + model::kKvBlockTokens - 1) / model::kKvBlockTokens;
    for (size_t i = 0; i < entries * fake.windows.size(); i++) blocks.push_back(static_cast<int32_t>(i));
    EXPECT_TRUE(model.ReserveCache(static_cast<int32_t>(blocks.size())).ok());
    const std::vector<int32_t> last = {static_cast<int32_t>(tokens.size()) - 1};
    std::vector<float> logits(vocab);
    const model::Segment segment{tokens, 0, blocks, last};
    EXPECT_TRUE(model.Forward({&segment, 1}, logits, nullptr).ok());
    const auto outcome = active.OnLogits(last[0], logits, sampler);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    if (!outcome.ok() || outcome->finished) return active.TakeResult(outcome.status());
    const size_t done = tokens.size() - request.prompt.size();
    tokens.push_back(outcome->has_token ? outcome->token : request.continuation[done]);
  }
}

inline void ExpectSameResult(const GenerationResult& got, const GenerationResult& want) {
  EXPECT_EQ(got.status, want.status);
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.text, want.text);
  EXPECT_EQ(got.finish, want.finish);
  EXPECT_EQ(got.prompt_tokens, want.prompt_tokens);
  EXPECT_TRUE(got.scores == want.scores);  // bit for bit
  EXPECT_EQ(got.sum_logprob, want.sum_logprob);
}

// A mix as an evaluation sends it: a common prefix, several samples a prompt, every sampling rule, scoring requests.
inline std::vector<GenerationRequest> MixedRequests(uint64_t seed, int count) {
  PhiloxStream random(seed);
  const auto ids = [&](uint64_t n) {
    std::vector<int32_t> out;
    for (uint64_t i = 0; i < n; i++) out.push_back(static_cast<int32_t>(random.NextBelow(257)));
    return out;
  };
  const std::vector<int32_t> common = ids(150);
  std::vector<GenerationRequest> requests;
  while (static_cast<int>(requests.size()) < count) {
    GenerationRequest request;
    if (random.NextBelow(4) != 0) request.prompt = common;
    const std::vector<int32_t> own = ids(1 + random.NextBelow(140));
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.sampling.temperature = std::vector<double>{0, 0.7, 1.0}[random.NextBelow(3)];
    request.sampling.top_p = std::vector<double>{1, 0.9, 0.3}[random.NextBelow(3)];
    request.sampling.top_k = std::vector<int32_t>{0, 0, 5}[random.NextBelow(3)];
    request.sampling.max_new_tokens = static_cast<int32_t>(1 + random.NextBelow(70));
    request.eos = {256, static_cast<int32_t>(random.NextBelow(256))};
    request.min_new_tokens = static_cast<int32_t>(random.NextBelow(4));
    request.ignore_eos = random.NextBelow(5) == 0;
    request.logprobs = random.NextBelow(3) == 0;
    request.top_logprobs = static_cast<int32_t>(random.NextBelow(3));
    if (random.NextBelow(3) == 0)
      request.stops = {std::string(1, static_cast<char>('a' + random.NextBelow(26))), "xyz"};
    if (random.NextBelow(4) == 0) request.forbidden = ids(20);
    if (random.NextBelow(6) == 0) request.continuation = ids(1 + random.NextBelow(100));
    const uint64_t samples = 1 + random.NextBelow(4);
    for (uint64_t k = 0; k < samples && static_cast<int>(requests.size()) < count; k++) {
      request.sample_index = static_cast<int32_t>(k);
      requests.push_back(request);
      if (!request.continuation.empty()) request.continuation = ids(1 + random.NextBelow(100));
    }
  }
  return requests;
}

}  // namespace iha::engine
