// SIGINT and SIGTERM as calls: the first one drains, the second one ends the process whatever the first is doing.
#include "common/shutdown.h"

#include <signal.h>
#include <unistd.h>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace iha {
namespace {

// Each runs in a process of its own: the signals and the mask are the whole process's.
TEST(ShutdownDeathTest, TheFirstSignalIsACallAndUnwatchWaitsForIt) {
  const auto body = [] {
    ShutdownSignals signals;
    absl::Notification began;
    std::atomic<int> calls{0};
    signals.Watch([&] {
      began.Notify();
      absl::SleepFor(absl::Milliseconds(200));
      calls++;
    });
    kill(getpid(), SIGTERM);
    began.WaitForNotification();
    signals.Unwatch();
    _exit(calls.load());
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(1), "");
}

TEST(ShutdownDeathTest, ASecondSignalActsWhileTheFirstIsStillBusy) {
  const auto body = [] {
    ShutdownSignals signals;
    signals.Watch([] {
      kill(getpid(), SIGINT);
      absl::SleepFor(absl::Seconds(60));
    });
    kill(getpid(), SIGTERM);
    absl::SleepFor(absl::Seconds(30));
    _exit(1);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(130), "");
}

TEST(ShutdownDeathTest, AfterItsEndASignalEndsTheProcess) {
  const auto body = [] {
    {
      ShutdownSignals signals;
      signals.Watch([] {});
    }
    kill(getpid(), SIGTERM);
    absl::SleepFor(absl::Seconds(30));
    _exit(1);
  };
  EXPECT_EXIT(body(), ::testing::KilledBySignal(SIGTERM), "");
}

// What came before Watch is not lost.
TEST(ShutdownDeathTest, ASignalBeforeWatchIsKept) {
  const auto body = [] {
    ShutdownSignals signals;
    kill(getpid(), SIGINT);
    signals.Watch([] { _exit(7); });
    absl::SleepFor(absl::Seconds(30));
    _exit(1);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace iha
