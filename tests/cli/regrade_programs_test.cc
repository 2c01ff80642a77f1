// regrade of stored programs: they run again in the sandbox of iha-tool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using testing::RunProgram;

TEST(RegradePrograms, EqualGradersFindNothingAndWithoutASandboxNothingIsStored) {
  IHA_REQUIRE_DATA(data);
  const testing::TempDir dir;
  const std::string model = dir.File("alpha");
  ASSERT_TRUE(model::MakeFakeCheckpoint(model, {.seed = 1, .style = model::FakeStyle::kWords}).ok());
  const RunResult run = RunProgram({"iha-eval", "run", "--model", model, "--bench", "humaneval?samples=2&temperature=1",
                                    "--bench", "mbpp", "--limit", "3", "--max-new-tokens", "16", "--numerics", "fake",
                                    "--data-root", data, "--out", dir.File("out"), "--json"});
  ASSERT_EQ(run.exit.code, 0) << run.err;
  const std::string sweep = nlohmann::json::parse(run.out)["sweep"];
  const std::vector<std::string> regrade = {
      "regrade", "--db", dir.File("out/iha-eval.db"), "--sweep", sweep, "--data-root", data, "--jobs", "2", "--json"};
  const auto with = [&](const std::string& program) {
    std::vector<std::string> argv = regrade;
    argv.insert(argv.begin(), program);
    return RunProgram(argv);
  };
  const RunResult again = with("iha-eval");
  ASSERT_EQ(again.exit.code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  std::istringstream jobs(again.out);
  int64_t items = 0;
  for (std::string line; std::getline(jobs, line);) {
    const auto job = nlohmann::json::parse(line);
    EXPECT_EQ(job["changed"], 0) << line;
    EXPECT_TRUE(job["after"].is_null()) << line;
    EXPECT_TRUE(job["runs_code"].get<bool>());
    items += job["items"].get<int64_t>();
  }
  EXPECT_EQ(items, 6);
  // Installed without the program that has the sandbox.
  for (const char* program : {"iha-eval", "iha-grader"}) {
    std::filesystem::copy_file(testing::ProgramPath(program), dir.File(program));
  }
  const RunResult refused = with(dir.File("iha-eval"));
  EXPECT_EQ(refused.exit.code, 4);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, ::testing::HasSubstr(dir.File("iha-tool")));
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
}

}  // namespace
}  // namespace iha
