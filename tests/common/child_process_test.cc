#include "common/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "common/line_helper.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;

// Generous: it ends a hung test; no check depends on it.
constexpr absl::Duration kLong = absl::Seconds(60);

ChildOptions Shell(const std::string& script) {
  ChildOptions options;
  options.argv = {"sh", "-c", script};
  return options;
}

absl::StatusOr<RunResult> RunShell(const std::string& script, std::string_view input = "", RunLimits limits = {}) {
  if (limits.timeout == absl::InfiniteDuration()) limits.timeout = kLong;
  return RunChild(Shell(script), input, limits);
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(RunChild, GivesOutputsAndExit) {
  const absl::StatusOr<RunResult> result = RunShell("cat; echo problem >&2; exit 3", "in\0put" + std::string("!"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->out, "in!");
  EXPECT_EQ(result->err, "problem\n");
  EXPECT_EQ(result->exit.ToString(), "exit code 3");
  EXPECT_FALSE(result->exit.ok() || result->timed_out || result->out_truncated || result->err_truncated);
  EXPECT_EQ(RunShell("kill -TERM $$")->exit.signal, SIGTERM);
}

// No shell: arguments arrive as they are; the environment is what was given and nothing of ours.
TEST(RunChild, PassesArgumentsEnvironmentAndFolder) {
  const testing::TempDir dir;
  ChildOptions options;
  options.argv = {"printf", "%s|", "a b", "$HOME", "'x;y'", ""};
  EXPECT_EQ(RunChild(options, "", {})->out, "a b|$HOME|'x;y'||");
  setenv("IHA_TEST_LEAK", "1", 1);
  options.argv = {"env"};
  options.env = {"PATH=/usr/bin:/bin", "ONLY=this"};
  options.cwd = dir.path();
  EXPECT_EQ(RunChild(options, "", {})->out, "PATH=/usr/bin:/bin\nONLY=this\n");
  options.argv = {"pwd", "-P"};
  EXPECT_EQ(RunChild(options, "", {})->out, std::filesystem::canonical(dir.path()).string() + "\n");
  unsetenv("IHA_TEST_LEAK");
}

TEST(RunChild, LargeInputAndOutputAtOnce) {
  const std::string input(5'000'000, 'q');
  const absl::StatusOr<RunResult> result = RunShell("cat", input, {.stdout_bytes = 10'000'000});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->out == input);
}

TEST(RunChild, CapsOutputs) {
  const absl::StatusOr<RunResult> result = RunShell("head -c 3000000 /dev/zero; head -c 200000 /dev/zero >&2; exit 5",
                                                    "", {.stdout_bytes = 1000, .stderr_bytes = 10});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out.size(), 1000u);
  EXPECT_EQ(result->err.size(), 10u);
  EXPECT_TRUE(result->out_truncated && result->err_truncated);
  EXPECT_EQ(result->exit.code, 5);  // it was not stopped for talking
  EXPECT_FALSE(RunShell("printf 12345", "", {.stdout_bytes = 5})->out_truncated);
}

// A child that never reads or has gone must not kill us with SIGPIPE.
TEST(RunChild, SurvivesAChildThatDoesNotRead) {
  const std::string input(1'000'000, 'x');
  EXPECT_TRUE(RunShell("exec 0<&-; echo done", input)->exit.ok());
  EXPECT_TRUE(RunShell("true", input)->exit.ok());
}

bool IsGone(pid_t pid) {
  // A zombie adopted by a parent that does not reap is as good as gone.
  const absl::StatusOr<std::string> status = ReadFile("/proc/" + std::to_string(pid) + "/status");
  return !status.ok() || status->find("State:\tZ") != std::string::npos;
}

void AwaitGone(pid_t pid) {
  const absl::Time end = absl::Now() + kLong;
  while (!IsGone(pid) && absl::Now() < end) std::this_thread::yield();
  EXPECT_TRUE(IsGone(pid)) << pid;
}

TEST(RunChild, TimeoutKillsGrandchildren) {
  const absl::StatusOr<RunResult> result =
      RunShell("sleep 1000 & echo $!; sleep 1000", "", {.timeout = absl::Milliseconds(300)});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->exit.signal, SIGKILL);
  AwaitGone(std::stoi(result->out));
}

TEST(RunChild, FloodDoesNotOutrunTheDeadline) {
  EXPECT_TRUE(RunShell("yes", "", {.timeout = absl::Milliseconds(200)})->timed_out);
}

// A background process that keeps the pipes open does not keep us waiting, and is killed.
TEST(RunChild, EndsWithTheChildNotWithItsPipes) {
  const absl::StatusOr<RunResult> result = RunShell("sleep 1000 & echo $!");
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->timed_out);
  EXPECT_TRUE(result->exit.ok());
  AwaitGone(std::stoi(result->out));
}

// Whatever is open here, close-on-exec or not, the child sees 0, 1, 2 only (and ls its own folder handle, 3).
TEST(RunChild, LeaksNoDescriptor) {
  const UniqueFd low(open("/dev/null", O_RDONLY));
  const UniqueFd high(fcntl(low.get(), F_DUPFD, 900));
  ASSERT_TRUE(high.valid());
  EXPECT_EQ(RunShell("ls /proc/self/fd")->out, "0\n1\n2\n3\n");
  ChildOptions options = Shell("ls /proc/self/fd");
  options.keep_fds = {high.get()};
  EXPECT_EQ(RunChild(options, "", {})->out, "0\n1\n2\n3\n" + std::to_string(high.get()) + "\n");
}

TEST(RunChild, LeavesNothingOpenHere) {
  const auto open_now = [] {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count++;
    return count;
  };
  const int before = open_now();
  for (int i = 0; i < 3; i++) ASSERT_TRUE(RunShell("true").ok());
  ChildOptions missing;
  missing.argv = {"/no/such/program"};
  EXPECT_FALSE(RunChild(missing, "", {}).ok());
  EXPECT_EQ(open_now(), before);
}

TEST(RunChild, ChildHasDefaultSignals) {
  signal(SIGPIPE, SIG_IGN);
  sigset_t block, old;
  sigemptyset(&block);
  sigaddset(&block, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &block, &old);
  const absl::StatusOr<RunResult> result = RunShell("grep -E 'SigBlk|SigIgn' /proc/self/status");
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(result->out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(RunChild, AppliesLimits) {
  ChildOptions options = Shell("ulimit -n");
  options.limits = {{.resource = RLIMIT_NOFILE, .value = 17}};
  EXPECT_EQ(RunChild(options, "", {})->out, "17\n");
}

TEST(RunChild, SaysWhatCannotBeStarted) {
  const testing::TempDir dir;
  const auto start = [](const ChildOptions& options) { return RunChild(options, "", {}).status(); };
  ChildOptions options;
  EXPECT_EQ(start(options).code(), absl::StatusCode::kInvalidArgument);
  options.argv = {"iha-no-such-program"};
  EXPECT_EQ(start(options).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(start(options)), HasSubstr("iha-no-such-program: no such program in PATH="));
  options.argv = {"/no/such/program"};
  EXPECT_EQ(Message(start(options)), "/no/such/program: start: No such file or directory");
  ASSERT_TRUE(WriteFileAtomic(dir.File("text"), "hello").ok());
  options.argv = {dir.File("text")};
  EXPECT_EQ(start(options).code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::permissions(dir.File("text"), std::filesystem::perms::owner_all);
  EXPECT_THAT(Message(start(options)), HasSubstr("is not a program"));
  options.argv = {"true"};
  options.cwd = dir.File("nowhere");
  EXPECT_THAT(Message(start(options)), HasSubstr(dir.File("nowhere")));
  options.cwd.clear();
  options.keep_fds = {987};
  EXPECT_THAT(Message(start(options)), HasSubstr("keep_fds"));
  options.argv = {std::string("a\0b", 3)};
  EXPECT_EQ(start(options).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ChildProcess, RunsBesideUsAndIsKilledWithItsOwner) {
  pid_t pid = 0;
  {
    ChildOptions options;
    options.argv = {"sleep", "1000"};
    absl::StatusOr<ChildProcess> child = ChildProcess::Spawn(options);
    ASSERT_TRUE(child.ok());
    pid = child->pid();
    EXPECT_EQ(child->Wait(absl::ZeroDuration()), std::nullopt);
    ChildProcess moved = *std::move(child);
    EXPECT_FALSE(IsGone(pid));
  }
  EXPECT_TRUE(IsGone(pid));
  absl::StatusOr<ChildProcess> stopped = ChildProcess::Spawn(Shell("sleep 1000"));
  stopped->Kill(SIGTERM);
  EXPECT_EQ(stopped->Wait(kLong)->signal, SIGTERM);
  EXPECT_EQ(stopped->Wait(absl::ZeroDuration())->signal, SIGTERM);
}

TEST(ChildProcess, DiesWithTheThreadThatStartedIt) {
  std::optional<ChildProcess> child;
  std::thread([&] { child.emplace(*ChildProcess::Spawn(Shell("sleep 1000"))); }).join();
  EXPECT_EQ(child->Wait(kLong)->signal, SIGKILL);
}

TEST(ChildProcess, ManyThreadsStartChildren) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; i++)
        good += RunShell("cat", std::to_string(t * 100 + i))->out == std::to_string(t * 100 + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 40);
}

TEST(LineHelper, AnswersLineByLine) {
  const auto helper = LineHelper::Start(Shell("while read -r x; do echo \"<$x>\"; done"));
  ASSERT_TRUE(helper.ok());
  EXPECT_EQ(*(*helper)->Exchange("one", kLong), "<one>");
  ASSERT_TRUE((*helper)->WriteLine("two", kLong).ok());
  ASSERT_TRUE((*helper)->WriteLine("three", kLong).ok());
  EXPECT_EQ(*(*helper)->ReadLine(kLong), "<two>");
  EXPECT_EQ(*(*helper)->ReadLine(kLong), "<three>");
  EXPECT_EQ((*helper)->Exchange("a\nb", kLong).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*(*helper)->Exchange("still here", kLong), "<still here>");
}

// More than the pipes hold, both ways, while the child also fills its stderr.
TEST(LineHelper, LargeLinesDoNotDeadlock) {
  const auto helper = LineHelper::Start(Shell("head -c 300000 /dev/zero >&2; cat"));
  ASSERT_TRUE(helper.ok());
  const std::string line(3'000'000, 'm');
  EXPECT_TRUE(*(*helper)->Exchange(line, kLong) == line);
  EXPECT_LE((*helper)->stderr_tail().size(), 4096u);
}

TEST(LineHelper, DeadlineStopsItForGood) {
  const auto helper = LineHelper::Start(Shell("read x; sleep 1000"));
  ASSERT_TRUE(helper.ok());
  EXPECT_EQ((*helper)->Exchange("x", absl::Milliseconds(100)).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE((*helper)->alive());
  EXPECT_TRUE(IsGone((*helper)->pid()));
  EXPECT_EQ((*helper)->Exchange("x", kLong).status().code(), absl::StatusCode::kUnavailable);
}

TEST(LineHelper, TellsHowItEnded) {
  const auto helper = LineHelper::Start(Shell("read x; printf 'Traceback:\\033[31m no sympy' >&2; exit 9"));
  ASSERT_TRUE(helper.ok());
  const absl::Status status = (*helper)->Exchange("x", kLong).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Message(status), "helper sh ended (exit code 9): Traceback:\\x1B[31m no sympy");
}

TEST(LineHelper, RefusesEndlessLines) {
  const auto helper = LineHelper::Start(Shell("tr '\\0' a < /dev/zero"), 100000);
  ASSERT_TRUE(helper.ok());
  EXPECT_EQ((*helper)->ReadLine(kLong).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace iha
