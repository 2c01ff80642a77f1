// The scheduler alone: what it plans, as text. "0:[0,64) 1:[70,71)L" = sequence 0 runs positions 0..63, sequence 1
// position 70 with logits; "2>5" = copy block 2 to block 5; "-3" = sequence 3 was preempted.

#include "worker/engine/scheduler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace iha::engine {
namespace {

// Drives a scheduler as the engine does, without a model: every segment with logits gets the token 7.
class Driver {
 public:
  Driver(const SchedulerOptions& options, int32_t kv_blocks, const std::vector<int64_t>& windows = {0})
      : scheduler_(options, kv_blocks, windows) {}

  absl::Status Add(std::vector<int32_t> prompt, int64_t max_new) {
    NewSequence s;
    s.id = SequenceId{next_++};
    s.prompt_tokens = static_cast<int64_t>(prompt.size());
    s.first_logit = s.prompt_tokens - 1;
    s.max_positions = s.prompt_tokens + max_new - 1;
    s.tokens = std::move(prompt);
    left_.push_back(max_new);
    return scheduler_.Add(std::move(s));
  }
  // `length` tokens, the first `common` of which are the same for all values of `own`.
  static std::vector<int32_t> Prompt(int64_t length, int32_t own, int64_t common = 0) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < length; i++) ids.push_back(static_cast<int32_t>(i < common ? i : 10000 * own + i));
    return ids;
  }

  std::string Step() {
    plan_ = scheduler_.Schedule();
    std::string text = Describe();
    Update();
    return text;
  }
  std::string Schedule() {
    plan_ = scheduler_.Schedule();
    return Describe();
  }
  void Update() {
    std::vector<SegmentOutcome> outcomes;
    for (const PlannedSegment& segment : plan_.segments) {
      SegmentOutcome outcome{segment.sequence, false, !segment.logit_rows.empty(), 7};
      outcome.finished = outcome.has_token && --left_[static_cast<size_t>(segment.sequence)] == 0;
      outcomes.push_back(outcome);
    }
    scheduler_.Update(plan_, outcomes);
    EXPECT_TRUE(scheduler_.CheckInvariants().ok()) << scheduler_.CheckInvariants();
  }

  Scheduler& scheduler() { return scheduler_; }
  const BatchPlan& plan() const { return plan_; }

 private:
  std::string Describe() const {
    std::vector<std::string> parts;
    for (const SequenceId id : plan_.preempted) parts.push_back(fmt::format("-{}", static_cast<int64_t>(id)));
    for (const BlockCopy& copy : plan_.copies) parts.push_back(fmt::format("{}>{}", copy.from, copy.to));
    for (const PlannedSegment& s : plan_.segments) {
      parts.push_back(fmt::format("{}:[{},{}){}", static_cast<int64_t>(s.sequence), s.start,
                                  s.start + static_cast<int64_t>(s.tokens.size()), s.logit_rows.empty() ? "" : "L"));
    }
    return fmt::format("{}", fmt::join(parts, " "));
  }

  Scheduler scheduler_;
  BatchPlan plan_;
  int64_t next_ = 0;
  std::vector<int64_t> left_;
};

TEST(Scheduler, NothingToDoIsAnEmptyPlan) {
  Driver d({}, 4);
  EXPECT_EQ(d.Step(), "");
  ASSERT_TRUE(d.Add(Driver::Prompt(3, 1), 1).ok());
  EXPECT_EQ(d.Step(), "0:[0,3)L");
  EXPECT_EQ(d.Step(), "");
  EXPECT_EQ(d.scheduler().pool().used(), 0);
}

TEST(Scheduler, DecodesGoFirstThenPromptsInChunksInOrderOfArrival) {
  Driver d({.max_batch_tokens = 8, .max_sequences = 3, .chunk_tokens = 5}, 40);
  ASSERT_TRUE(d.Add(Driver::Prompt(7, 1), 4).ok());
  ASSERT_TRUE(d.Add(Driver::Prompt(9, 2), 2).ok());
  ASSERT_TRUE(d.Add(Driver::Prompt(3, 3), 2).ok());
  ASSERT_TRUE(d.Add(Driver::Prompt(2, 4), 1).ok());  // no slot until one ends
  EXPECT_EQ(d.Step(), "0:[0,5) 1:[0,3)");
  EXPECT_EQ(d.Step(), "0:[5,7)L 1:[3,8) 2:[0,1)");
  EXPECT_EQ(d.Step(), "0:[7,8)L 1:[8,9)L 2:[1,3)L");
  EXPECT_EQ(d.Step(), "0:[8,9)L 1:[9,10)L 2:[3,4)L");
  EXPECT_EQ(d.Step(), "0:[9,10)L 3:[0,2)L");
  EXPECT_EQ(d.Step(), "");
}

TEST(Scheduler, LogitRowsAreBounded) {
  Driver d({.max_logit_rows = 2}, 40);
  for (int32_t i = 0; i < 3; i++) ASSERT_TRUE(d.Add(Driver::Prompt(4, i), 1).ok());
  EXPECT_EQ(d.Step(), "0:[0,4)L 1:[0,4)L 2:[0,3)");
  EXPECT_EQ(d.Step(), "2:[3,4)L");
  // A scoring sequence wants a row for each position from 1 on.
  NewSequence scoring{SequenceId{9}, Driver::Prompt(6, 9), 2, 1, 6};
  ASSERT_TRUE(d.scheduler().Add(scoring).ok());
  EXPECT_EQ(d.Schedule(), "9:[0,3)L");
  EXPECT_EQ(d.plan().segments[0].logit_rows, (std::vector<int32_t>{1, 2}));
}

TEST(Scheduler, SamplesOfOnePromptWaitForItAndTakeItOver) {
  Driver d({.max_batch_tokens = 100, .chunk_tokens = 100}, 40);
  for (int k = 0; k < 3; k++) ASSERT_TRUE(d.Add(Driver::Prompt(150, 1), 3).ok());
  ASSERT_TRUE(d.Add(Driver::Prompt(10, 2), 1).ok());
  EXPECT_EQ(d.Step(), "0:[0,100)") << "the samples are held";
  EXPECT_EQ(d.Step(), "0:[100,150)L 3:[0,10)L") << "others pass them";
  // Blocks 0 and 1 are shared; block 2, with positions 128 .. 148, is copied for each.
  EXPECT_EQ(d.Step(), "2>3 2>4 0:[150,151)L 1:[149,150)L 2:[149,150)L");
  EXPECT_EQ(d.scheduler().pool().refs(0), 3);
  EXPECT_EQ(d.scheduler().pool().used(), 5);
  EXPECT_EQ(d.scheduler().counters().reused_tokens, 2 * 149);
}

TEST(Scheduler, APromptThatEndsOnABlockSharesAllButItsLastPosition) {
  Driver d({}, 40);
  for (int k = 0; k < 2; k++) ASSERT_TRUE(d.Add(Driver::Prompt(128, 1), 3).ok());
  EXPECT_EQ(d.Step(), "0:[0,128)L");
  // Position 127 must be computed for its logits, and block 1 holds it: copied, not shared.
  EXPECT_EQ(d.Step(), "1>3 0:[128,129)L 1:[127,128)L");
}

TEST(Scheduler, ACommonPrefixIsComputedOnce) {
  Driver d({.max_batch_tokens = 512, .chunk_tokens = 64}, 40);
  for (int32_t i = 1; i <= 3; i++) ASSERT_TRUE(d.Add(Driver::Prompt(140, i, 130), 1).ok());
  EXPECT_EQ(d.Step(), "0:[0,64)");
  EXPECT_EQ(d.Step(), "0:[64,128)");
  EXPECT_EQ(d.Step(), "0:[128,140)L 1:[128,140)L 2:[128,140)L");
  EXPECT_EQ(d.Step(), "");
  ASSERT_TRUE(d.Add(Driver::Prompt(140, 4, 130), 1).ok());
  EXPECT_EQ(d.Step(), "3:[128,140)L") << "kept while nothing runs";
  EXPECT_EQ(d.scheduler().counters().prefix_hit_blocks, 3 * 2);
  EXPECT_EQ(d.scheduler().counters().prefix_lookup_blocks, 4 * 2);
}

TEST(Scheduler, WithoutCacheAndSharingEverythingIsComputed) {
  Driver d({.prefix_cache = false, .share_samples = false}, 40);
  for (int k = 0; k < 2; k++) ASSERT_TRUE(d.Add(Driver::Prompt(100, 1), 1).ok());
  EXPECT_EQ(d.Step(), "0:[0,100)L 1:[0,100)L");
  EXPECT_EQ(d.scheduler().counters().reused_tokens, 0);
}

TEST(Scheduler, TheYoungestIsPreemptedAndComputedAgain) {
  Driver d({.prefix_cache = false}, 3);
  ASSERT_TRUE(d.Add(Driver::Prompt(63, 1), 5).ok());
  ASSERT_TRUE(d.Add(Driver::Prompt(63, 2), 5).ok());
  EXPECT_EQ(d.Step(), "0:[0,63)L 1:[0,63)L");
  EXPECT_EQ(d.Step(), "0:[63,64)L 1:[63,64)L");
  EXPECT_EQ(d.Step(), "-1 0:[64,65)L") << "one block is left for two";
  EXPECT_EQ(d.Step(), "0:[65,66)L") << "no room for 65 positions and a spare block";
  EXPECT_EQ(d.Step(), "0:[66,67)L");
  EXPECT_EQ(d.Step(), "1:[0,65)L") << "prompt and the two tokens drawn so far";
  EXPECT_EQ(d.Step(), "1:[65,66)L");
  EXPECT_EQ(d.Step(), "1:[66,67)L");
  EXPECT_EQ(d.Step(), "");
  EXPECT_EQ(d.scheduler().counters().preemptions, 1);
}

TEST(Scheduler, CachedBlocksGiveWayBeforeSequencesDo) {
  Driver d({}, 3);
  ASSERT_TRUE(d.Add(Driver::Prompt(128, 1), 1).ok());
  EXPECT_EQ(d.Step(), "0:[0,128)L");
  EXPECT_EQ(d.scheduler().pool().idle(), 2);
  ASSERT_TRUE(d.Add(Driver::Prompt(130, 2), 1).ok());
  EXPECT_EQ(d.Step(), "1:[0,130)L");
  EXPECT_EQ(d.scheduler().prefix_cache().evictions(), 2);
  EXPECT_EQ(d.scheduler().counters().preemptions, 0);
}

TEST(Scheduler, ASequenceThatCanNeverFitIsRefused) {
  Driver d({}, 2);
  EXPECT_TRUE(d.Add(Driver::Prompt(100, 1), 29).ok());
  const absl::Status status = d.Add(Driver::Prompt(100, 1), 30);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "KV cache: one sequence of 129 tokens needs 3 blocks of 64 tokens, the budget has 2");
  EXPECT_EQ(d.scheduler().waiting(), 1);
}

TEST(Scheduler, CancelFreesAtOnceOrWhenTheBatchIsBack) {
  Driver d({}, 8);
  for (int32_t i = 0; i < 3; i++) ASSERT_TRUE(d.Add(Driver::Prompt(10, i), 5).ok());
  d.scheduler().Cancel(SequenceId{2});
  EXPECT_EQ(d.Schedule(), "0:[0,10)L 1:[0,10)L");
  d.scheduler().Cancel(SequenceId{0});
  EXPECT_EQ(d.scheduler().pool().used(), 2) << "the batch in flight still refers to its block";
  d.Update();
  EXPECT_EQ(d.scheduler().pool().used(), 1);
  EXPECT_EQ(d.Step(), "1:[10,11)L");
  d.scheduler().Cancel(SequenceId{1});
  d.scheduler().Cancel(SequenceId{1});
  EXPECT_EQ(d.scheduler().pool().used(), 0);
  EXPECT_EQ(d.Step(), "");
}

TEST(Scheduler, AnAbandonedPlanIsDoneAgainWithFewer) {
  Driver d({}, 8);
  for (int32_t i = 0; i < 2; i++) ASSERT_TRUE(d.Add(Driver::Prompt(10, i), 1).ok());
  EXPECT_EQ(d.Schedule(), "0:[0,10)L 1:[0,10)L");
  d.scheduler().Abandon();
  d.scheduler().LimitSequences(1);
  EXPECT_TRUE(d.scheduler().CheckInvariants().ok());
  EXPECT_EQ(d.scheduler().pool().used(), 0);
  EXPECT_EQ(d.Step(), "0:[0,10)L");
  EXPECT_EQ(d.Step(), "1:[0,10)L");
}

// Thousands of samples may wait for one prompt: a step looks at one of them, and at others that may pass.
TEST(Scheduler, WhatIsHeldBackIsLookedUpOnceAStep) {
  Driver d({.chunk_tokens = 100}, 40);
  for (int k = 0; k < 1000; k++) ASSERT_TRUE(d.Add(Driver::Prompt(250, 1), 1).ok());
  for (int k = 0; k < 1000; k++) ASSERT_TRUE(d.Add(Driver::Prompt(240, 1), 1).ok());
  ASSERT_TRUE(d.Add(Driver::Prompt(10, 2), 1).ok());
  EXPECT_EQ(d.Step(), "0:[0,100) 2000:[0,10)L");
  EXPECT_EQ(d.scheduler().counters().reuse_lookups, 4);
  EXPECT_EQ(d.Step(), "0:[100,200)");
  EXPECT_EQ(d.scheduler().counters().reuse_lookups, 4 + 2);
}

// A prefix is found in the cache but not taken over, as a sibling has more: it is the oldest that could be evicted.
TEST(Scheduler, ANodeThatWasFoundIsMarkedBeforeRoomIsMade) {
  Driver d({.chunk_tokens = 1}, 7);
  ASSERT_TRUE(d.Add(Driver::Prompt(300, 1), 20).ok());
  ASSERT_TRUE(d.Add(Driver::Prompt(128, 1), 1).ok());
  std::string step;
  while (step != "1:[127,128)L 0:[127,128)") ASSERT_NE(step = d.Step(), "");
  // Block 1 was computed by both: sequence 1's is in the cache.
  ASSERT_EQ(d.scheduler().prefix_cache().size(), 2);
  ASSERT_EQ(d.scheduler().pool().idle(), 1);
  ASSERT_TRUE(d.Add(Driver::Prompt(64, 2), 1).ok());
  while (step != "0:[299,300)L") ASSERT_NE(step = d.Step(), "");
  ASSERT_EQ(d.scheduler().pool().idle(), 2);
  ASSERT_EQ(d.scheduler().pool().free(), 0);
  ASSERT_TRUE(d.Add(Driver::Prompt(300, 1), 1).ok());
  EXPECT_EQ(d.Step(), "4>6 0:[300,301)L 3:[299,300)L") << "block 6 is that of the other prompt";
  EXPECT_EQ(d.scheduler().prefix_cache().evictions(), 1);
}

// Groups: one that sees all, one with a window of 64. Block numbers: free ones are a stack, lowest first.
TEST(Scheduler, AWindowedGroupLetsGoOfWhatNoRowToComeSees) {
  Driver d({.chunk_tokens = 64, .prefix_cache = false}, 20, {0, 64});
  ASSERT_TRUE(d.Add(Driver::Prompt(200, 1), 60).ok());
  const auto used = [&d] { return d.scheduler().pool().used(); };
  const auto blocks = [&d] { return d.plan().segments.at(0).blocks; };
  EXPECT_EQ(d.Step(), "0:[0,64)");
  EXPECT_EQ(blocks(), (std::vector<int32_t>{0, 4}));
  EXPECT_EQ(used(), 4 + 1) << "all of the prompt in the first group, the step's in the other";
  EXPECT_EQ(d.Step(), "0:[64,128)");
  EXPECT_EQ(blocks(), (std::vector<int32_t>{0, 1, 4, 5}));
  EXPECT_EQ(used(), 4 + 1) << "position 128 sees 65 and later";
  EXPECT_EQ(d.Step(), "0:[128,192)");
  EXPECT_EQ(blocks(), (std::vector<int32_t>{0, 1, 2, model::kNoKvBlock, 5, 4}));
  EXPECT_EQ(d.Step(), "0:[192,200)L");
  EXPECT_EQ(used(), 4 + 2) << "positions 137 to 255";
  for (int64_t position = 200; position < 254; position++) EXPECT_NE(d.Step(), "");
  EXPECT_EQ(used(), 4 + 2) << "position 254 sees 191 and later";
  EXPECT_EQ(d.Step(), "0:[254,255)L");
  EXPECT_EQ(used(), 4 + 1) << "position 255 sees 192 and later";
  while (!d.Step().empty()) EXPECT_LE(used(), 5 + 2);
  EXPECT_EQ(used(), 0);
}

// Window - 1 + step positions in blocks of 64: 64 - 1 + 50 begin anywhere, so they touch three.
TEST(Scheduler, ASequenceNeedsItsWindowsNotItsLength) {
  Driver d({.chunk_tokens = 50}, 35, {0, 64});
  EXPECT_EQ(d.scheduler().MostBlocks(2000), 32 + 3);
  EXPECT_EQ(d.scheduler().MostBlocks(100), 2 + 2) << "shorter than the window and a step";
  ASSERT_TRUE(d.Add(Driver::Prompt(1990, 1), 11).ok());
  int32_t most = 0;
  while (!d.Step().empty()) most = std::max(most, d.scheduler().pool().peak_used());
  EXPECT_EQ(most, 32 + 3);
  EXPECT_EQ(d.scheduler().counters().preemptions, 0);
  const absl::Status status = d.Add(Driver::Prompt(2000, 1), 50);
  EXPECT_EQ(status.message(), "KV cache: one sequence of 2049 tokens needs 36 blocks of 64 tokens, the budget has 35");
}

TEST(Scheduler, ACommonPrefixNeedsItsLastWindowOnly) {
  Driver d({.chunk_tokens = 256}, 40, {0, 64});
  ASSERT_TRUE(d.Add(Driver::Prompt(400, 1, 330), 1).ok());
  ASSERT_TRUE(d.Add(Driver::Prompt(400, 2, 330), 1).ok());
  EXPECT_EQ(d.Step(), "0:[0,256)");
  EXPECT_EQ(d.Step(), "0:[256,400)L") << "of which it needs a part";
  const std::vector<int32_t> first = d.plan().segments.at(0).blocks;
  EXPECT_EQ(d.Step(), "1:[320,400)L") << "five blocks are common";
  const std::vector<int32_t> second = d.plan().segments.at(0).blocks;
  ASSERT_EQ(first.size(), 2u * 7);
  ASSERT_EQ(second.size(), 2u * 7);
  for (size_t i = 0; i < 5; i++) EXPECT_EQ(second[i], first[i]);
  for (size_t i = 0; i < 4; i++) EXPECT_EQ(second[7 + i], model::kNoKvBlock) << i;
  EXPECT_EQ(second[7 + 4], first[7 + 4]) << "positions 257 to 319";
  EXPECT_EQ(d.scheduler().counters().prefix_hit_blocks, 5);
}

// Samples that come when the first has moved on by more than the window.
TEST(Scheduler, ASiblingThatLetGoOfTheWindowSharesNothing) {
  Driver d({.prefix_cache = false}, 40, {0, 64});
  ASSERT_TRUE(d.Add(Driver::Prompt(100, 1), 100).ok());
  EXPECT_EQ(d.Step(), "0:[0,100)L");
  ASSERT_TRUE(d.Add(Driver::Prompt(100, 1), 2).ok());
  // Position 99 sees 36 to 99: block 0 and the first part of block 1.
  EXPECT_EQ(d.Step(), "1>4 3>5 0:[100,101)L 1:[99,100)L");
  while (d.Step() != "0:[190,191)L") {
  }
  ASSERT_TRUE(d.Add(Driver::Prompt(100, 1), 1).ok());
  EXPECT_EQ(d.Step(), "0:[191,192)L 2:[0,100)L") << "block 0 is gone";
}

// The same calls give the same plans: nothing but state decides.
TEST(Scheduler, IsDeterministic) {
  std::vector<std::string> logs[2];
  for (auto& log : logs) {
    Driver d({.max_batch_tokens = 90, .chunk_tokens = 40}, 8);
    for (int32_t i = 0; i < 12; i++) ASSERT_TRUE(d.Add(Driver::Prompt(50 + 17 * i, i % 5, 40), 120 + i).ok());
    for (std::string step = d.Step(); !step.empty(); step = d.Step()) log.push_back(step);
    EXPECT_GT(d.scheduler().counters().preemptions, 0);
  }
  EXPECT_EQ(logs[0], logs[1]);
}

}  // namespace
}  // namespace iha::engine
