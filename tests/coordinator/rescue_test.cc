// RescuePolicy and LeaseBook as tables.
#include <gtest/gtest.h>

#include "coordinator/lease/lease_book.h"
#include "coordinator/rescue/rescue_policy.h"

namespace iha::coordinator {
namespace {

struct Row {
  const char* what;
  RescueFacts facts;
  RescueAction action;
  bool charge;
  bool blame;
};

RescueFacts Facts(AttemptEnd end, int charged, int losers, int64_t missing) {
  RescueFacts facts;
  facts.end = end;
  facts.charged = charged;
  facts.losing_workers = losers;
  facts.missing_items = missing;
  return facts;
}

RescueFacts With(RescueFacts facts, void (*change)(RescueFacts&)) {
  change(facts);
  return facts;
}

TEST(RescuePolicy, Table) {
  using enum AttemptEnd;
  const Row rows[] = {
      {"first loss", Facts(kLost, 0, 1, 4), RescueAction::kRetry, true, false},
      {"second loss, same worker", Facts(kLost, 1, 1, 4), RescueAction::kRetry, true, false},
      {"attempts used up, many items", Facts(kLost, 2, 1, 4), RescueAction::kSplit, true, false},
      {"attempts used up, one item", Facts(kLost, 2, 1, 1), RescueAction::kQuarantine, true, false},
      {"lost on two workers", Facts(kLost, 1, 2, 4), RescueAction::kSplit, true, false},
      {"lost on two workers, one item", Facts(kLost, 1, 2, 1), RescueAction::kQuarantine, true, false},
      {"failed after losses on two workers", Facts(kFailed, 1, 2, 4), RescueAction::kRetry, true, false},
      {"failed once", Facts(kFailed, 0, 0, 4), RescueAction::kRetry, true, false},
      {"failed for the last time", Facts(kFailed, 2, 0, 1), RescueAction::kQuarantine, true, false},
      {"bad data, one item", With(Facts(kFailed, 0, 0, 1), [](RescueFacts& f) { f.permanent = true; }),
       RescueAction::kQuarantine, true, false},
      {"bad data among sound items", With(Facts(kFailed, 0, 0, 4), [](RescueFacts& f) { f.permanent = true; }),
       RescueAction::kSplit, true, false},
      {"a lost lease is never permanent", With(Facts(kLost, 0, 1, 4), [](RescueFacts& f) { f.permanent = true; }),
       RescueAction::kRetry, true, false},
      {"drained", Facts(kDrained, 2, 1, 4), RescueAction::kRetry, false, false},
      {"cancelled", With(Facts(kLost, 2, 2, 4), [](RescueFacts& f) { f.job_cancelled = true; }), RescueAction::kCancel,
       false, false},
      {"third shard failing on one worker",
       With(Facts(kFailed, 2, 0, 4), [](RescueFacts& f) { f.worker_failed_shards = 3; }), RescueAction::kRetry, true,
       true},
      {"the same, but failures elsewhere count",
       With(Facts(kFailed, 2, 0, 4),
            [](RescueFacts& f) {
              f.worker_failed_shards = 3;
              f.charged_elsewhere = 3;
            }),
       RescueAction::kSplit, true, true},
      {"the same, refunds used up",
       With(Facts(kFailed, 2, 0, 4),
            [](RescueFacts& f) {
              f.worker_failed_shards = 3;
              f.refunds = 3;
            }),
       RescueAction::kSplit, true, true},
      {"two shards failing are no pattern yet",
       With(Facts(kFailed, 0, 0, 4), [](RescueFacts& f) { f.worker_failed_shards = 2; }), RescueAction::kRetry, true,
       false},
  };
  for (const Row& row : rows) {
    const RescueDecision decision = Decide(row.facts, {});
    EXPECT_EQ(decision.action, row.action) << row.what << ": " << NameOf(decision.action);
    EXPECT_EQ(decision.charge, row.charge) << row.what;
    EXPECT_EQ(decision.blame_worker, row.blame) << row.what;
  }
}

TEST(RescuePolicy, BackoffDoublesIsJitteredAndBounded) {
  const RescueConfig config{.backoff_base = absl::Seconds(1), .backoff_max = absl::Seconds(10)};
  RescueFacts facts = Facts(AttemptEnd::kLost, 0, 1, 4);
  facts.max_attempts = 100;
  for (int charged = 0; charged < 20; ++charged) {
    facts.charged = charged;
    const absl::Duration whole = std::min(absl::Seconds(1) * (1 << std::min(charged, 10)), absl::Seconds(10));
    for (const uint64_t jitter : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}) {
      facts.jitter = jitter;
      const absl::Duration backoff = Decide(facts, config).backoff;
      EXPECT_GE(backoff, whole / 2) << charged;
      EXPECT_LE(backoff, whole) << charged;
    }
    facts.jitter = 0;
    const absl::Duration low = Decide(facts, config).backoff;
    facts.jitter = ~uint64_t{0};
    EXPECT_GT(Decide(facts, config).backoff, low);
  }
  facts.end = AttemptEnd::kDrained;
  EXPECT_EQ(Decide(facts, config).backoff, absl::ZeroDuration());
}

Lease LeaseOf(int64_t shard, const std::string& worker, absl::Duration deadline) {
  Lease lease;
  lease.shard = ShardId{shard};
  lease.job.digest = Sha256Of(worker);
  lease.worker = {worker};
  lease.fence = {.incarnation = 1, .epoch = shard};
  lease.deadline = deadline;
  return lease;
}

TEST(LeaseBook, ExpiresAtTheDeadlineAndNotBefore) {
  LeaseBook book({});
  book.Start(LeaseOf(1, "w", absl::Seconds(30)));
  book.Start(LeaseOf(2, "w", absl::Seconds(40)));
  EXPECT_TRUE(book.ExpiredAt(absl::Seconds(30) - absl::Nanoseconds(1)).empty());
  ASSERT_EQ(book.ExpiredAt(absl::Seconds(30)).size(), 1u);
  EXPECT_EQ(book.ExpiredAt(absl::Seconds(30))[0].shard, ShardId{1});
  EXPECT_EQ(book.ExpiredAt(absl::Seconds(40)).size(), 2u);
}

TEST(LeaseBook, RenewsOnlyTheOwnersCurrentFence) {
  LeaseBook book({});
  const Lease lease = LeaseOf(1, "w", absl::Seconds(30));
  book.Start(lease);
  EXPECT_FALSE(book.Renew(lease.shard, {.incarnation = 1, .epoch = 9}, {"w"}, absl::Seconds(10)));
  EXPECT_FALSE(book.Renew(lease.shard, {.incarnation = 2, .epoch = 1}, {"w"}, absl::Seconds(10)));
  EXPECT_FALSE(book.Renew(lease.shard, lease.fence, {"other"}, absl::Seconds(10)));
  EXPECT_FALSE(book.Renew(ShardId{7}, lease.fence, {"w"}, absl::Seconds(10)));
  EXPECT_EQ(book.Find(lease.shard)->deadline, absl::Seconds(30));
  EXPECT_TRUE(book.Renew(lease.shard, lease.fence, {"w"}, absl::Seconds(10)));
  EXPECT_EQ(book.Find(lease.shard)->deadline, absl::Seconds(40));
}

TEST(LeaseBook, EndNeedsTheFence) {
  LeaseBook book({});
  const Lease lease = LeaseOf(1, "w", absl::Seconds(30));
  book.Start(lease);
  book.End(lease.shard, {.incarnation = 1, .epoch = 0});
  EXPECT_EQ(book.size(), 1u);
  book.End(lease.shard, lease.fence);
  EXPECT_EQ(book.size(), 0u);
}

TEST(LeaseBook, CancelledLeasesAreNotExtended) {
  LeaseBook book({});
  const Lease lease = LeaseOf(1, "w", absl::Seconds(30));
  book.Start(lease);
  EXPECT_EQ(book.Cancel(lease.job), 1);
  EXPECT_TRUE(book.Renew(lease.shard, lease.fence, {"w"}, absl::Seconds(10)));
  EXPECT_EQ(book.Find(lease.shard)->deadline, absl::Seconds(30));
}

// The cancel's thread may reach the book before the thread that committed the grant does.
TEST(LeaseBook, ALeaseEnteredAfterItsJobsCancelIsCancelled) {
  LeaseBook book({});
  const Lease lease = LeaseOf(1, "w", absl::Seconds(30));
  EXPECT_EQ(book.Cancel(lease.job), 0);
  book.Start(lease);
  EXPECT_TRUE(book.Find(lease.shard)->cancelled);
  const Lease other = LeaseOf(2, "v", absl::Seconds(30));
  book.Start(other);
  EXPECT_FALSE(book.Find(other.shard)->cancelled);
  Lease restored = LeaseOf(3, "u", {});
  restored.cancelled = true;
  book.Restore(restored, absl::ZeroDuration());
  restored.cancelled = false;
  book.Start(restored);  // its grant was asked for once more after a restart
  EXPECT_TRUE(book.Find(restored.shard)->cancelled);
}

TEST(LeaseBook, RestoredLeasesGetAFullTtlAndComeApart) {
  const LeaseConfig config;
  LeaseBook book(config);
  for (int64_t shard = 1; shard <= 100; ++shard) book.Restore(LeaseOf(shard, "w", {}), absl::Seconds(5));
  int early = 0;
  for (int64_t shard = 1; shard <= 100; ++shard) {
    const absl::Duration deadline = book.Find(ShardId{shard})->deadline;
    EXPECT_GE(deadline, absl::Seconds(5) + config.ttl);
    EXPECT_LT(deadline, absl::Seconds(5) + config.ttl + config.restart_spread);
    if (deadline < absl::Seconds(5) + config.ttl + config.restart_spread / 2) ++early;
  }
  // Evenly spread: about half of them in the first half.
  EXPECT_GE(early, 40);
  EXPECT_LE(early, 60);
}

}  // namespace
}  // namespace iha::coordinator
