// HumanEval and MBPP on the imported SmolLM2: programs that a real model wrote, judged in the workers' sandbox; a run
// that is killed and resumed ends with the same bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

TEST(CodeModel, AKilledRunResumesToTheSameBytes) {
  IHA_REQUIRE_MODEL(model);
  IHA_REQUIRE_DATA(data);
  const testing::TempDir dir;
  const auto run = [&](const std::string& out, const std::vector<std::string>& extra) {
    std::vector<std::string> argv = {
        "iha-eval",    "run",       "--model",          model,
        "--bench",     "humaneval", "--bench",          "mbpp_instruct?fewshot=1&prompt=plain",
        "--limit",     "3",         "--max-new-tokens", "64",
        "--data-root", data,        "--quiet",          "--out",
        dir.File(out)};
    argv.insert(argv.end(), extra.begin(), extra.end());
    return testing::RunProgram(argv);
  };
  const RunResult calm = run("calm", {});
  ASSERT_EQ(calm.exit.code, 0) << calm.err;
  EXPECT_THAT(calm.out, ::testing::HasSubstr("humaneval.pass@1"));
  ASSERT_EQ(run("dead", {"--fault", "store.commit.after_insert:kill:3"}).exit.signal, SIGKILL);
  const RunResult resumed = run("dead", {});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  for (const char* file : {"table.json", "table.md", "table.csv", "samples.jsonl"}) {
    const auto once = ReadFile(dir.File(std::string("calm/") + file));
    const auto twice = ReadFile(dir.File(std::string("dead/") + file));
    ASSERT_TRUE(once.ok() && twice.ok());
    EXPECT_EQ(*once, *twice) << file;
  }
  // The texts are programs, and all of them were judged.
  const auto table = nlohmann::json::parse(ReadFile(dir.File("calm/table.json")).value_or(""));
  for (const auto& cell : table["rows"][0]["cells"]) EXPECT_EQ(cell["scored"], 3) << cell;
}

}  // namespace
}  // namespace iha
