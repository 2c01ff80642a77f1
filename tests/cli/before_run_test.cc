// What `run` says before it begins: samples that are all equal, cells that its own settings leave empty.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;

class BeforeRun : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model::MakeFakeCheckpoint(dir_.File("fake"), {.style = model::FakeStyle::kWords}).ok());
    ASSERT_TRUE(WriteFileAtomic(dir_.File("own.jsonl"), "{\"question\":\"1/2\",\"answer\":\"1/2\"}\n").ok());
  }

  RunResult DryRun(const std::vector<std::string>& more) const {
    std::vector<std::string> argv = {"iha-eval",   "run",  "--model",  dir_.File("fake"),
                                     "--numerics", "fake", "--dry-run"};
    argv.insert(argv.end(), more.begin(), more.end());
    const RunResult run = testing::RunProgram(argv);
    EXPECT_EQ(run.exit.code, 0) << run.err;
    EXPECT_LE(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    return run;
  }
  std::string Notes(const std::vector<std::string>& more) const { return DryRun(more).err; }

  testing::TempDir dir_;
};

TEST_F(BeforeRun, EqualSamplesAreNoted) {
  EXPECT_EQ(Notes({"--bench", "gsm8k_demo", "--samples", "5"}),
            "note: gsm8k_demo: 5 samples at temperature 0 are all equal; give --temperature\n");
  const RunResult warm = DryRun({"--bench", "gsm8k_demo", "--samples", "5", "--temperature", "0.6", "--limit", "1"});
  EXPECT_EQ(warm.err, "");
  EXPECT_THAT(warm.out, HasSubstr("1 item, 1 shard,"));
  EXPECT_THAT(warm.out, HasSubstr("total: 1 job, 1 item,"));
}

TEST_F(BeforeRun, MetricsOfMoreSamplesThanAreDrawnAreNamed) {
  EXPECT_EQ(Notes({"--bench", "gsm8k_demo", "--samples", "5", "--temperature", "1", "--metric", "gsm8k.robust",
                   "--metric", "pass@10?metric=gsm8k.robust"}),
            "note: gsm8k_demo: pass@10?metric=gsm8k.robust of 5 samples an item is undefined (k > n), its cells will "
            "be empty; give --samples 10\n");
  EXPECT_THAT(Notes({"--bench", "gsm8k_demo", "--metric", "maj@3"}),
              HasSubstr("of 1 sample an item is undefined (k > n)"));
}

TEST_F(BeforeRun, MetricsWithoutTheirLibrariesAreNamed) {
  const std::string own = "jsonl:" + dir_.File("own.jsonl") + "?prompt={question}&metric=";
  EXPECT_THAT(Notes({"--bench", own + "math.minerva", "--graders", ""}),
              HasSubstr("note: math.minerva: will be unscored without the graders' Python libraries; give --graders"));
  EXPECT_THAT(Notes({"--bench", own + "math.prm800k", "--graders", dir_.File("none")}),
              HasSubstr("note: math.prm800k: will be unscored, --graders " + dir_.File("none") + " can't be used: "));
  EXPECT_EQ(Notes({"--bench", own + "math.robust", "--graders", ""}), "");
}

}  // namespace
}  // namespace iha
