// Runs every script of tests/sim under every config of SimConfigs().
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/coordinator/sim_runner.h"

namespace iha::coordinator {
namespace {

std::vector<std::string> Scripts() {
  std::vector<std::string> scripts;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(IHA_SIM_SCRIPTS, ec)) {
    if (entry.path().extension() == ".sim") scripts.push_back(entry.path().stem().string());
  }
  std::sort(scripts.begin(), scripts.end());
  return scripts;
}

class SimTest : public ::testing::TestWithParam<std::tuple<std::string, SimConfig>> {};

TEST_P(SimTest, Passes) {
  const auto& [script, config] = GetParam();
  const std::string db = fmt::format("{}sim_{}_{}.db", ::testing::TempDir(), script, config.name);
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(db + suffix);
  SimRunner runner(config, db);
  const std::string failure = runner.RunFile(fmt::format("{}/{}.sim", IHA_SIM_SCRIPTS, script));
  if (!failure.empty()) {
    ADD_FAILURE() << failure;
    return;  // the database is kept
  }
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(db + suffix);
}

INSTANTIATE_TEST_SUITE_P(Scripts, SimTest,
                         ::testing::Combine(::testing::ValuesIn(Scripts()), ::testing::ValuesIn(SimConfigs())),
                         [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param).name; });

// A suite that lists no script would pass silently.
TEST(SimScripts, AreFound) { EXPECT_GE(Scripts().size(), 12u); }

}  // namespace
}  // namespace iha::coordinator
