// A worker that stands still past its lease and then goes on: the fence decides, not the clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model/fake_model.h"
#include "tests/support/service.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;
using testing::Program;
using testing::RunProgram;

// Stopped between put and commit, so that its commit comes after the lease (30 s) was lost and another worker has done
// the work; and stopped with a lease just granted, so that it generates, puts and commits with a lost fence.
TEST(StoppedWorker, IsRefusedByTheFenceAndChangesNoByte) {
  const testing::TempDir dir;
  ASSERT_TRUE(model::MakeFakeCheckpoint(dir.File("models/m"), {.style = model::FakeStyle::kWords}).ok());
  std::ofstream(dir.File("sweep.json")) << R"({"version": 1, "models": ["m"], "benchmarks": [{"spec": "gsm8k_demo",
      "samples": 3, "temperature": 0.9, "max_new_tokens": 32, "limit": 12}], "numerics": {"backend": "fake"},
      "shard_tokens": 2000})";
  const RunResult calm = RunProgram({"iha-eval", "run", "--sweep", dir.File("sweep.json"), "--models-root",
                                     dir.File("models"), "--out", dir.File("calm"), "--json", "--quiet"});
  ASSERT_EQ(calm.exit.code, 0) << calm.err;
  const std::string address = "unix:" + dir.File("c.sock");
  Program coordinator({"iha-coordinator", "--listen", address, "--db", dir.File("c.db")}, dir.File("c.log"));
  ASSERT_TRUE(coordinator.AwaitLog("listening on"));
  const RunResult submitted = RunProgram({"iha-eval", "submit", "--coordinator", address, dir.File("sweep.json")});
  ASSERT_EQ(submitted.exit.code, 0) << submitted.err;
  const std::string sweep = submitted.out.substr(0, submitted.out.find('\n'));
  const auto worker = [&](const std::string& id, const std::string& fault) {
    std::vector<std::string> argv = {"iha-worker",
                                     "--coordinator",
                                     address,
                                     "--models-root",
                                     dir.File("models"),
                                     "--threads",
                                     "1",
                                     "--kv-memory-mib",
                                     "64",
                                     "--exit-when-done",
                                     "--id",
                                     id};
    if (!fault.empty()) argv.insert(argv.end(), {"--fault", fault});
    return std::make_unique<Program>(argv, dir.File(id + ".log"));
  };
  const auto await_stop = [](Program& program) {
    const absl::Time limit = absl::Now() + absl::Seconds(60);
    while (!testing::IsStopped(program.child().pid()) && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(10));
    return testing::IsStopped(program.child().pid());
  };
  const auto late = worker("late", "worker.outbox.between_put_and_commit:stop:1");
  ASSERT_TRUE(await_stop(*late)) << late->Log();
  const auto slow = worker("slow", "worker.lease.start:stop:1");
  ASSERT_TRUE(await_stop(*slow)) << slow->Log();
  const auto good = worker("good", "");
  const RunResult watched = RunProgram({"iha-eval", "watch", "--coordinator", address, sweep});
  EXPECT_EQ(watched.exit.code, 0) << watched.err;
  for (Program* program : {late.get(), slow.get()}) {
    program->child().Kill(SIGCONT);
    const auto exit = program->child().Wait(absl::Seconds(60));
    ASSERT_TRUE(exit.has_value()) << program->Log();
    EXPECT_TRUE(exit->ok()) << exit->ToString() << program->Log();
  }
  const RunResult table =
      RunProgram({"iha-eval", "table", "--coordinator", address, "--sweep", sweep, "--format", "json"});
  EXPECT_EQ(table.out, calm.out);
  EXPECT_EQ(nlohmann::json::parse(table.out)["rows"][0]["cells"][0]["scored"], 12);
  coordinator.child().Kill(SIGTERM);
  ASSERT_TRUE(coordinator.child().Wait(absl::Seconds(60)).has_value());
  const RunResult fsck = RunProgram({"iha-eval", "fsck", "--db", dir.File("c.db")});
  EXPECT_EQ(fsck.exit.code, 0) << fsck.out << fsck.err;
}

}  // namespace
}  // namespace iha
