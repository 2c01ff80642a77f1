// Votes that stop once they are settled: what a worker draws then is the beginning of what it draws without, its
// verdicts are those of all samples, and it draws no sample too many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/file.h"
#include "coordinator/store/invariants.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/runner/observed.h"
#include "tests/worker/runner/world.h"
#include "worker/runner/checkpoint_source.h"

namespace iha::worker {
namespace {

constexpr int32_t kSamples = 9;
constexpr int64_t kQuestions = 40;
constexpr int32_t kTokens = 2;

class SettledVotes : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeModel(dir_.File("models/alpha"));
    std::string rows;
    for (int64_t i = 0; i < kQuestions; i++) {
      rows += fmt::format("{{\"question\": \"item {}\\n####\", \"answer\": \"7\"}}\n", i);
    }
    ASSERT_TRUE(WriteFileAtomic(dir_.File("q.jsonl"), rows).ok());
  }
  // A space and a digit that the checkpoint likes or doesn't: some answers agree, some don't.
  SweepSpec Votes(bool stop) const {
    SweepSpec spec = DemoSweep("alpha");
    SweepEntry& entry = spec.entries[0];
    entry.benchmark.name = "jsonl:" + dir_.File("q.jsonl");
    entry.sampling.temperature = 1.0;
    entry.sampling.samples = kSamples;
    entry.sampling.max_new_tokens = kTokens;
    entry.limit.reset();
    entry.metrics = {"maj@9", "maj@9?rule=first_seen"};
    entry.stop_settled_votes = stop;
    spec.item_order = 7;
    return spec;
  }
  std::vector<ItemResult> Run(World& world, bool stop) { return Run(world, *world.api, Votes(stop)); }
  std::vector<ItemResult> Run(World& world, WorkerApi& api, const SweepSpec& spec) {
    world.Submit(spec);
    CheckpointSource models(RootAt(dir_.File("models")));
    WorkerOptions options = OptionsFor("w");
    options.max_leases = 8;
    Worker worker(api, models, world.clock, options);
    const absl::Status status = worker.Run();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(world.Progress().state, "done");
    return ItemsOf(world);
  }
  static std::vector<ItemResult> ItemsOf(World& world) {
    std::vector<ItemResult> items;
    const absl::Status read = world.store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
      const auto jobs = txn.Jobs(world.sweep);
      if (!jobs.ok()) return jobs.status();
      for (int64_t i = 0; i < kQuestions; i++) {
        auto item = txn.LoadItem(jobs->at(0).id, i);
        if (!item.ok()) return item.status();
        if (item->has_value()) items.push_back(**std::move(item));
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return items;
  }
  // By all that the engine did for the job.
  static int64_t DrawnTokens(World& world) {
    int64_t tokens = 0;
    const absl::Status read = world.store->Read([&](coordinator::ReadTxn& txn) -> absl::Status {
      const auto jobs = txn.Jobs(world.sweep);
      if (!jobs.ok()) return jobs.status();
      const auto records = txn.Telemetry(jobs->at(0).id);
      if (!records.ok()) return records.status();
      for (const coordinator::TelemetryRecord& record : *records) tokens += record.telemetry.engine.generated_tokens;
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return tokens;
  }
  static void ExpectSettled(const ItemResult& stopped, const ItemResult& all) {
    ASSERT_EQ(all.samples.size(), static_cast<size_t>(kSamples));
    ASSERT_LE(stopped.samples.size(), all.samples.size());
    for (size_t s = 0; s < stopped.samples.size(); s++) EXPECT_EQ(stopped.samples[s], all.samples[s]);
    ASSERT_EQ(stopped.values.size(), all.values.size());
    for (size_t m = 0; m < all.values.size(); m++) {
      EXPECT_EQ(stopped.values[m].unscored, Unscored::kScored);
      EXPECT_EQ(stopped.values[m].score, all.values[m].score);
    }
  }

  iha::testing::TempDir dir_;
};

TEST_F(SettledVotes, AreThoseOfAllSamples) {
  World all_world, world;
  const std::vector<ItemResult> all = Run(all_world, false), stopped = Run(world, true);
  ASSERT_EQ(all.size(), static_cast<size_t>(kQuestions));
  ASSERT_EQ(stopped.size(), all.size());
  std::map<size_t, int> lengths;
  int64_t drawn = 0;
  for (size_t i = 0; i < all.size(); i++) {
    ExpectSettled(stopped[i], all[i]);
    lengths[stopped[i].samples.size()]++;
    drawn += static_cast<int64_t>(stopped[i].samples.size());
  }
  EXPECT_GT(lengths.size(), 2u) << "settled at once, later, and not before the end";
  EXPECT_LT(drawn, kQuestions * kSamples);
  EXPECT_EQ(DrawnTokens(world), kTokens * drawn) << "no sample was drawn for nothing";
  EXPECT_TRUE(CheckInvariants(*world.store, &benchmarks::EntryValues)->empty());
}

// Samples that are known from an earlier sweep count as drawn, and those behind the settled vote are left out.
TEST_F(SettledVotes, DoNotDependOnWhatIsKnownAlready) {
  World world, fresh;
  const std::vector<ItemResult> all = Run(world, false), stopped = Run(world, true);
  EXPECT_EQ(stopped, Run(fresh, true));
  ASSERT_EQ(stopped.size(), all.size());
  for (size_t i = 0; i < all.size(); i++) ExpectSettled(stopped[i], all[i]);
}

// Another worker's texts, stored while this one drew, settle votes sooner than its own: the shard is turned back, and
// its next attempt goes by what is stored.
TEST_F(SettledVotes, EarlierTextsThatSettleSoonerAreGoneBy) {
  World world, alone;
  std::ptrdiff_t longer = 0;
  for (const ItemResult& item : Run(alone, true)) longer += item.samples.size() > 5 ? 1 : 0;
  EXPECT_GT(longer, 0);
  Observed api(*world.api, [](int) {});
  api.earlier_text = [](const Generation&) { return "same"; };
  for (const ItemResult& item : Run(world, api, Votes(true))) {
    EXPECT_EQ(item.samples.size(), 5u) << item.index;
    for (const SampleResult& sample : item.samples) EXPECT_EQ(sample.grades.at(0).extracted, "same");
    EXPECT_EQ(item.values.at(0).score, (Score{0, 1}));
  }
  EXPECT_EQ(std::ranges::count(api.releases, ReleaseReason::kDrain), longer);
  EXPECT_EQ(std::ranges::count(api.releases, ReleaseReason::kFailed), 0);
  EXPECT_TRUE(CheckInvariants(*world.store, &benchmarks::EntryValues)->empty());
}

// Or later: greedy samples are all alike, but whatever is drawn another worker had drawn otherwise. That ends, too, and
// nobody is charged.
TEST_F(SettledVotes, EarlierTextsThatKeepThemOpenAreGoneBy) {
  SweepSpec spec = Votes(true);
  spec.entries[0].sampling.temperature = 0.0;
  World world;
  Observed api(*world.api, [](int) {});
  int stored = 0;
  api.earlier_text = [&](const Generation&) { return fmt::format("{}", stored++ % 4 == 0 ? 7 : stored); };
  for (const ItemResult& item : Run(world, api, spec)) EXPECT_GT(item.samples.size(), 5u) << item.index;
  EXPECT_GT(std::ranges::count(api.releases, ReleaseReason::kDrain), kQuestions);
  EXPECT_EQ(std::ranges::count(api.releases, ReleaseReason::kFailed), 0);
  EXPECT_TRUE(coordinator::Charged(world.AttemptsOf("w")).empty());
  EXPECT_TRUE(CheckInvariants(*world.store, &benchmarks::EntryValues)->empty());
}

}  // namespace
}  // namespace iha::worker
