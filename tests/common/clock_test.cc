#include "common/clock.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace iha {
namespace {

TEST(SimulatedClock, StandsStillUntilAdvanced) {
  SimulatedClock clock(absl::FromUnixSeconds(1000));
  EXPECT_EQ(clock.Elapsed(), absl::ZeroDuration());
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(1000));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Elapsed(), absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(1005));
}

TEST(SimulatedClock, WakesSleepersWhoseTimeHasCome) {
  SimulatedClock clock;
  std::atomic<int> awake{0};
  std::thread early([&] {
    clock.SleepUntil(absl::Seconds(1));
    awake++;
  });
  std::thread late([&] {
    clock.SleepUntil(absl::Seconds(10));
    awake++;
  });
  clock.AwaitWaiters(2);
  clock.Advance(absl::Milliseconds(999));
  EXPECT_EQ(awake, 0);
  clock.Advance(absl::Milliseconds(1));
  early.join();
  EXPECT_EQ(awake, 1);
  clock.Advance(absl::Seconds(9));
  late.join();
  EXPECT_EQ(awake, 2);
}

TEST(SimulatedClock, ConditionWinsBeforeTheDeadline) {
  SimulatedClock clock;
  absl::Mutex mu;
  bool ready = false, result = false;
  std::thread waiter([&] {
    const absl::MutexLock lock(&mu);
    result = clock.AwaitUntil(
        &mu, [&] { return ready; }, absl::Seconds(1));
  });
  clock.AwaitWaiters(1);
  {
    const absl::MutexLock lock(&mu);
    ready = true;
  }
  waiter.join();
  EXPECT_TRUE(result);
  const absl::MutexLock lock(&mu);
  EXPECT_TRUE(clock.AwaitUntil(
      &mu, [] { return true; }, absl::ZeroDuration()));
  EXPECT_FALSE(clock.AwaitUntil(
      &mu, [] { return false; }, absl::ZeroDuration()));
}

// Waiters come and go, each with a mutex of its own on its stack, while time advances under them.
TEST(SimulatedClock, RacesOfLeavingAndAdvancing) {
  SimulatedClock clock;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> waits{0};
  std::vector<std::thread> waiters;
  for (int t = 0; t < 3; t++) {
    waiters.emplace_back([&] {
      while (!stop) {
        clock.SleepUntil(clock.Elapsed() + absl::Milliseconds(1));
        waits++;
      }
    });
  }
  while (waits < 3000) clock.Advance(absl::Milliseconds(1));
  stop = true;
  // Each sleeper wakes at its deadline, at most 1 ms ahead of the time it saw; advance until all have left.
  std::atomic<bool> joined{false};
  std::thread ticker([&] {
    while (!joined) clock.Advance(absl::Milliseconds(1));
  });
  for (std::thread& waiter : waiters) waiter.join();
  joined = true;
  ticker.join();
  EXPECT_GE(waits, 3000);
}

TEST(RealClock, MonotonicAndHonoursDeadlines) {
  RealClock clock;
  const absl::Duration start = clock.Elapsed();
  EXPECT_GT(clock.Now(), absl::FromUnixSeconds(1600000000));
  absl::Mutex mu;
  const absl::MutexLock lock(&mu);
  EXPECT_FALSE(clock.AwaitUntil(
      &mu, [] { return false; }, start + absl::Milliseconds(2)));
  EXPECT_GE(clock.Elapsed() - start, absl::Milliseconds(2));
  EXPECT_TRUE(clock.AwaitUntil(
      &mu, [] { return true; }, absl::InfiniteDuration()));
}

}  // namespace
}  // namespace iha
