// A sweep with an item_order: shards of one item, granted in the order that a sequential gate looks at them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "common/rng.h"
#include "coordinator/planner/planner.h"
#include "tests/coordinator/sim_world.h"

namespace iha::coordinator {
namespace {

constexpr uint64_t kSeed = 7;
constexpr int64_t kLong = 10, kShort = 5;

SweepSpec TwoEntries() {
  SweepSpec spec = SimSweep(kLong, 1, 4);
  spec.entries.push_back(spec.entries.front());
  spec.entries[1].benchmark.options["items"] = fmt::format("{}", kShort);
  spec.item_order = kSeed;
  return spec;
}

using Item = std::pair<int32_t, int64_t>;  // entry, index

TEST(ItemOrder, ItemsAreGrantedOneByOneInTheSeedsOrder) {
  SimWorld world({.name = "order", .on_disk = false}, "");
  ASSERT_TRUE(world.Open().ok());
  Coordinator& coordinator = world.coordinator();
  ASSERT_TRUE(coordinator.Submit(TwoEntries()).ok());
  ASSERT_TRUE(coordinator
                  .RegisterWorker(
                      {.request_id = {"h"}, .worker = {"w"}, .incarnation = 1, .numerics_ids = {}, .description = ""})
                  .ok());
  ASSERT_TRUE(
      coordinator
          .OfferModels({.request_id = {"o"}, .worker = {"w"}, .offers = {{"m", SimWeights("A"), SimTokenizer(), 1024}}})
          .ok());
  std::vector<Item> granted;
  for (int64_t i = 0; i < kLong + kShort; ++i) {
    const auto reply = coordinator.AcquireLease({.request_id = {fmt::format("r{}", i)},
                                                 .worker = {"w"},
                                                 .incarnation = 1,
                                                 .models = {"m"},
                                                 .numerics_ids = {SimSweep(1, 1, 1).numerics.Id()}});
    ASSERT_TRUE(reply.ok() && reply->grant.has_value());
    ASSERT_EQ(reply->grant->range.size(), 1);
    granted.push_back({reply->grant->job.entry_index, reply->grant->range.begin});
  }
  // The shorter entry has a turn with every second item of the longer one.
  const std::vector<int64_t> longer = SeededOrder(kSeed, kLong), shorter = SeededOrder(kSeed, kShort);
  std::vector<Item> expected;
  for (size_t step = 0; step < longer.size(); ++step) {
    expected.push_back({0, longer[step]});
    if (step % 2 == 1) expected.push_back({1, shorter[step / 2]});
  }
  EXPECT_EQ(granted, expected);
}

TEST(ItemOrder, MakesAnotherSweepOfTheSameWork) {
  SweepSpec by_index = TwoEntries();
  by_index.item_order.reset();
  SweepSpec other = TwoEntries();
  other.item_order = kSeed + 1;
  EXPECT_EQ((std::set<SweepId>{IdOf(by_index), IdOf(TwoEntries()), IdOf(other)}).size(), 3u);
  const auto plan = Plan(TwoEntries(), SimOpener()), plain = Plan(by_index, SimOpener());
  ASSERT_TRUE(plan.ok() && plain.ok());
  EXPECT_EQ(plan->jobs[0].spec.prompt_digest, plain->jobs[0].spec.prompt_digest);
  EXPECT_EQ(plan->jobs[0].shards.size(), static_cast<size_t>(kLong));
  EXPECT_EQ(plain->jobs[0].shards.size(), 3u);
}

// The first t of a seeded order are a uniform sample: every item comes first about equally often.
TEST(ItemOrder, EveryItemIsFirstEquallyOften) {
  std::vector<int> first(10, 0);
  constexpr int kSeeds = 10000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) ++first[static_cast<size_t>(SeededOrder(seed, 10).front())];
  for (const int count : first) EXPECT_NEAR(count, kSeeds / 10, 4 * 30);
}

}  // namespace
}  // namespace iha::coordinator
