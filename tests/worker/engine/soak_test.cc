// ENG-1, ENG-3, ENG-4 and ENG-9 over time: engines with their own thread, requests and cancels from two threads in any
// order, a KV budget that holds little more than one sequence. Every result comes once and is that of the request
// alone; memory does not grow. IHA_EVAL_SOAK_SECONDS (./dev soak): how long, 120 by default.

#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "model/transformer/cpu_backend.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/worker/engine/engine_harness.h"

namespace iha::engine {
namespace {

using std::chrono::steady_clock;

constexpr int32_t kFewestBlocks = 7;  // the longest of MixedRequests: 290 prompt tokens, 101 more

constexpr char kConfig[] = R"({
  "model_type": "llama", "vocab_size": 258, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4,
  "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8, "max_position_embeddings": 512,
  "iha_eval": {"version": 1, "mlp": "gated", "pattern": "per_layer", "attention": [
    {"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
     "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half", "window": null, "qk_norm": "none"},
    {"kind": "local", "rope_pairing": "half", "window": 70, "qk_norm": "none"},
    {"kind": "talking_heads", "rope_pairing": "half", "window": null, "qk_norm": "none"},
    {"kind": "global", "rope_pairing": "half", "qk_norm": "none"}]}})";

// A model, requests and what each gives alone.
struct Subject {
  std::function<std::unique_ptr<model::Backend>(int threads)> open;
  std::vector<GenerationRequest> requests;
  std::vector<GenerationResult> expected;
};

Subject FakeSubject(const model::FakeOptions& fake) {
  Subject subject{[fake](int) { return std::make_unique<model::FakeModel>(fake); }, MixedRequests(31, 64), {}};
  for (const GenerationRequest& request : subject.requests) subject.expected.push_back(Oracle(request, fake));
  return subject;
}

Subject TransformerSubject(const checkpoint::Checkpoint& checkpoint) {
  Subject subject{[&checkpoint](int threads) {
                    auto backend = model::OpenCpuBackend(checkpoint, {.threads = threads, .numerics = {}});
                    EXPECT_TRUE(backend.ok()) << backend.status();
                    return backend.ok() ? *std::move(backend) : nullptr;
                  },
                  MixedRequests(32, 64),
                  {}};
  const auto alone = MakeEngine({4096, 1, 4096, 128, false, false}, 2 * kFewestBlocks, subject.open(1));
  subject.expected = RunTogether(*alone, subject.requests);
  return subject;
}

struct Totals {
  int64_t results = 0, cancelled = 0, preemptions = 0, reused_tokens = 0;
};

// Of one engine: what was asked of it and what came back.
class Book {
 public:
  void Submit(Engine& engine, const Subject& subject, size_t which) {
    const int64_t ticket = submitted_.fetch_add(1);
    const auto id = engine.Submit(subject.requests[which], [this, &subject, which, ticket](GenerationResult result) {
      const std::scoped_lock lock(mu_);
      EXPECT_TRUE(came_.insert(ticket).second) << "a second result";
      if (result.status.code() == absl::StatusCode::kCancelled) {
        ++cancelled_;
        EXPECT_TRUE(may_cancel_) << "nothing was cancelled";
        return;
      }
      ExpectSameResult(result, subject.expected[which]);
    });
    ASSERT_TRUE(id.ok()) << id.status();
  }
  void Cancel(Engine& engine, SequenceId id) {
    may_cancel_ = true;
    engine.Cancel(id);
  }
  void MayCancel() { may_cancel_ = true; }
  int64_t submitted() const { return submitted_; }

  void Close(Totals& totals) {
    const std::scoped_lock lock(mu_);
    EXPECT_EQ(static_cast<int64_t>(came_.size()), submitted_.load());
    totals.results += static_cast<int64_t>(came_.size());
    totals.cancelled += cancelled_;
  }

 private:
  std::atomic<int64_t> submitted_ = 0;
  std::atomic<bool> may_cancel_ = false;
  std::mutex mu_;
  std::set<int64_t> came_;
  int64_t cancelled_ = 0;
};

void Arrive(Engine& engine, Book& book, const Subject& subject, uint64_t seed, int requests) {
  PhiloxStream random(seed);
  for (int i = 0; i < requests; i++) {
    book.Submit(engine, subject, random.NextBelow(subject.requests.size()));
    if (random.NextBelow(8) == 0) {
      book.Cancel(engine, SequenceId{static_cast<int64_t>(random.NextBelow(static_cast<uint64_t>(book.submitted())))});
    }
    if (random.NextBelow(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.NextBelow(3000)));
  }
}

void Round(const Subject& subject, uint64_t seed, Totals& totals) {
  PhiloxStream random(seed);
  const auto below = [&](uint64_t n) { return static_cast<int32_t>(random.NextBelow(n)); };
  const SchedulerOptions scheduler{8 + below(300), 1 + below(20), 1 + below(100),
                                   1 + below(32),  below(2) == 0, below(4) != 0};
  const int32_t kv_blocks = kFewestBlocks + below(20);
  Book book;
  {
    const auto engine = MakeEngine(scheduler, kv_blocks, subject.open(1 + below(2)));
    const auto groups = static_cast<int32_t>(engine->info().kv_windows.size());
    engine->Start();
    std::thread other([&] { Arrive(*engine, book, subject, seed * 2 + 1, 10 + static_cast<int>(seed % 23)); });
    Arrive(*engine, book, subject, seed * 2, 10 + static_cast<int>(seed % 17));
    other.join();
    if (below(6) == 0) {
      book.MayCancel();  // shut down with work outstanding
    } else {
      engine->Drain();
      const EngineCounters counters = engine->counters();
      EXPECT_EQ(counters.kv_blocks_used, 0);
      EXPECT_LE(counters.kv_blocks_peak, kv_blocks * groups);
      totals.preemptions += counters.scheduler.preemptions;
      totals.reused_tokens += counters.scheduler.reused_tokens;
    }
  }
  book.Close(totals);
}

// Bytes allocated and not freed, in all arenas. Resident pages would say less: how fragments settle is chance.
int64_t BytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

TEST(EngineSoak, SameResultsWhateverArrives) {
  const char* value = std::getenv("IHA_EVAL_SOAK_SECONDS");
  const int64_t seconds = value == nullptr ? 120 : std::atoll(value);
  ASSERT_GT(seconds, 0) << "IHA_EVAL_SOAK_SECONDS=" << value;

  const std::string folder = ::testing::TempDir() + "/engine_soak";
  checkpoint::testing::WriteRandomCheckpoint(folder, kConfig);
  const auto checkpoint = checkpoint::Checkpoint::Open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Subject subjects[] = {FakeSubject({}), TransformerSubject(*checkpoint),
                              FakeSubject({.windows = {0, 1, 65, 150}}), FakeSubject({.windows = {70, 3}})};

  Totals totals;
  const auto start = steady_clock::now();
  const auto end = start + std::chrono::seconds(seconds);
  const auto settled = start + std::chrono::seconds(seconds) / 4;
  int64_t in_use = 0;
  uint64_t round = 0;
  while (steady_clock::now() < end && !HasFailure()) {
    SCOPED_TRACE(fmt::format("round {}", round));
    Round(subjects[round % std::size(subjects)], 1000 + round, totals);
    ++round;
    if (in_use == 0 && steady_clock::now() >= settled) in_use = BytesInUse();
  }
  const int64_t growth = in_use == 0 ? 0 : BytesInUse() - in_use;
  std::printf("soak: %llu engines, %lld results, %lld cancelled, %lld preemptions, %lld reused tokens, %+lld bytes\n",
              static_cast<unsigned long long>(round), static_cast<long long>(totals.results),
              static_cast<long long>(totals.cancelled), static_cast<long long>(totals.preemptions),
              static_cast<long long>(totals.reused_tokens), static_cast<long long>(growth));
  EXPECT_GT(totals.results, totals.cancelled);
  EXPECT_GT(totals.cancelled, 0);
  EXPECT_GT(totals.preemptions, 0);
  EXPECT_GT(totals.reused_tokens, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they hold freed memory back, and look for leaks
  // A result or a table leaked in each round would be more in a minute.
  EXPECT_LT(growth, 64 << 10) << "bytes";
#endif
}

}  // namespace
}  // namespace iha::engine
