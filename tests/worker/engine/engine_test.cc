#include "worker/engine/engine.h"

#include <atomic>
#include <filesystem>
#include <limits>
#include <thread>

#include "tests/worker/engine/engine_harness.h"
#include "worker/engine/telemetry.h"

namespace iha::engine {
namespace {

GenerationRequest Greedy(std::string_view prompt, int32_t max_new) {
  GenerationRequest request;
  request.prompt = Bytes(prompt);
  request.sampling.max_new_tokens = max_new;
  request.eos = {256};
  return request;
}

// A fake model with a fault.
class Faulty final : public model::Backend {
 public:
  using Fault = std::function<absl::Status(std::span<const model::Segment>, std::span<float>)>;
  explicit Faulty(Fault fault) : fault_(std::move(fault)) {}
  const model::ModelInfo& info() const override { return fake_.info(); }
  absl::Status ReserveCache(int32_t blocks) override { return fake_.ReserveCache(blocks); }
  absl::Status CopyBlock(int32_t from, int32_t to) override { return fake_.CopyBlock(from, to); }
  absl::Status Forward(std::span<const model::Segment> segments, std::span<float> logits,
                       model::Trace* trace) override {
    const absl::Status status = fake_.Forward(segments, logits, trace);
    return status.ok() ? fault_(segments, logits) : status;
  }

 private:
  model::FakeModel fake_{{}};
  const Fault fault_;
};

// Says what it is told to: the generated token i is script[i], whatever the prompt. For text at token boundaries.
class Scripted final : public model::Backend {
 public:
  Scripted(std::vector<int32_t> script, int64_t prompt_tokens) : script_(std::move(script)), prompt_(prompt_tokens) {}
  const model::ModelInfo& info() const override { return fake_.info(); }
  absl::Status ReserveCache(int32_t) override { return absl::OkStatus(); }
  absl::Status CopyBlock(int32_t, int32_t) override { return absl::OkStatus(); }
  absl::Status Forward(std::span<const model::Segment> segments, std::span<float> logits, model::Trace*) override {
    std::ranges::fill(logits, 0.0f);
    size_t row = 0;
    for (const model::Segment& s : segments) {
      for (const int32_t offset : s.logit_rows) {
        const size_t index = static_cast<size_t>(s.start + offset + 1 - prompt_);
        logits[row++ * 257 + static_cast<size_t>(script_.at(index))] = 9;
      }
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<int32_t> script_;
  const int64_t prompt_;
  model::FakeModel fake_{{}};
};

GenerationResult Say(std::vector<int32_t> script, std::vector<std::string> stops, int32_t max_new) {
  GenerationRequest request = Greedy("p", max_new);
  request.stops = std::move(stops);
  const auto engine = MakeEngine({}, 8, std::make_unique<Scripted>(std::move(script), 1));
  EXPECT_TRUE(engine->Submit(request).ok());
  return RunToEnd(*engine).begin()->second;
}

TEST(EngineText, EndsAndCuts) {
  const auto ids = [](std::string_view text, bool eos) {
    std::vector<int32_t> out = Bytes(text);
    if (eos) out.push_back(256);
    return out;
  };
  struct Case {
    std::string name;
    std::vector<int32_t> script;
    std::vector<std::string> stops;
    int32_t max_new;
    FinishReason finish;
    std::string text;
    size_t tokens;
  };
  const Case cases[] = {
      {"eos is drawn but not said", ids("ab", true), {}, 9, FinishReason::kEos, "ab", 3},
      {"eos at once", ids("", true), {}, 9, FinishReason::kEos, "", 1},
      {"length", ids("abcdef", true), {}, 4, FinishReason::kLength, "abcd", 4},
      {"stop over tokens", ids("ab\n\ncd", true), {"\n\n"}, 9, FinishReason::kStop, "ab", 4},
      {"stop at the last allowed token", ids("ab\n\ncd", true), {"\n\n"}, 4, FinishReason::kStop, "ab", 4},
      {"half a stop at the last allowed token", ids("ab\n\ncd", true), {"\n\n"}, 3, FinishReason::kLength, "ab\n", 3},
      {"eos after half a stop", ids("ab\n", true), {"\n\n"}, 9, FinishReason::kEos, "ab\n", 4},
      {"a character of three bytes", ids("\xe2\x82\xac.", true), {"."}, 9, FinishReason::kStop, "\xe2\x82\xac", 4},
      {"cut inside a character", ids("\xe2\x82\xac", false), {}, 2, FinishReason::kLength, "\xef\xbf\xbd", 2},
      {"a stop that is part of a character",
       ids("\xe2\x82\xac.", true),
       {"\xac"},
       9,
       FinishReason::kStop,
       "\xe2\x82",
       3},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const GenerationResult result = Say(c.script, c.stops, c.max_new);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.finish, c.finish);
    EXPECT_EQ(result.text, c.text);
    EXPECT_EQ(result.tokens.size(), c.tokens);
  }
}

TEST(Engine, EosRules) {
  GenerationRequest request = Greedy("p", 4);
  const auto run = [&] {
    const auto engine = MakeEngine({}, 8, std::make_unique<Scripted>(std::vector<int32_t>{'a', 256, 'b', 'c'}, 1));
    EXPECT_TRUE(engine->Submit(request).ok());
    return RunToEnd(*engine).begin()->second;
  };
  EXPECT_EQ(run().tokens, (std::vector<int32_t>{'a', 256}));
  request.ignore_eos = true;
  EXPECT_EQ(run().tokens, (std::vector<int32_t>{'a', 256, 'b', 'c'}));
  request.ignore_eos = false;
  request.min_new_tokens = 3;
  // The other logits are all zero: the lowest id takes the place of eos.
  EXPECT_EQ(run().tokens, (std::vector<int32_t>{'a', 0, 'b', 'c'}));
}

// A second older at each look.
class TickingClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + Elapsed(); }
  absl::Duration Elapsed() const override { return absl::Seconds(++looks_); }
  bool AwaitUntil(absl::Mutex*, const std::function<bool()>& condition, absl::Duration) override { return condition(); }

 private:
  mutable int64_t looks_ = 0;
};

TEST(Engine, TheModelsSecondsAreSplitByPositions) {
  TickingClock clock;
  EngineOptions options;
  options.kv_bytes = 100 * BlockBytes();
  options.clock = &clock;
  auto engine = Engine::Create(std::make_unique<model::FakeModel>(model::FakeOptions{}), ByteDecoders(), options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  GenerationRequest request = Greedy("abc", 5);
  request.ignore_eos = true;
  ASSERT_TRUE((*engine)->Submit(request).ok());
  ASSERT_TRUE((*engine)->Step().ok());  // the prompt
  ASSERT_TRUE((*engine)->Step().ok());  // a token
  request.prompt = Bytes("123456789");
  ASSERT_TRUE((*engine)->Submit(request).ok());
  ASSERT_TRUE((*engine)->Step().ok());  // a token of the first and the whole second prompt: 1 and 9 positions
  RunToEnd(**engine);
  const EngineTelemetry t = TelemetryOf((*engine)->counters());
  EXPECT_EQ(t.prefill_tokens, 3 + 9);
  EXPECT_EQ(t.decode_tokens, 2 * 4) << "the last token drawn is not computed";
  EXPECT_EQ(t.generated_tokens, 2 * 5);
  EXPECT_EQ(t.steps, 7);
  EXPECT_EQ(t.step_sequences, 2 + 2 + 2 + 2 + 2);
  EXPECT_EQ(t.model_time(), absl::Seconds(7));
  EXPECT_EQ(t.prefill_time, absl::Seconds(1) + absl::Seconds(1) * 0.9);
}

TEST(Engine, ThePrefixOfManyItemsAndThePromptOfManySamplesAreComputedOnce) {
  const auto engine = MakeFakeEngine({}, 200);
  const std::string shots(640, 's');  // ten full blocks
  int64_t expected = 640;
  int64_t drawn = 0;
  for (int item = 0; item < 4; item++) {
    GenerationRequest request = Greedy(shots + std::to_string(item) + " some question", 5);
    request.ignore_eos = true;
    request.sampling.temperature = 1;
    const int64_t own = static_cast<int64_t>(request.prompt.size()) - 640;
    for (int32_t k = 0; k < 8; k++) {
      request.sample_index = k;
      ASSERT_TRUE(engine->Submit(request).ok());
      // The first sample computes what is its item's own; the others its last position; all then 4 of 5 tokens drawn.
      expected += (k == 0 ? own : 1) + 4;
      drawn += 5;
    }
  }
  EXPECT_EQ(RunToEnd(*engine).size(), 32u);
  const EngineCounters counters = engine->counters();
  EXPECT_EQ(counters.computed_tokens, expected);
  EXPECT_EQ(counters.prefill_tokens, expected - 32 * 4);
  EXPECT_EQ(counters.generated_tokens, drawn);
  EXPECT_EQ(counters.requests, 32);
  EXPECT_EQ(counters.results, 32);
  EXPECT_EQ(counters.prefix_blocks, 10);
  EXPECT_EQ(counters.kv_blocks_used, 0);
  EXPECT_GT(counters.step_sequences, 10 * counters.steps) << "the batch was meant to be full";
}

TEST(Engine, ScoringAddsUpTheContinuation) {
  GenerationRequest request = Greedy("Question", 1);
  request.continuation = Bytes(" a longer answer");
  const auto engine = MakeFakeEngine({}, 8);
  ASSERT_TRUE(engine->Submit(request).ok());
  const GenerationResult whole = RunToEnd(*engine).begin()->second;
  ASSERT_EQ(whole.scores.size(), request.continuation.size());
  EXPECT_TRUE(whole.tokens.empty());
  // Chain rule: token by token gives the same terms, bit for bit.
  double sum = 0;
  for (size_t i = 0; i < request.continuation.size(); i++) {
    GenerationRequest one = request;
    one.prompt.insert(one.prompt.end(), request.continuation.begin(), request.continuation.begin() + i);
    one.continuation = {request.continuation[i]};
    ASSERT_TRUE(engine->Submit(one).ok());
    const GenerationResult part = RunToEnd(*engine).begin()->second;
    EXPECT_EQ(part.scores[0], whole.scores[i]);
    sum += part.sum_logprob;
  }
  EXPECT_EQ(sum, whole.sum_logprob);
}

// The last token is drawn and never computed, so it needs no position.
TEST(Engine, AGenerationFillsTheContextToItsLastPosition) {
  model::FakeOptions options;
  options.context_tokens = 80;
  const auto engine = MakeEngine({}, 8, std::make_unique<model::FakeModel>(options));
  GenerationRequest request = Greedy(std::string(50, 'q'), 31);
  request.min_new_tokens = 31;
  ASSERT_TRUE(engine->Submit(request).ok());
  const GenerationResult result = RunToEnd(*engine).begin()->second;
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.tokens.size(), 31u);
  request.sampling.max_new_tokens = 32;
  EXPECT_EQ(engine->Submit(request).status().code(), absl::StatusCode::kInvalidArgument);
}

// As many tokens as can be drawn can be scored.
TEST(Engine, ScoringFillsTheContextToItsLastPosition) {
  model::FakeOptions options;
  options.context_tokens = 80;
  const auto engine = MakeEngine({}, 8, std::make_unique<model::FakeModel>(options));
  GenerationRequest request = Greedy(std::string(50, 'q'), 1);
  request.continuation.assign(31, 'a');
  ASSERT_TRUE(engine->Submit(request).ok());
  const GenerationResult result = RunToEnd(*engine).begin()->second;
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.scores.size(), 31u);
  request.continuation.push_back('a');
  EXPECT_EQ(engine->Submit(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Engine, BadRequestsAreNamed) {
  const auto engine = MakeFakeEngine({}, 2, {.context_tokens = 300});
  const GenerationRequest good = Greedy("p", 10);
  struct Case {
    std::function<void(GenerationRequest&)> spoil;
    absl::StatusCode code;
    std::string message;
  };
  using R = GenerationRequest;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const Case cases[] = {
      {[](R& r) { r.prompt.clear(); }, invalid, "prompt: no tokens (expected at least 1)"},
      {[](R& r) { r.prompt = {257}; }, invalid, "prompt: token id 257 (expected 0 to 256)"},
      {[](R& r) { r.eos = {-1}; }, invalid, "eos: token id -1 (expected 0 to 256)"},
      {[](R& r) { r.forbidden = {999}; }, invalid, "forbidden: token id 999 (expected 0 to 256)"},
      {[](R& r) { r.sampling.temperature = -1; }, invalid, "temperature: -1 (expected 0, or 0.0001 and more)"},
      {[](R& r) { r.sampling.temperature = std::numeric_limits<double>::quiet_NaN(); }, invalid,
       "temperature: nan (expected 0, or 0.0001 and more)"},
      {[](R& r) { r.sampling.top_p = 0; }, invalid, "top_p: 0 (expected above 0, at most 1)"},
      {[](R& r) { r.sampling.top_k = -2; }, invalid, "top_k: -2 (expected 0 = off, or more)"},
      {[](R& r) { r.min_new_tokens = -1; }, invalid, "min_new_tokens: -1, top_logprobs: 0 (expected 0 or more)"},
      {[](R& r) { r.sampling.max_new_tokens = 0; }, invalid, "max_new_tokens: 0 (expected at least 1)"},
      {[](R& r) {
         r.stops = {"a", ""};
       },
       invalid, "stops: an empty string (it would stop before the first token)"},
      {[](R& r) { r.sampling.max_new_tokens = 301; }, invalid,
       "prompt: 1 tokens and 301 to come exceed the model's context of 300"},
      {[](R& r) { r.sampling.max_new_tokens = 200; }, absl::StatusCode::kResourceExhausted,
       "KV cache: 1 prompt tokens and 200 to come need 4 blocks of 1024 bytes, the budget has 2"},
  };
  for (const Case& c : cases) {
    GenerationRequest request = good;
    c.spoil(request);
    const auto id = engine->Submit(request);
    EXPECT_EQ(id.status().code(), c.code);
    EXPECT_EQ(id.status().message(), c.message);
  }
  EXPECT_TRUE(engine->Submit(good).ok()) << "the engine goes on";
  EXPECT_EQ(RunToEnd(*engine).size(), 1u);
  EXPECT_EQ(engine->counters().requests, 1);
}

TEST(Engine, BadOptionsAreNamed) {
  EngineOptions options;
  options.kv_bytes = BlockBytes() - 1;
  auto engine = Engine::Create(std::make_unique<model::FakeModel>(model::FakeOptions{}), ByteDecoders(), options);
  EXPECT_EQ(engine.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(engine.status().message(),
            "KV cache: a block of 64 tokens in 1 layer group(s) needs 1024 bytes, the budget has 1023");
  options.kv_bytes = 3 * BlockBytes() - 1;
  engine = Engine::Create(std::make_unique<model::FakeModel>(model::FakeOptions{.windows = {0, 64, 64}}),
                          ByteDecoders(), options);
  EXPECT_EQ(engine.status().message(),
            "KV cache: a block of 64 tokens in 3 layer group(s) needs 3072 bytes, the budget has 3071");
  options.kv_bytes = 1 << 20;
  options.scheduler.chunk_tokens = 0;
  engine = Engine::Create(std::make_unique<model::FakeModel>(model::FakeOptions{}), ByteDecoders(), options);
  EXPECT_EQ(engine.status().message(), "chunk_tokens: 0 (expected at least 1)");
}

TEST(Engine, NaNLogitsEndTheirRequestOnly) {
  // The fault hits the sequence whose tokens hold 'N', at its third drawn token.
  const auto engine = MakeEngine({}, 64, std::make_unique<Faulty>([](auto segments, std::span<float> logits) {
                                   size_t row = 0;
                                   for (const model::Segment& s : segments) {
                                     for (size_t i = 0; i < s.logit_rows.size(); i++, row++) {
                                       if (s.start + s.logit_rows[i] == 3 + 2)
                                         logits[row * 257 + 5] = std::numeric_limits<float>::quiet_NaN();
                                     }
                                   }
                                   return absl::OkStatus();
                                 }));
  GenerationRequest bad = Greedy("abcd", 9), good = Greedy("some longer prompt", 9);
  bad.ignore_eos = good.ignore_eos = true;
  ASSERT_TRUE(engine->Submit(bad).ok());
  ASSERT_TRUE(engine->Submit(good).ok());
  auto results = RunToEnd(*engine);
  EXPECT_EQ(results[SequenceId{0}].status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(results[SequenceId{0}].status.message(), "position 5: the logits contain NaN; see iha-eval inspect");
  EXPECT_EQ(results[SequenceId{0}].tokens.size(), 2u);
  ExpectSameResult(results[SequenceId{1}], Oracle(good, {}));
}

TEST(Engine, ABackendOutOfMemoryGetsLessAtOnce) {
  const auto requests = MixedRequests(3, 24);
  const auto engine =
      MakeEngine({}, 200, std::make_unique<Faulty>([](auto segments, std::span<float>) {
                   return segments.size() > 3 ? absl::ResourceExhaustedError("scratch: no memory") : absl::OkStatus();
                 }));
  for (const auto& request : requests) ASSERT_TRUE(engine->Submit(request).ok());
  const auto results = RunToEnd(*engine);
  ASSERT_EQ(results.size(), requests.size());
  for (const auto& [id, result] : results) ExpectSameResult(result, Oracle(requests[static_cast<size_t>(id)], {}));
  EXPECT_GT(engine->counters().scheduler.preemptions, 0);
}

// The memory was another's for one step: what runs at once is small for a while, then as many as were asked for.
TEST(Engine, APassingShortageDoesNotSlowDownForGood) {
  constexpr int32_t kMost = 8;
  int calls = 0;
  size_t after_shortage = 0, most = 0;
  auto model = std::make_unique<Faulty>([&](auto segments, std::span<float>) {
    if (++calls == 3) return absl::ResourceExhaustedError("scratch: no memory");
    if (calls == 4) after_shortage = segments.size();
    if (calls > 4) most = std::max(most, segments.size());
    return absl::OkStatus();
  });
  const auto engine = MakeEngine({.max_sequences = kMost}, 200, std::move(model));
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < 4 * kMost; i++) {
    requests.push_back(Greedy("p" + std::to_string(i), 100));
    requests.back().ignore_eos = true;
    ASSERT_TRUE(engine->Submit(requests.back()).ok());
  }
  const auto results = RunToEnd(*engine);
  EXPECT_EQ(after_shortage, size_t{kMost / 2});
  EXPECT_EQ(most, size_t{kMost});
  for (const auto& [id, result] : results) ExpectSameResult(result, Oracle(requests[static_cast<size_t>(id)], {}));
}

TEST(Engine, AFailedStepFailsItsRequestsAndNoOthers) {
  int calls = 0;
  const auto engine = MakeEngine({.max_sequences = 2}, 200, std::make_unique<Faulty>([&](auto, std::span<float>) {
                                   return ++calls == 1 ? absl::InternalError("device lost") : absl::OkStatus();
                                 }));
  for (int i = 0; i < 3; i++) ASSERT_TRUE(engine->Submit(Greedy("p" + std::to_string(i), 3)).ok());
  const auto results = RunToEnd(*engine);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results.at(SequenceId{0}).status, absl::InternalError("device lost"));
  EXPECT_EQ(results.at(SequenceId{1}).status, absl::InternalError("device lost"));
  EXPECT_TRUE(results.at(SequenceId{2}).status.ok());
}

// The first step has one sequence: that says nothing about how many may run later.
TEST(Engine, AFailedStepDoesNotSlowDownThoseAfterIt) {
  int calls = 0;
  const auto engine = MakeEngine({}, 200, std::make_unique<Faulty>([&](auto, std::span<float>) {
                                   return ++calls == 1 ? absl::InternalError("device lost") : absl::OkStatus();
                                 }));
  ASSERT_TRUE(engine->Submit(Greedy("p", 3)).ok());
  EXPECT_EQ(RunToEnd(*engine).at(SequenceId{0}).status, absl::InternalError("device lost"));
  for (int i = 0; i < 8; i++) {
    GenerationRequest request = Greedy("p" + std::to_string(i), 5);
    request.ignore_eos = true;
    ASSERT_TRUE(engine->Submit(request).ok());
  }
  EXPECT_EQ(RunToEnd(*engine).size(), 8u);
  EXPECT_EQ(engine->counters().steps, 1 + 5);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end the program instead
TEST(Engine, LogitsThatFindNoMemoryAreAnErrorOfTheStep) {
  class Wide final : public model::Backend {
   public:
    const model::ModelInfo& info() const override { return info_; }
    absl::Status ReserveCache(int32_t) override { return absl::OkStatus(); }
    absl::Status CopyBlock(int32_t, int32_t) override { return absl::OkStatus(); }
    absl::Status Forward(std::span<const model::Segment>, std::span<float>, model::Trace*) override {
      return absl::InternalError("must not be called");
    }

   private:
    model::ModelInfo info_ = [] {
      model::ModelInfo info = model::FakeModel({}).info();
      info.vocab_size = 1 << 30;
      return info;
    }();
  };
  auto executor = Executor::Create(std::make_unique<Wide>(), 1 << 20);
  ASSERT_TRUE(executor.ok()) << executor.status();
  BatchPlan plan;
  const std::vector<model::RowDraw> draws(1 << 20);  // 2^52 bytes: more than an address space
  EXPECT_EQ((*executor)->Execute(plan, draws).code(), absl::StatusCode::kResourceExhausted);
}
#endif

TEST(EngineThread, ManySubmittersCancelsAndCallbacks) {
  constexpr int kThreads = 4, kEach = 24;
  const auto requests = MixedRequests(21, kThreads * kEach);
  const auto engine = MakeFakeEngine({.max_sequences = 8}, 24);
  engine->Start();
  std::atomic<int> called{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; i++) {
        const GenerationRequest& request = requests[static_cast<size_t>(t * kEach + i)];
        // Odd requests are cancelled by their own thread: the result is the right one or Cancelled.
        const auto id = engine->Submit(request, [&, i](GenerationResult result) {
          called++;
          if (i % 2 == 0 || result.status.ok()) ExpectSameResult(result, Oracle(request, {}));
        });
        ASSERT_TRUE(id.ok()) << id.status();
        if (i % 2 == 1) engine->Cancel(*id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine->Drain();
  EXPECT_EQ(called, kThreads * kEach);
  EXPECT_EQ(engine->counters().results, kThreads * kEach);
  EXPECT_EQ(engine->counters().kv_blocks_used, 0);
  EXPECT_EQ(engine->Submit(requests[0]).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(engine->WaitResult().has_value());
}

TEST(EngineThread, WaitResultHandsOutEveryResultThenNothing) {
  const auto requests = MixedRequests(5, 20);
  const auto engine = MakeFakeEngine({}, 100);
  engine->Start();
  for (const auto& request : requests) ASSERT_TRUE(engine->Submit(request).ok());
  std::set<SequenceId> seen;
  while (auto result = engine->WaitResult()) {
    ExpectSameResult(*result, Oracle(requests[static_cast<size_t>(result->id)], {}));
    seen.insert(result->id);
  }
  EXPECT_EQ(seen.size(), requests.size());
}

TEST(EngineThread, ACallbackMaySubmitAndTheDestructorCancels) {
  std::atomic<int> ok{0}, cancelled{0};
  Engine* running = nullptr;
  // Outlives the engine, which calls it until its destructor returns.
  const std::function<void(GenerationResult)> again = [&](GenerationResult result) {
    (result.status.ok() ? ok : cancelled)++;
    if (!result.status.ok()) return;
    const auto next = running->Submit(Greedy("again", 3), again);
    EXPECT_TRUE(next.ok() || next.status().code() == absl::StatusCode::kFailedPrecondition);
  };
  {
    const auto engine = MakeFakeEngine({}, 100);
    running = engine.get();
    engine->Start();
    ASSERT_TRUE(engine->Submit(Greedy("first", 3), again).ok());
    while (ok < 5) std::this_thread::yield();
  }
  EXPECT_LE(cancelled, 1);
}

}  // namespace
}  // namespace iha::engine
