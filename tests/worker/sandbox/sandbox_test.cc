// How programs end, what the self-test notices, what a lost slot does to others.
#include "worker/sandbox/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "worker/sandbox/judge.h"
#include "worker/sandbox/slot.h"

namespace iha::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Sandbox& Shared() {
  static const std::unique_ptr<Sandbox> sandbox = [] {
    auto opened = Sandbox::Open(2);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }();
  return *sandbox;
}

RunOutcome Ended(const std::string& program, const RunLimits& limits = {}) {
  const absl::StatusOr<RunOutcome> outcome = Shared().Run(program, limits, Turn::kShared);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? *outcome : RunOutcome();
}

TEST(Sandbox, SaysHowAProgramEnded) {
  const struct {
    const char* program;
    RunEnd end;
    const char* detail;
  } cases[] = {
      {"x = 1", RunEnd::kCompleted, ""},
      {"", RunEnd::kCompleted, ""},
      {"assert 1 == 2, 'no'", RunEnd::kRaised, "AssertionError: no"},
      {"def f(:", RunEnd::kRaised, "SyntaxError: "},
      {"x = '\\0'\nraise ValueError('a\\nb')", RunEnd::kRaised, "ValueError: a\nb"},
      {"import sys; sys.exit(3)", RunEnd::kRaised, "SystemExit: 3"},
      {"import os; os._exit(3)", RunEnd::kExit, "3"},
      {"import ctypes; ctypes.string_at(0)", RunEnd::kSignal, "SIGSEGV"},
      {"input()", RunEnd::kRaised, "OSError: "},
      {"import numpy", RunEnd::kRaised, "ModuleNotFoundError: "},
      {"x = bytearray(8 << 30)", RunEnd::kRaised, "MemoryError: "},
  };
  for (const auto& c : cases) {
    const RunOutcome outcome = Ended(c.program);
    EXPECT_EQ(outcome.end, c.end) << c.program << ": " << outcome.detail;
    EXPECT_THAT(outcome.detail, StartsWith(c.detail)) << c.program;
  }
}

// Whatever a program writes, exits with or sends, it is the program that ended so: the sandbox's own failure travels
// where no program can write. Who read the report's nonce can write "completed", which is why passes are confirmed
// (judge.h), and nothing else.
TEST(Sandbox, NoProgramCanPoseAsABrokenSandbox) {
  const std::string nonce =
      "import posix, sys\nframe = sys._getframe()\nwhile 'nonce' not in frame.f_locals: frame = frame.f_back\n"
      "posix.write(3, frame.f_locals['nonce'] + b'{}')\nposix._exit(0)";
  const struct {
    std::string program;
    RunEnd end;
    const char* detail;
  } cases[] = {
      {"import posix\nposix.write(2, b'sandbox: no space left')\nposix._exit(99)", RunEnd::kExit, "99"},
      {"import posix\nposix._exit(98)", RunEnd::kExit, "98"},
      {"import posix\nfor fd in range(3, 256):\n    try: posix.write(fd, b'{\"broken\": \"no\"}\\nno line of "
       "ours\\n')\n"
       "    except OSError: pass\nposix._exit(0)",
       RunEnd::kExit, "0"},
      {fmt::format(fmt::runtime(nonce), "broken its namespaces are gone"), RunEnd::kExit, "0"},
      {fmt::format(fmt::runtime(nonce), "memory"), RunEnd::kExit, "0"},
      {fmt::format(fmt::runtime(nonce), "no such end"), RunEnd::kExit, "0"},
      {"import signal\nsignal.raise_signal(40)", RunEnd::kSignal, "SIG40"},
      {"import signal\nsignal.raise_signal(signal.SIGXCPU)", RunEnd::kSignal, "SIGXCPU"},
      {"import posix\nposix.kill(0, 9)", RunEnd::kSignal, "SIGKILL"},
      {"import posix\nposix.kill(-1, 9)", RunEnd::kRaised, "ProcessLookupError: "},
      {"import posix\nfor s in range(1, 65): posix.kill(1, s)\nposix._exit(3)", RunEnd::kExit, "3"},
  };
  for (const auto& c : cases) {
    const RunOutcome outcome = Ended(c.program);
    EXPECT_EQ(outcome.end, c.end) << c.program << ": " << outcome.detail;
    EXPECT_THAT(outcome.detail, StartsWith(c.detail)) << c.program;
  }
  // Also where it stops its group, the fork server goes on to its deadline.
  EXPECT_EQ(Ended("import posix\nposix.kill(0, 19)", {.cpu_s = 1, .wall = absl::Milliseconds(300)}).end, RunEnd::kWall);
}

// Numbers in /proc of the processes that this one started, and of theirs.
std::vector<std::string> Descendants() {
  std::map<std::string, std::string> parents;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "status");
    for (std::string word; file >> word;) {
      if (word == "PPid:" && file >> word) parents[entry.path().filename()] = word;
    }
  }
  std::vector<std::string> found;
  for (const auto& [pid, parent] : parents) {
    std::string up = parent;
    while (parents.contains(up) && up != std::to_string(getpid())) up = parents[up];
    if (up == std::to_string(getpid())) found.push_back(pid);
  }
  return found;
}

// Where memory is short the kernel ends programs first, not a worker or what speaks for the sandbox.
TEST(Sandbox, ProgramsAreTheFirstToGoWhenMemoryIsShort) {
  std::thread program([] { Ended("import time; time.sleep(1)"); });
  bool seen = false;
  for (int i = 0; i < 50 && !seen; i++) {
    for (const std::string& pid : Descendants()) {
      std::ifstream file("/proc/" + pid + "/oom_score_adj");
      std::string value;
      seen = seen || (file >> value && value == "1000");
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  program.join();
  EXPECT_TRUE(seen);
}

TEST(Sandbox, TimeLimitsFire) {
  EXPECT_EQ(Ended("while True: pass", {.cpu_s = 1, .wall = absl::Seconds(60)}).end, RunEnd::kCpu);
  EXPECT_EQ(Ended("import time; time.sleep(1000)", {.cpu_s = 1, .wall = absl::Milliseconds(300)}).end, RunEnd::kWall);
}

// 64 KiB of each output are kept, the rest is read and dropped: a flood neither blocks nor grows anything.
TEST(Sandbox, CapsOutput) {
  const RunOutcome outcome =
      Ended("import sys\nfor i in range(1000): print('x' * 10000)\nsys.stderr.write('e' * 70000)");
  EXPECT_EQ(outcome.end, RunEnd::kCompleted);
  EXPECT_EQ(outcome.out.size(), size_t{65536});
  EXPECT_EQ(outcome.err.size(), size_t{65536});
}

// Equal programs see equal hashes, random numbers and addresses: nothing of a verdict is drawn.
TEST(Sandbox, RepeatsItself) {
  const std::string program = "import random\nprint(hash('a'), random.random(), id(object()), {'a', 'b', None, 'c'})";
  const RunOutcome first = Ended(program);
  EXPECT_EQ(first.end, RunEnd::kCompleted);
  for (int i = 0; i < 4; i++) EXPECT_EQ(Ended(program).out, first.out);
}

TEST(Sandbox, GoesOnAfterItsForkServerIsLost) {
  ASSERT_EQ(Ended("x = 1").end, RunEnd::kCompleted);
  // Both slots: the children of this process that are bubblewrap.
  const std::string kill = fmt::format("pkill -KILL -P {} bwrap", getpid());
  ASSERT_EQ(std::system(kill.c_str()), 0);
  for (int i = 0; i < 4; i++) EXPECT_EQ(Ended("x = 1").end, RunEnd::kCompleted);
}

TEST(Sandbox, RunsAloneWhenAsked) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; i++) {
    threads.emplace_back([i] {
      const auto outcome = Shared().Run("sum(range(100000))", {}, i % 2 == 0 ? Turn::kAlone : Turn::kShared);
      EXPECT_TRUE(outcome.ok() && outcome->end == RunEnd::kCompleted) << outcome.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Confirm, OnlyPlainDataCrosses) {
  const auto confirm = [](const std::string& candidate, const std::string& tests) {
    const auto outcome = Shared().Confirm({.candidate = candidate,
                                           .setup = "",
                                           .tests = tests,
                                           .trusted = "def f(*a, **k): pass\ndef helper(x): return x + 1",
                                           .names = {"f"}},
                                          {}, Turn::kShared);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? *outcome : RunOutcome();
  };
  const char* values =
      "[1, -2, 3.5, 1e400, 'a\\ud800', None, True, b'x', (1, [2]), {3, 4}, {'k': {1: (2,)}}, 1+2j, "
      "range(3), 10**5000, frozenset({1})]";
  EXPECT_EQ(confirm("def f(x): return x", fmt::format("v = {}\nassert f(v) == v and type(f(v)) is list", values)).end,
            RunEnd::kCompleted);
  EXPECT_EQ(confirm("def f(x): x.append(4)", "v = [3]\nf(v)\nassert v == [3, 4]").end, RunEnd::kCompleted);
  EXPECT_EQ(confirm("def f(x): raise ValueError(x)", "try:\n    f(1)\nexcept ValueError: pass").end,
            RunEnd::kCompleted);
  EXPECT_EQ(confirm("def f(x): return (i for i in range(x))", "assert list(f(3)) == [0, 1, 2]").end,
            RunEnd::kCompleted);
  EXPECT_EQ(confirm("def f(x, t): return type(x) is t", "assert f(3, int) is True and f(3, str) is False").end,
            RunEnd::kCompleted);
  EXPECT_EQ(confirm("def f(x): return x.keys()", "assert f({'a': 1, 'b': 2}) == {'b', 'a'}").end, RunEnd::kCompleted);
  EXPECT_EQ(confirm("import enum\nclass N(enum.IntEnum):\n    A = 3\ndef f(x): return N(x)", "assert f(3) == 3").end,
            RunEnd::kCompleted);
  EXPECT_EQ(confirm("import collections\nP = collections.namedtuple('P', 'x y')\ndef f(x): return P(x, x)",
                    "assert f(3) == (3, 3)")
                .end,
            RunEnd::kCompleted);
  EXPECT_EQ(confirm("def f(x): return x\ndef helper(x): return 0", "assert helper(1) == 2").end, RunEnd::kCompleted);
  EXPECT_EQ(
      confirm("import collections\ndef f(x): return collections.Counter(x)", "assert f('aab') == {'a': 2, 'b': 1}").end,
      RunEnd::kCompleted);
  const RunOutcome compared =
      confirm("class A:\n    def __eq__(s, o): return True\ndef f(x): return A()", "assert f(1) == 1");
  EXPECT_EQ(compared.end, RunEnd::kRaised);
  EXPECT_THAT(compared.detail, HasSubstr("not plain data"));
  EXPECT_EQ(confirm("import os\ndef f(x): os._exit(0)", "f(1)").end, RunEnd::kRaised);
  EXPECT_EQ(confirm("import os\nfor d in range(3, 9):\n    try: os.write(d, b'completed')\n    except OSError: pass\n"
                    "def f(x): return 0",
                    "assert f(1) == 1")
                .end,
            RunEnd::kRaised);
}

TEST(Scan, FindsWhatPlainProgramsDoNotUse) {
  const auto findings = [](const std::string& candidate) {
    const std::string tests = "def check(f):\n    assert math.fabs(abs(f(1) - helper(1))) < 1";
    const auto found = Shared().Scan(
        {.candidate = candidate, .tests = tests, .program = candidate + "\n" + tests, .own = {"f"}, .reference = ""});
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : std::vector<std::string>{"?"};
  };
  for (const char* plain : {"def f(x): return x", "import math\ndef f(x): return math.sqrt(x)",
                            "from collections import Counter, defaultdict\ndef f(x): return Counter(x).most_common()",
                            "class A:\n    '''Has __doc__.'''\n    def __init__(self): pass\n    def g(self): return "
                            "'{}'.format(1)\ndef f(x): return A().g()",
                            "def f(x):\n    sum = 0\n    list = [x]\n    return sorted(list, key=lambda abs: -abs)",
                            "if __name__ == '__main__':\n    pass\ndef f(x): return type(x) is int",
                            "class A: pass\nclass B(A): pass\nclass E(ValueError): pass\ndef f(x): return B() and x",
                            "def f(x):\n    check = x\n    return check",
                            "from itertools import *\ndef f(x): return list(chain.from_iterable(x))",
                            "class E(ValueError):\n    def __init__(self, x): super().__init__(x)\n"
                            "class F(E):\n    def __init__(self, x): E.__init__(self, x)\ndef f(x): return x.copy()"}) {
    EXPECT_THAT(findings(plain), ::testing::IsEmpty()) << plain;
  }
  for (const char* odd :
       {"import os",
        "from typing import sys",
        "import typing\nx = typing.sys",
        "import re\nx = re.enum.bltns",
        "x = ''.__class__",
        "getattr(1, 'a')",
        "def __eq__(a, b): pass",
        "class A:\n    def __lt__(a, b): pass",
        "abs = 1",
        "def helper(x): pass",
        "import math as abs",
        "def g():\n    global abs\n    abs = 1",
        "(abs := 1)",
        "for abs in []: pass",
        "x = 1\nx.y = 2",
        "t = type",
        "type('A', (), {})",
        "'{0.a}'.format(1)",
        "y = '{}'\ny.format(1)",
        "x = '__eq__'",
        "def g():\n    yield\ng().gi_frame",
        "from math import pow",
        "class A(metaclass=int): pass",
        "match 1:\n    case int(real=x): pass",
        "x = (",
        "async def g(): pass",
        "from operator import attrgetter",
        "type(type(1))",
        "x = type(1)",
        "class A:\n    from operator import truth as __eq__",
        "class A:\n    class __eq__: pass",
        "from typing import *\nget_origin(1)",
        "f(__eq__=1)",
        "try: pass\nexcept Exception as __x: pass",
        "x = globals",
        "exec('1')",
        "from os import *",
        "from operator import *\nmethodcaller",
        "from collections.abc import ABCMeta",
        "import typing\ntyping.ABCMeta",
        "from functools import GenericAlias",
        "import copy\ncopy.dispatch_table",
        "from copy import dispatch_table",
        "from fractions import Fraction\nclass A(Fraction):\n    def from_float(a, b): return a",
        "from fractions import Fraction\ndef g(k): return Fraction\n@g\nclass A: pass\nclass B(A): pass",
        "from fractions import Fraction\nclass A: pass\nA = Fraction\nclass B(A): pass",
        "class A:\n    def ABCMeta(self): pass\nimport typing\ntyping.ABCMeta",
        "class A:\n    def register(self): pass\nimport collections.abc\ncollections.abc.Sequence.register(A)",
        "from typing import *\nNamedTuple",
        "[abs := 1 for i in [0]]",
        "match [1]:\n    case [*abs]: pass",
        "def f(x): return check(x)",
        "import math\nmath = 1",
        "class math:\n    def fabs(x): return 0",
        "import statistics as math",
        "from collections import Counter\nkind = Counter.copy(int)",
        "from collections import Counter\nkinds = map(Counter.copy, [int])",
        "from fractions import Fraction\ndef g(ValueError):\n    class A(ValueError): pass\ng(Fraction)",
        "from fractions import *\ndef g():\n    class Fraction: pass\nclass A(Fraction): pass",
        "def g():\n    class float: pass\nclass A(float): pass",
        "from collections.abc import KeysView\nx = KeysView([1, 1])",
        "import collections.abc\nx = collections.abc.Mapping.keys([1, 1])",
        "import typing\nx = typing.Mapping.keys([1, 1])",
        "from collections import OrderedDict\nd = OrderedDict()\ndict.update(d, {1: 2})",
        "import typing\nd = typing.OrderedDict()",
        "import typing\ntyping.Optional.__init__(len)",
        "import math\nmath.__init__('m')",
        "def g(super):\n    super().__init__(len)"}) {
    EXPECT_THAT(findings(odd), ::testing::Not(::testing::IsEmpty())) << odd;
  }
}

// Takes one limit away from a slot: the self-test must name it.
absl::Status SelfTestOf(const std::function<void(SlotSetup&)>& weaken, bool cpu = false) {
  absl::StatusOr<SlotSetup> setup = SetupOf(40);
  if (!setup.ok()) return setup.status();
  weaken(*setup);
  absl::StatusOr<std::unique_ptr<Slot>> slot = Slot::Start(*setup);
  if (!slot.ok()) return slot.status();
  return (*slot)->SelfTest(cpu);
}

void Erase(SlotSetup& setup, const std::string& argument) { std::erase(setup.child.argv, argument); }

void Configure(SlotSetup& setup, const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json config = nlohmann::json::parse(setup.config, nullptr, false);
  change(config);
  setup.config = config.dump();
}

TEST(SelfTest, NamesTheLimitThatDoesNotHold) {
  EXPECT_TRUE(SelfTestOf([](SlotSetup&) {}, true).ok());
  const auto message = [](const std::function<void(SlotSetup&)>& weaken) {
    return std::string(SelfTestOf(weaken).message());
  };
  EXPECT_THAT(message([](SlotSetup& s) { Erase(s, "--unshare-net"); }), HasSubstr("network namespace"));
  EXPECT_THAT(message([](SlotSetup& s) {
                const std::vector<std::string> root = {"--remount-ro", "/"};
                std::vector<std::string>& argv = s.child.argv;
                const auto at = std::search(argv.begin(), argv.end(), root.begin(), root.end());
                argv.erase(at, at + 2);
              }),
              HasSubstr("write outside"));
  EXPECT_THAT(message([](SlotSetup& s) { Configure(s, [](nlohmann::json& c) { c["limits"].erase("RLIMIT_FSIZE"); }); }),
              HasSubstr("file size"));
  EXPECT_THAT(message([](SlotSetup& s) {
                // An allow-all filter: one instruction that returns SECCOMP_RET_ALLOW.
                Configure(s, [](nlohmann::json& c) { c["filter"] = "BgAAAAAA/38="; });
              }),
              HasSubstr("system calls"));
  EXPECT_THAT(message([](SlotSetup& s) { Configure(s, [](nlohmann::json& c) { c["tmp_bytes"] = int64_t{1} << 40; }); }),
              HasSubstr("temporary folder"));
  // What can't be set up is the sandbox's failure, in its own words.
  EXPECT_THAT(message([](SlotSetup& s) { Configure(s, [](nlohmann::json& c) { c["filter"] = "BgAAAAAA"; }); }),
              HasSubstr("broken"));
}

// Programs can't be given what this process was not: said at once, with the limit's name, not as limits that don't
// hold.
TEST(SelfTest, NamesTheLimitThatThisProcessHas) {
  const auto started_with = [](const std::string& limit) {
    return SelfTestOf([&](SlotSetup& setup) {
      const std::vector<std::string> prlimit = {"prlimit", limit, "--"};
      setup.child.argv.insert(setup.child.argv.begin(), prlimit.begin(), prlimit.end());
    });
  };
  for (const auto& [limit, name] :
       {std::pair("--as=1000000000", "RLIMIT_AS 1000000000"), std::pair("--fsize=1000000", "RLIMIT_FSIZE 1000000"),
        std::pair("--nofile=100", "RLIMIT_NOFILE 100"), std::pair("--cpu=100", "RLIMIT_CPU 100")}) {
    const absl::Status status = started_with(limit);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fmt::format("started with {}, programs need ", name)));
    EXPECT_THAT(std::string(status.message()), ::testing::EndsWith("raise it (ulimit)"));
  }
  const absl::Status soft = started_with("--nofile=64:4096");
  EXPECT_TRUE(soft.ok()) << soft;
}

// Limits on processes don't bind root, whatever bubblewrap calls it.
TEST(SelfTest, NoticesRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: there is no root to be noticed";
  const absl::Status status = SelfTestOf([](SlotSetup& setup) {
    const auto end = std::find(setup.child.argv.begin(), setup.child.argv.end(), "bwrap");
    setup.child.argv.erase(setup.child.argv.begin(), end);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("processes"));
}

}  // namespace
}  // namespace iha::sandbox
