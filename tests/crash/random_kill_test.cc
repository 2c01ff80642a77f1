// Random kills of workers and of the coordinator's process, seeded: after any number of them the same command ends with
// the bytes of a calm run. Rounds: IHA_EVAL_CRASH_ROUNDS (./dev crash), else a few.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "common/fault_point.h"
#include "common/file.h"
#include "common/rng.h"
#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using testing::RunProgram;

constexpr uint64_t kSeed = 20260211;

int Rounds() {
  const char* rounds = std::getenv("IHA_EVAL_CRASH_ROUNDS");
  return rounds == nullptr ? 3 : std::max(1, std::atoi(rounds));
}

// A fault of a random place and time: "store.commit.after_insert:kill:17".
std::string RandomFault(PhiloxStream& random, std::string_view prefix) {
  std::vector<std::string> names;
  for (const FaultPoint& point : kFaultPoints) {
    if (point.name.starts_with(prefix)) names.emplace_back(point.name);
  }
  const std::string& name = names[random.NextBelow(names.size())];
  return fmt::format("{}:kill:{}", name, 1 + random.NextBelow(24));
}

class RandomKill : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model::MakeFakeCheckpoint(dir_.File("model"), {.style = model::FakeStyle::kWords}).ok());
  }
  RunResult Run(const std::string& out, const std::vector<std::string>& extra) const {
    std::vector<std::string> argv = {"iha-eval",    "run",
                                     "--model",     dir_.File("model"),
                                     "--bench",     "gsm8k_demo?samples=4&temperature=0.9&max_new_tokens=32",
                                     "--numerics",  "fake",
                                     "--threads",   "1",
                                     "--quiet",     "--out",
                                     dir_.File(out)};
    argv.insert(argv.end(), extra.begin(), extra.end());
    return RunProgram(argv);
  }
  std::string Read(const std::string& path) const { return ReadFile(dir_.File(path)).value_or(""); }

  testing::TempDir dir_;
};

TEST_F(RandomKill, EndsWithTheBytesOfACalmRun) {
  ASSERT_EQ(Run("calm", {}).exit.code, 0);
  PhiloxStream random(kSeed);
  for (int round = 0; round < Rounds(); round++) {
    SCOPED_TRACE(round);
    const std::string out = fmt::format("round{}", round);
    const std::string workers = fmt::format("{}", 1 + random.NextBelow(3));
    const std::string batch = fmt::format("{}", 1 + random.NextBelow(16));
    // The coordinator dies once or twice, and one worker once: two workers that lose the same last item would rightly
    // quarantine it (rescue_policy.h), and that run would end with other bytes. Then a calm life finishes the sweep.
    const uint64_t deaths = 1 + random.NextBelow(2);
    for (uint64_t death = 0; death < deaths; death++) {
      const std::string fault = RandomFault(random, "store.");
      std::vector<std::string> life = {"--workers", workers, "--max-batch", batch, "--fault", fault};
      if (death == 0) {
        life = {"--workers", "1",   "--max-batch",    batch,
                "--fault",   fault, "--worker-fault", RandomFault(random, "worker.")};
      }
      const RunResult killed = Run(out, life);
      EXPECT_TRUE(killed.exit.signal == SIGKILL || killed.exit.code == 0) << fault << " " << killed.err;
    }
    const RunResult last = Run(out, {"--workers", workers, "--max-batch", batch});
    ASSERT_EQ(last.exit.code, 0) << last.err;
    for (const char* file : {"table.json", "samples.jsonl"}) {
      ASSERT_EQ(Read(fmt::format("calm/{}", file)), Read(fmt::format("{}/{}", out, file))) << file;
    }
    const RunResult fsck = RunProgram({"iha-eval", "fsck", "--db", dir_.File(fmt::format("{}/iha-eval.db", out))});
    ASSERT_EQ(fsck.exit.code, 0) << fsck.out << fsck.err;
  }
}

}  // namespace
}  // namespace iha
