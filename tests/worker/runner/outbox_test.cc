// The outbox against a coordinator that refuses or knows better: each item hears of itself only.
#include "worker/runner/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "common/errors.h"

namespace iha::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Refuses calls that carry the text "bad"; says that "late" was stored before as "early". Answers nothing before
// `open`, so that the items behind the first one share batches. Thread: the outbox's, and the test's after the outbox
// has gone.
class Coordinator final : public WorkerApi {
 public:
  absl::StatusOr<PutGenerationsReply> PutGenerations(const PutGenerationsRequest& request) override {
    open.WaitForNotification();
    PutGenerationsReply reply;
    for (const Generation& generation : request.generations) {
      if (generation.text == "bad") return InvalidArgument("generations: bad");
      if (generation.text == "late") reply.divergent.push_back(generation.key);
    }
    return reply;
  }
  absl::StatusOr<LookupGenerationsReply> LookupGenerations(const LookupGenerationsRequest& request) override {
    LookupGenerationsReply reply;
    for (const GenKey& key : request.keys) reply.found.emplace_back().key = key;
    for (Generation& generation : reply.found) generation.text = "early";
    return reply;
  }
  absl::StatusOr<CommitItemsReply> CommitItems(const CommitItemsRequest& request) override {
    for (const ItemResult& item : request.items) committed.push_back(item.item_id);
    telemetry.push_back(request.telemetry.has_value() ? request.telemetry->sequence : 0);
    return CommitItemsReply{.outcomes = std::vector<absl::Status>(request.items.size()), .shard_done = false};
  }
  absl::StatusOr<RegisterWorkerReply> RegisterWorker(const RegisterWorkerRequest&) override { return Unused(); }
  absl::StatusOr<OfferModelsReply> OfferModels(const OfferModelsRequest&) override { return Unused(); }
  absl::StatusOr<AcquireLeaseReply> AcquireLease(const AcquireLeaseRequest&) override { return Unused(); }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest&) override { return Unused(); }
  absl::Status ReleaseLease(const ReleaseLeaseRequest&) override { return Unused(); }

  absl::Notification open;
  std::vector<std::string> committed;  // item ids
  std::vector<int64_t> telemetry;      // sequence of each call's, 0 without

 private:
  static absl::Status Unused() { return Internal("the outbox does not call this"); }
};

// One item of a shard of its own, with one sample; graded anew, its id becomes the text it was graded from.
OutboxItem ItemOf(int64_t shard, const std::string& text) {
  Generation generation;
  generation.key.digest = Sha256Of(fmt::format("{}", shard));
  generation.text = text;
  OutboxItem item{.shard = ShardId{shard},
                  .fence = {.incarnation = 1, .epoch = 1},
                  .job = {},
                  .generations = {generation},
                  .result = {},
                  .regrade = {}};
  item.result.item_id = text;
  item.result.samples = {{.generation = generation.key, .grades = {}}};
  item.regrade = [](const std::vector<Generation>& stored, ItemResult& result) {
    EXPECT_EQ(stored.size(), 1u);
    result.item_id = stored.at(0).text;
    return absl::OkStatus();
  };
  return item;
}

// Outcomes by shard, in shard order, once all are delivered.
std::vector<std::pair<int64_t, absl::Status>> Deliver(Coordinator& api, const std::vector<std::string>& texts) {
  RealClock clock;
  EventQueue events(64, 32);
  {
    Outbox outbox(api, {"w"}, 1, clock, events, [] { return false; });
    for (size_t i = 0; i < texts.size(); i++) outbox.Push(ItemOf(static_cast<int64_t>(i) + 1, texts[i]));
    api.open.Notify();
  }
  std::vector<std::pair<int64_t, absl::Status>> outcomes;
  for (std::optional<Event> event = events.TryPop(); event.has_value(); event = events.TryPop()) {
    const auto& item = std::get<ItemCommitted>(*event);
    outcomes.emplace_back(static_cast<int64_t>(item.shard), item.outcome);
  }
  std::sort(outcomes.begin(), outcomes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return outcomes;
}

TEST(Outbox, ARefusedGenerationFailsItsOwnItemOnly) {
  Coordinator api;
  // A batch is of at most 32 items: the bad ones share two of them with good ones.
  std::vector<std::string> texts(60, "good");
  for (const size_t bad : {20, 21, 40}) texts[bad] = "bad";
  const auto outcomes = Deliver(api, texts);
  ASSERT_EQ(outcomes.size(), texts.size());
  for (size_t i = 0; i < texts.size(); i++) {
    const absl::Status& outcome = outcomes[i].second;
    if (texts[i] == "good") {
      EXPECT_TRUE(outcome.ok()) << i << outcome;
    } else {
      EXPECT_EQ(outcome, InvalidArgument("generations: bad"));
    }
  }
  EXPECT_EQ(api.committed.size(), texts.size() - 3);
}

TEST(Outbox, AnItemWhoseTextIsStoredOtherwiseIsGradedAnew) {
  Coordinator api;
  const auto outcomes = Deliver(api, {"good", "late", "fine"});
  ASSERT_EQ(outcomes.size(), 3u);
  for (const auto& [shard, outcome] : outcomes) EXPECT_TRUE(outcome.ok()) << outcome;
  EXPECT_THAT(api.committed, ElementsAre("good", "early", "fine"));
}

TEST(Outbox, OfOneLeasesItemsTheLatestTelemetryGoesAlong) {
  Coordinator api;
  RealClock clock;
  EventQueue events(64, 32);
  {
    Outbox outbox(api, {"w"}, 1, clock, events, [] { return false; });
    const auto push = [&](int64_t sequence) {
      OutboxItem item = ItemOf(1, "good");
      if (sequence > 0) item.telemetry = JobTelemetry{.incarnation = 1, .sequence = sequence, .engine = {}};
      outbox.Push(std::move(item));
    };
    push(0);  // a batch of its own, or the head of the next one: nothing was generated for it
    for (const int64_t sequence : {3, 8, 5, 0}) push(sequence);
    api.open.Notify();
  }
  EXPECT_EQ(api.committed.size(), 5u);
  EXPECT_EQ(*std::max_element(api.telemetry.begin(), api.telemetry.end()), 8);
}

}  // namespace
}  // namespace iha::worker
