// ENG-1 and ENG-3: the result of a request is the same alone, in any batch, with any chunking, with and without the
// prefix cache and sample sharing, under any budget and order of arrival, with any layer groups. All compared with an
// oracle that runs each request alone, token by token, through a fresh model.

#include "tests/worker/engine/engine_harness.h"

namespace iha::engine {
namespace {

// 290 prompt tokens, 101 more: the longest of MixedRequests needs 7 blocks.
constexpr int32_t kFewestBlocks = 7;
constexpr int32_t kManyBlocks = 2000;

std::vector<GenerationResult> OracleAll(const std::vector<GenerationRequest>& requests,
                                        const model::FakeOptions& fake) {
  std::vector<GenerationResult> results;
  for (const GenerationRequest& request : requests) results.push_back(Oracle(request, fake));
  return results;
}

// Layer groups: one that sees all; one and windows of a few tokens, of a block and a bit, and of several blocks;
// windows alone.
const std::vector<std::vector<int64_t>>& Windows() {
  static const std::vector<std::vector<int64_t>> windows = {{0}, {0, 1, 65, 150}, {70}, {100, 3}};
  return windows;
}

struct Config {
  int32_t max_sequences;
  int32_t chunk_tokens;
  int32_t max_batch_tokens;
  int32_t max_logit_rows;
  bool prefix_cache;
  bool share_samples;
  int32_t kv_blocks;
};

// For the test's name: what differs from one to the next.
std::string NameOf(const ::testing::TestParamInfo<Config>& info) {
  const Config& c = info.param;
  return fmt::format("Sequences{}_Chunk{}_Batch{}_Rows{}_{}_{}_Blocks{}", c.max_sequences, c.chunk_tokens,
                     c.max_batch_tokens, c.max_logit_rows, c.prefix_cache ? "Cache" : "NoCache",
                     c.share_samples ? "Share" : "NoShare", c.kv_blocks);
}
// Its value is in its name; the bytes of a struct are no help.
void PrintTo(const Config&, std::ostream* out) { *out << "as named"; }

class Invariance : public ::testing::TestWithParam<Config> {};

void ExpectTheOracle(const Config& c, const std::vector<int64_t>& windows) {
  static const std::vector<GenerationRequest> requests = MixedRequests(7, 64);
  static std::map<std::vector<int64_t>, std::vector<GenerationResult>> by_windows;
  const model::FakeOptions fake{.windows = windows};
  if (!by_windows.contains(windows)) by_windows[windows] = OracleAll(requests, fake);
  const std::vector<GenerationResult>& expected = by_windows[windows];
  const auto engine = MakeFakeEngine(
      {c.max_batch_tokens, c.max_sequences, c.chunk_tokens, c.max_logit_rows, c.prefix_cache, c.share_samples},
      c.kv_blocks, fake);
  for (const GenerationRequest& request : requests) ASSERT_TRUE(engine->Submit(request).ok());
  const auto results = RunToEnd(*engine);
  ASSERT_EQ(results.size(), requests.size());
  for (const auto& [id, result] : results) {
    SCOPED_TRACE(static_cast<int64_t>(id));
    ExpectSameResult(result, expected[static_cast<size_t>(id)]);
  }
  const EngineCounters counters = engine->counters();
  EXPECT_LE(counters.kv_blocks_peak, c.kv_blocks * static_cast<int32_t>(windows.size()));
  EXPECT_EQ(counters.kv_blocks_used, 0);
  if (windows.size() == 1 && windows[0] == 0 && c.kv_blocks <= 2 * kFewestBlocks && c.max_sequences > 7) {
    EXPECT_GT(counters.scheduler.preemptions, 0) << "the budget was meant to be too small";
  }
  if (c.share_samples && c.max_sequences > 1) {
    EXPECT_GT(counters.scheduler.reused_tokens, 0);
  }
}

TEST_P(Invariance, EqualsTheOracle) {
  for (const std::vector<int64_t>& windows : Windows()) {
    SCOPED_TRACE(::testing::PrintToString(windows));
    ExpectTheOracle(GetParam(), windows);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Axes, Invariance,
    ::testing::Values(Config{1, 4096, 4096, 128, false, false, kManyBlocks},  // alone, whole prompts
                      Config{7, 4096, 4096, 128, false, false, kManyBlocks},  // batches
                      Config{64, 4096, 65536, 128, false, false, kManyBlocks},
                      Config{64, 1, 512, 64, false, false, kManyBlocks},  // chunks
                      Config{7, 3, 512, 64, true, true, kManyBlocks}, Config{64, 7, 64, 64, true, true, kManyBlocks},
                      Config{64, 64, 512, 128, true, true, kManyBlocks},
                      Config{64, 4096, 65536, 128, true, true, kManyBlocks},
                      Config{64, 256, 512, 1, true, true, kManyBlocks},    // one row of logits a step
                      Config{64, 64, 512, 128, false, true, kManyBlocks},  // cache and sharing apart
                      Config{64, 64, 512, 128, true, false, kManyBlocks},
                      Config{64, 64, 512, 128, true, true, kFewestBlocks},  // preemption
                      Config{64, 7, 40, 16, false, true, kFewestBlocks + 1},
                      Config{64, 64, 512, 128, true, true, 2 * kFewestBlocks},
                      Config{7, 64, 512, 128, true, true, 3 * kFewestBlocks}),
    NameOf);

TEST(InvarianceSoak, RandomArrivalsAndCancels) {
  // Seeds are few here; the long soak repeats this with many.
  for (uint64_t seed = 1; seed <= 6; seed++) {
    SCOPED_TRACE(seed);
    PhiloxStream random(seed);
    const std::vector<GenerationRequest> requests = MixedRequests(seed, 48);
    const model::FakeOptions fake{.windows = Windows()[seed % Windows().size()]};
    const auto engine =
        MakeFakeEngine({static_cast<int32_t>(8 + random.NextBelow(300)), static_cast<int32_t>(1 + random.NextBelow(20)),
                        static_cast<int32_t>(1 + random.NextBelow(100)), 32, seed % 2 == 0, true},
                       static_cast<int32_t>(kFewestBlocks + random.NextBelow(20)), fake);
    std::set<SequenceId> cancelled;
    std::map<SequenceId, GenerationResult> results;
    size_t next = 0;
    bool busy = true;
    while (busy || next < requests.size()) {
      for (uint64_t n = random.NextBelow(3); n > 0 && next < requests.size(); n--) {
        ASSERT_TRUE(engine->Submit(requests[next++]).ok());
      }
      if (next > 0 && random.NextBelow(12) == 0) {
        const SequenceId victim{static_cast<int64_t>(random.NextBelow(next))};
        if (!results.contains(victim)) cancelled.insert(victim);
        engine->Cancel(victim);
      }
      const auto worked = engine->Step();
      ASSERT_TRUE(worked.ok()) << worked.status();
      busy = *worked;
      ASSERT_TRUE(engine->CheckInvariants().ok()) << engine->CheckInvariants();
      while (auto result = engine->TryPopResult()) results.emplace(result->id, *std::move(result));
    }
    ASSERT_EQ(results.size(), requests.size());
    for (const auto& [id, result] : results) {
      if (cancelled.contains(id)) {
        EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
      } else {
        ExpectSameResult(result, Oracle(requests[static_cast<size_t>(id)], fake));
      }
    }
  }
}

TEST(InvarianceOfSamples, SampleIndexAndSeedGiveTheStreamNotTheOrder) {
  GenerationRequest request;
  request.prompt = Bytes("one prompt");
  request.sampling = {1.0, 1.0, 0, 1, 1234, 40};
  std::set<std::vector<int32_t>> seen;
  for (int32_t k = 0; k < 8; k++) {
    request.sample_index = k;
    const auto engine = MakeFakeEngine({}, 16);
    ASSERT_TRUE(engine->Submit(request).ok());
    seen.insert(RunToEnd(*engine).begin()->second.tokens);
  }
  EXPECT_EQ(seen.size(), 8u);
}

}  // namespace
}  // namespace iha::engine
