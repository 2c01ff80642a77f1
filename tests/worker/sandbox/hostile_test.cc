// Programs that attack the machine or their verdict, each followed by an honest one: nothing gets out, nothing passes
// that should not, nobody after it is harmed (field bugs 38, 41, 44, 46 are among them). Run as the user that runs the
// tests; as root once more as an ordinary one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "common/child_process.h"
#include "worker/sandbox/judge.h"

namespace iha::sandbox {
namespace {

using benchmarks::CodeRule;
using benchmarks::CodeTask;
using benchmarks::CodeVerdict;

struct Program {
  std::string name;
  std::string expected;
  std::string text;
};

std::vector<Program> Programs() {
  std::ifstream file(IHA_HOSTILE_PROGRAMS);
  EXPECT_TRUE(file.good()) << IHA_HOSTILE_PROGRAMS;
  std::vector<Program> programs;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== ")) {
      std::istringstream head(line.substr(4));
      Program program;
      head >> program.name >> program.expected;
      programs.push_back(std::move(program));
    } else if (!programs.empty()) {
      programs.back().text += line + "\n";
    }
  }
  return programs;
}

CodeTask Task() {
  return {.id = "twice plus one",
          .setup = "",
          .tests =
              "def check(candidate):\n"
              "    import math\n"
              "    assert near(candidate(0), 1)\n"
              "    assert candidate(1) == 3\n"
              "    assert abs(candidate(2) - 5) < 1e-9\n"
              "    assert math.fabs(candidate(10) - 21) < 1e-9 or candidate(10) == 21\n"
              "def near(a, b):\n"
              "    return abs(a - b) < 1e-9\n"
              "check(f)",
          .reference = "def f(x):\n    return 2 * x + 1\n",
          .entries = {"f"}};
}

std::string Outcome(const CodeVerdict& verdict) {
  if (verdict.suspect) return "suspect";
  return verdict.official_passed ? "passes" : "fails";
}

// What a program could change outside: names in places that the sandbox maps or that are writable for all.
std::string HostState() {
  std::ostringstream state;
  for (const char* folder : {"/usr", "/dev/shm", "/tmp", "/var/tmp", "/"}) {
    for (const char* name : {"marker", "tests", "a", "probe", "device"}) {
      state << std::filesystem::exists(std::filesystem::path(folder) / name);
    }
  }
  return state.str();
}

// One attack, and an honest program behind it in the same slot.
void Attack(SandboxJudge& judge, const Program& program, const Program& honest) {
  SCOPED_TRACE(program.name);
  const CodeTask task = Task();
  const absl::StatusOr<CodeVerdict> verdict = judge.Judge(task, program.text, CodeRule::kDefault);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(Outcome(*verdict), program.expected) << verdict->reason << "; " << verdict->detail << verdict->err;
  const absl::StatusOr<CodeVerdict> next = judge.Judge(task, honest.text, CodeRule::kDefault);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(next->passed()) << next->reason;
  EXPECT_EQ(next->reason, "ran to its end");
}

// Several sandboxes of one slot each at the same time, as workers of one machine have them.
TEST(Hostile, NothingGetsOutNothingPassesNobodyIsHarmed) {
  const std::string before = HostState();
  const std::vector<Program> programs = Programs();
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; t++) {
    threads.emplace_back([&] {
      auto sandbox = Sandbox::Open(1);
      ASSERT_TRUE(sandbox.ok()) << sandbox.status();
      SandboxJudge judge(*std::move(sandbox));
      judge.set_least_limits({.cpu_s = 1, .wall = absl::Seconds(4)});
      for (size_t i = next++; i < programs.size(); i = next++) Attack(judge, programs[i], programs[0]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(HostState(), before);
  std::map<std::string, int> of_class;
  for (const Program& program : programs) of_class[program.name.substr(0, program.name.find('/'))]++;
  EXPECT_GE(static_cast<int>(programs.size()) - of_class["honest"], 60);
  for (const char* name : {"escape", "resources", "forge", "persistence", "leak"}) EXPECT_GE(of_class[name], 4) << name;
}

// As root the sandbox first becomes somebody else; an ordinary user can't, and needs nothing of the sort.
TEST(Hostile, TheSameAsAnOrdinaryUser) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: the test above ran as an ordinary user";
  ChildOptions options;
  options.argv = {"setpriv",
                  "--reuid",
                  "65534",
                  "--regid",
                  "65534",
                  "--clear-groups",
                  "--",
                  std::filesystem::read_symlink("/proc/self/exe").string(),
                  "--gtest_filter=Hostile.NothingGetsOutNothingPassesNobodyIsHarmed"};
  options.cwd = "/";
  const auto run = RunChild(options, "", {.timeout = absl::Minutes(9), .stdout_bytes = size_t{1} << 20});
  ASSERT_TRUE(run.ok()) << run.status();
  if (run->exit.code == 126 || run->exit.code == 127) {
    GTEST_SKIP() << "the folder of the tests can't be read by other users: " << run->err;
  }
  EXPECT_TRUE(run->exit.ok()) << run->exit.ToString() << "\n" << run->out << run->err;
  EXPECT_THAT(run->out, ::testing::HasSubstr("[  PASSED  ] 1 test"));
}

}  // namespace
}  // namespace iha::sandbox
