// Benchmarks of programs in a worker's life: where its machine can't judge them, they are left to others.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/graders/graders.h"
#include "common/retry.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/runner/world.h"

namespace iha::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Judges everything as passed, where it can.
class AnyJudge final : public benchmarks::CodeJudge {
 public:
  explicit AnyJudge(absl::Status ready) : ready_(std::move(ready)) {}
  absl::Status Ready() override { return ready_; }
  absl::StatusOr<benchmarks::CodeVerdict> Judge(const benchmarks::CodeTask&, const std::string&,
                                                benchmarks::CodeRule) override {
    benchmarks::CodeVerdict verdict;
    verdict.official_passed = true;
    verdict.result = "passed";
    return verdict;
  }
  int parallel() const override { return 1; }

 private:
  const absl::Status ready_;
};

// A machine whose sandbox does not hold: the sweep says which limit, its programs wait for another worker, the rest is
// done here.
TEST(CodeWorker, ProgramsAreLeftToWorkersThatCanJudgeThem) {
  IHA_REQUIRE_DATA(data);
  const testing::TempDir dir;
  MakeModel(dir.File("models/alpha"));
  World world(data);
  SweepSpec spec = DemoSweep("alpha");
  for (const char* name : {"humaneval", "mbpp"}) {
    spec.entries.insert(spec.entries.begin(), spec.entries.back());
    spec.entries.front().benchmark.name = name;
  }
  world.Submit(spec);
  CheckpointSource models(RootAt(dir.File("models")));
  const auto run = [&](const std::string& id, const absl::Status& ready) {
    WorkerOptions options = OptionsFor(id);
    options.data_root = data;
    options.graders =
        std::make_shared<benchmarks::Graders>(benchmarks::GraderOptions{.judge = std::make_shared<AnyJudge>(ready)});
    return Worker(*world.api, models, world.clock, std::move(options)).Run();
  };
  const absl::Status refused = run("open", absl::FailedPreconditionError("sandbox: the network did not hold"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr(kRunsNoPrograms), HasSubstr("the network")));
  const SweepProgress waits = world.Progress();
  EXPECT_EQ(waits.state, "running");
  for (const JobProgress& job : waits.jobs) {
    EXPECT_EQ(job.scored, job.entry.starts_with("gsm8k_demo") ? kItems : 0) << job.entry;
    EXPECT_EQ(job.unscored, 0) << job.entry;
  }
  EXPECT_THAT(fmt::format("{}", fmt::join(waits.notes, "\n")),
              AllOf(HasSubstr("worker open: humaneval: "), HasSubstr("worker open: mbpp: "), HasSubstr("the network")));
  EXPECT_THAT(coordinator::Charged(world.AttemptsOf("open")), IsEmpty());
  const absl::Status judged = run("closed", absl::OkStatus());
  EXPECT_TRUE(judged.ok()) << judged;
  EXPECT_EQ(world.Progress().state, "done");
  for (const JobProgress& job : world.Progress().jobs) EXPECT_EQ(job.scored, kItems) << job.entry;
}

}  // namespace
}  // namespace iha::worker
