#include "common/bounded_queue.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common/errors.h"
#include "common/retry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace iha {
namespace {

using ::testing::ElementsAre;

TEST(BoundedQueue, HighAndLowWater) {
  BoundedQueue<int> queue(3, 1);
  for (int i = 0; i < 3; i++) EXPECT_EQ(queue.TryPush(int{i}), PushResult::kOk);
  EXPECT_TRUE(queue.congested());
  EXPECT_EQ(queue.TryPush(9), PushResult::kFull);
  EXPECT_EQ(queue.TryPop(), 0);
  EXPECT_EQ(queue.TryPush(9), PushResult::kFull);  // 2 left, above low
  EXPECT_EQ(queue.TryPop(), 1);
  EXPECT_FALSE(queue.congested());
  EXPECT_EQ(queue.TryPush(3), PushResult::kOk);
  EXPECT_EQ(queue.size(), 2u);
}

TEST(BoundedQueue, RefusedValueStaysWithTheCaller) {
  BoundedQueue<std::unique_ptr<int>> queue(1, 0);
  auto first = std::make_unique<int>(1), second = std::make_unique<int>(2);
  EXPECT_EQ(queue.TryPush(std::move(first)), PushResult::kOk);
  EXPECT_EQ(queue.TryPush(std::move(second)), PushResult::kFull);
  ASSERT_NE(second, nullptr);
  queue.Close();
  EXPECT_EQ(queue.TryPush(std::move(second)), PushResult::kClosed);
  EXPECT_FALSE(queue.WaitPush(std::move(second)));
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(**queue.WaitPop(), 1);
  EXPECT_EQ(queue.WaitPop(), std::nullopt);
}

TEST(BoundedQueue, Batches) {
  BoundedQueue<int> queue(10, 5);
  for (int i = 0; i < 5; i++) queue.TryPush(int{i});
  EXPECT_THAT(queue.WaitPopBatch(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(queue.WaitPopBatch(3), ElementsAre(3, 4));
  queue.Close();
  EXPECT_TRUE(queue.WaitPopBatch(3).empty());
}

TEST(BoundedQueue, DeadlineOnTheInjectedClock) {
  SimulatedClock clock;
  BoundedQueue<int> queue(2, 1);
  std::optional<int> got = 5;
  std::thread consumer([&] { got = queue.WaitPopUntil(clock, absl::Seconds(10)); });
  clock.AwaitWaiters(1);
  clock.Advance(absl::Seconds(10));
  consumer.join();
  EXPECT_EQ(got, std::nullopt);
  std::thread second([&] { got = queue.WaitPopUntil(clock, absl::Seconds(100)); });
  clock.AwaitWaiters(1);
  queue.TryPush(7);
  second.join();
  EXPECT_EQ(got, 7);
}

// Every value arrives once, and each producer's values in its order.
TEST(BoundedQueue, ManyProducersAndConsumers) {
  constexpr int kProducers = 3, kConsumers = 2, kEach = 2000;
  BoundedQueue<std::pair<int, int>> queue(16, 4);
  std::vector<std::vector<std::pair<int, int>>> taken(kConsumers);
  std::vector<std::thread> producers, consumers;
  for (int c = 0; c < kConsumers; c++) {
    consumers.emplace_back([&, c] {
      while (auto value = queue.WaitPop()) taken[c].push_back(*value);
    });
  }
  for (int p = 0; p < kProducers; p++) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kEach; i++) ASSERT_TRUE(queue.WaitPush({p, i}));
    });
  }
  for (std::thread& thread : producers) thread.join();
  queue.Close();
  for (std::thread& thread : consumers) thread.join();
  std::vector<std::vector<int>> seen(kProducers, std::vector<int>(kEach));
  for (const auto& values : taken) {
    std::vector<int> last(kProducers, -1);
    for (const auto& [p, i] : values) {
      EXPECT_GT(i, last[p]);
      last[p] = i;
      seen[p][i]++;
    }
  }
  for (const auto& counts : seen) EXPECT_THAT(counts, ::testing::Each(1));
}

TEST(Retry, BackoffGrowsToItsMaximumWithinTheJitter) {
  const BackoffPolicy policy{
      .initial = absl::Milliseconds(100), .maximum = absl::Seconds(1), .multiplier = 2, .jitter = 0.5};
  const absl::Duration expected[] = {absl::Milliseconds(100), absl::Milliseconds(200), absl::Milliseconds(400),
                                     absl::Milliseconds(800), absl::Seconds(1),        absl::Seconds(1)};
  for (int attempt = 1; attempt <= 6; attempt++) {
    for (uint64_t key = 0; key < 50; key++) {
      const absl::Duration pause = Backoff(policy, attempt, key);
      EXPECT_LE(pause, expected[attempt - 1]);
      EXPECT_GE(pause, expected[attempt - 1] * 0.5);
      EXPECT_EQ(pause, Backoff(policy, attempt, key));
    }
  }
  EXPECT_NE(Backoff(policy, 1, 1), Backoff(policy, 1, 2));
  EXPECT_NE(Backoff(policy, 5, 1), Backoff(policy, 6, 1));
  EXPECT_LE(Backoff(policy, 1'000'000'000, 1), absl::Seconds(1));
}

TEST(Retry, CodesThatAskForTheSameCallAgain) {
  EXPECT_TRUE(IsRetryable(Unavailable("x")));
  EXPECT_TRUE(IsRetryable(DeadlineExceeded("x")));
  EXPECT_TRUE(IsRetryable(ResourceExhausted("x")));
  for (const absl::Status& status : {absl::OkStatus(), Aborted("x"), InvalidArgument("x"), DataLoss("x"),
                                     AlreadyExists("x"), FailedPrecondition("x"), Internal("x")}) {
    EXPECT_FALSE(IsRetryable(status)) << status;
  }
}

}  // namespace
}  // namespace iha
