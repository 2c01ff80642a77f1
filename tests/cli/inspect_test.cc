// `iha-eval inspect` on checkpoints of the cases root, and what it answers to those that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RunProgram;
using testing::TempDir;

TEST(Inspect, PrintsWhatACheckpointIsAndCosts) {
  IHA_REQUIRE_CASES(cases);
  const std::string model = cases + "/attention_oracles/iha_p2_algorithm1";
  const RunResult text = RunProgram({"iha-eval", "inspect", model, "--lengths", "64"});
  EXPECT_EQ(text.exit.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("iha P=2"), HasSubstr("digest: "), HasSubstr("at 64 tokens"),
                              HasSubstr("KV bytes per token")));
  const RunResult result = RunProgram({"iha-eval", "inspect", model, "--json", "--lengths", "64,128"});
  EXPECT_EQ(result.exit.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["flops_per_token"].size(), 2);
  EXPECT_EQ(json["flops_per_token"][1]["length"], 128);
  EXPECT_EQ(json["digest"].get<std::string>().size(), 64);
}

TEST(Inspect, AuditsThatTwoAreFlopMatched) {
  IHA_REQUIRE_CASES(cases);
  const std::string global = cases + "/attention_oracles/global_mha";
  const std::string local = cases + "/attention_oracles/local_w7";
  const RunResult same = RunProgram({"iha-eval", "inspect", global, "--against", global});
  EXPECT_EQ(same.exit.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("ratio 1.0000"));
  // A window of 7 costs a fraction of global attention at 4096 tokens.
  const RunResult other = RunProgram({"iha-eval", "inspect", local, "--against", global, "--lengths", "4096"});
  EXPECT_EQ(other.exit.code, 5);
  EXPECT_THAT(other.out, HasSubstr("NOT MATCHED"));
  const RunResult wide = RunProgram(
      {"iha-eval", "inspect", local, "--against", global, "--lengths", "4096", "--tolerance", "99", "--json"});
  EXPECT_EQ(wide.exit.code, 0) << wide.out;
  const auto json = nlohmann::json::parse(wide.out, nullptr, false);
  EXPECT_EQ(json["matched"], true);
  EXPECT_LT(json["lengths"][0]["ratio"], 0.5);
}

TEST(Inspect, BadCheckpointsAreOneLineAndExit3) {
  const TempDir dir;
  std::ofstream(dir.path() + "/config.json") << "{\"model_type\": \"mamba\"}";
  for (const std::string& path : {dir.path(), dir.path() + "/absent"}) {
    const RunResult result = RunProgram({"iha-eval", "inspect", path});
    EXPECT_EQ(result.exit.code, 3) << result.err;
    EXPECT_THAT(result.err, HasSubstr(path));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(RunProgram({"iha-eval", "inspect", path, "--against", path}).exit.code, 3);
  }
  EXPECT_EQ(RunProgram({"iha-eval", "inspect", dir.path(), "--lengths", "0"}).exit.code, 2);
  EXPECT_EQ(RunProgram({"iha-eval", "inspect"}).exit.code, 2);
}

}  // namespace
}  // namespace iha
