// The transition table, and that the database's trigger says the same: states x events, states x states.
#include <gtest/gtest.h>

#include <set>

#include "coordinator/state/job_machine.h"
#include "coordinator/state/shard_machine.h"
#include "coordinator/store/sqlite_store.h"
#include "tests/coordinator/store_fixture.h"

namespace iha::coordinator {
namespace {

using Pair = std::pair<ShardState, ShardState>;

std::set<Pair> MovesOfTable() {
  std::set<Pair> moves;
  for (const ShardState from : kShardStates) {
    for (const ShardEvent event : kShardEvents) {
      if (const auto to = Next(from, event); to.has_value()) moves.insert({from, *to});
    }
  }
  return moves;
}

TEST(ShardMachine, TableIsTheOneOfTheContract) {
  using enum ShardState;
  // docs/contracts/lease.md, "Shard states".
  EXPECT_EQ(MovesOfTable(), (std::set<Pair>{{kPending, kLeased},
                                            {kPending, kPending},
                                            {kPending, kDone},
                                            {kPending, kCancelled},
                                            {kLeased, kLeased},
                                            {kLeased, kDone},
                                            {kLeased, kPending},
                                            {kLeased, kSplit},
                                            {kLeased, kQuarantined},
                                            {kLeased, kCancelled}}));
}

TEST(ShardMachine, FinalStatesTakeNoEvent) {
  for (const ShardState state : kShardStates) {
    int legal = 0;
    for (const ShardEvent event : kShardEvents) legal += Next(state, event).has_value() ? 1 : 0;
    EXPECT_EQ(IsFinal(state), legal == 0) << NameOf(state);
    EXPECT_EQ(ParseShardState(NameOf(state)), state);
  }
  EXPECT_FALSE(ParseShardState("pending").has_value());
}

// Brings a fresh shard to `state` by legal moves only.
ShardRecord ShardIn(StoreFixture& fixture, ShardState state) {
  ShardRecord shard = fixture.FreshShard();
  if (state == ShardState::kPending) return shard;
  const bool leased_first = state != ShardState::kCancelled;
  EXPECT_TRUE(fixture.store()
                  .Write([&](WriteTxn& txn) -> absl::Status {
                    if (!leased_first) return txn.MoveShard(shard, state, absl::UnixEpoch());
                    const Fence fence{.incarnation = 1, .epoch = shard.fence.epoch + 1};
                    if (absl::Status s = txn.GrantShard(shard, fence, {"w"}); !s.ok()) return s;
                    shard.state = ShardState::kLeased;
                    shard.fence = fence;
                    if (state == ShardState::kLeased) return absl::OkStatus();
                    return txn.MoveShard(shard, state, absl::UnixEpoch());
                  })
                  .ok());
  return fixture.Reload(shard.id);
}

TEST(ShardMachine, SqlAcceptsExactlyTheTable) {
  const std::set<Pair> table = MovesOfTable();
  for (const ShardState from : kShardStates) {
    for (const ShardState to : kShardStates) {
      StoreFixture fixture;
      const ShardRecord shard = ShardIn(fixture, from);
      ASSERT_EQ(shard.state, from);
      const absl::Status moved = fixture.store().Write([&](WriteTxn& txn) {
        if (to != ShardState::kLeased) return txn.MoveShard(shard, to, absl::UnixEpoch());
        // A grant raises the epoch; a lease that stays keeps its own.
        Fence fence = shard.fence;
        if (from != ShardState::kLeased) ++fence.epoch;
        return txn.GrantShard(shard, fence, {"w"});
      });
      // A shard that was never granted cannot be DONE by the row's CHECK; the table's late commit needs an old grant.
      const bool never_granted = from == ShardState::kPending && to == ShardState::kDone;
      EXPECT_EQ(moved.ok(), table.contains({from, to}) && !never_granted)
          << NameOf(from) << " -> " << NameOf(to) << ": " << moved;
    }
  }
}

TEST(ShardMachine, SqlAcceptsTheLateCommit) {
  StoreFixture fixture;
  const ShardRecord leased = ShardIn(fixture, ShardState::kLeased);
  ASSERT_TRUE(fixture.store()
                  .Write([&](WriteTxn& txn) { return txn.MoveShard(leased, ShardState::kPending, absl::UnixEpoch()); })
                  .ok());
  const ShardRecord pending = fixture.Reload(leased.id);
  EXPECT_TRUE(fixture.store()
                  .Write([&](WriteTxn& txn) { return txn.MoveShard(pending, ShardState::kDone, absl::UnixEpoch()); })
                  .ok());
}

TEST(ShardMachine, SqlGuardsEpochs) {
  // INV-LEASE-1: an epoch grows by exactly one, and only in the grant.
  for (const int64_t step : {-1, 0, 2}) {
    StoreFixture fixture;
    ShardRecord shard = ShardIn(fixture, ShardState::kLeased);
    ASSERT_TRUE(fixture.store()
                    .Write([&](WriteTxn& txn) { return txn.MoveShard(shard, ShardState::kPending, absl::UnixEpoch()); })
                    .ok());
    shard = fixture.Reload(shard.id);
    const absl::Status granted = fixture.store().Write([&](WriteTxn& txn) {
      return txn.GrantShard(shard, {.incarnation = 1, .epoch = shard.fence.epoch + step}, {"w"});
    });
    EXPECT_EQ(granted.code(), absl::StatusCode::kInternal) << step;
  }
}

TEST(ShardMachine, GuardedUpdateNeedsTheRowAsRead) {
  StoreFixture fixture;
  const ShardRecord before = fixture.FreshShard();
  const ShardRecord leased = ShardIn(fixture, ShardState::kLeased);
  ASSERT_EQ(before.id, leased.id);
  const absl::Status stale = fixture.store().Write(
      [&](WriteTxn& txn) { return txn.MoveShard(before, ShardState::kCancelled, absl::UnixEpoch()); });
  EXPECT_EQ(stale.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(fixture.Reload(before.id).state, ShardState::kLeased);
}

// Folding events must lead where the facts they establish lead.
TEST(JobMachine, FoldEqualsDerive) {
  int compared = 0;
  for (int sequence = 0; sequence < 81; ++sequence) {  // all sequences of 4 events
    JobState state = JobState::kWaitingForModel;
    JobFacts facts;
    for (int i = 0, rest = sequence; i < 4; ++i, rest /= 3) {
      const JobEvent event = kJobEvents[static_cast<size_t>(rest % 3)];
      const std::optional<JobState> next = Next(state, event);
      if (!next.has_value()) break;  // cannot happen in this state
      if (event == JobEvent::kModelBound) facts.model_bound = true;
      if (event == JobEvent::kShardsFinal) facts.open_shards = false;
      if (event == JobEvent::kCancel && facts.open_shards) facts.cancel_requested = true;
      state = *next;
      EXPECT_EQ(state, Derive(facts)) << "sequence " << sequence << " at " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace iha::coordinator
