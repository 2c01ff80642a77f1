// `iha-eval inspect` on checkpoints of the cases root, and what it answers to those that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
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

TEST(Inspect, DefaultLengthsEndAtTheContext) {
  IHA_REQUIRE_CASES(cases);
  const TempDir dir;
  const std::string model = cases + "/attention_oracles/global_mha";
  std::filesystem::create_symlink(model + "/model.safetensors", dir.path() + "/model.safetensors");
  std::ifstream file(model + "/config.json");
  auto config = nlohmann::json::parse(file);
  for (const auto& [context, lengths] :
       std::map<int64_t, std::vector<int64_t>>{{300, {300}}, {2000, {1024, 2000}}, {9000, {1024, 4096}}}) {
    config["max_position_embeddings"] = context;
    std::ofstream(dir.path() + "/config.json") << config;
    const RunResult result = RunProgram({"iha-eval", "inspect", dir.path(), "--json"});
    const auto json = nlohmann::json::parse(result.out, nullptr, false);
    std::vector<int64_t> found;
    for (const auto& row : json["flops_per_token"]) found.push_back(row["length"]);
    EXPECT_EQ(found, lengths) << result.err;
  }
  // A length that is asked for is given.
  const RunResult result = RunProgram({"iha-eval", "inspect", dir.path(), "--lengths", "9000,9001"});
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("at 9000 tokens, the context: "), HasSubstr("at 9001 tokens, beyond the context: ")));
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

// Each folder says in expect.txt what the line must name: a line of it, or one of its alternatives ("a | b").
TEST(Inspect, EveryBadCaseIsRefusedAsItsFolderSays) {
  IHA_REQUIRE_CASES(cases);
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cases + "/attention_oracles/bad")) {
    if (!std::filesystem::exists(entry.path() / "expect.txt")) continue;
    SCOPED_TRACE(entry.path());
    ++folders;
    const RunResult result = RunProgram({"iha-eval", "inspect", entry.path()});
    EXPECT_EQ(result.exit.code, 3);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    std::ifstream expected(entry.path() / "expect.txt");
    for (std::string line; std::getline(expected, line);) {
      bool found = false;
      for (size_t begin = 0; begin <= line.size();) {
        const size_t end = std::min(line.find(" | ", begin), line.size());
        found |= lower(result.err).find(lower(line.substr(begin, end - begin))) != std::string::npos;
        begin = end + 3;
      }
      EXPECT_TRUE(found) << line << " in " << result.err;
    }
  }
  EXPECT_GE(folders, 12);
}

TEST(Upcycle, IsReachedThroughTheMainProgram) {
  IHA_REQUIRE_CASES(cases);
  const TempDir dir;
  const std::string model = cases + "/attention_oracles/global_gqa_bias", out = dir.path() + "/iha";
  const std::vector<std::string> command = {"iha-eval", "upcycle",        "--model", model,   "--kind",
                                            "iha",      "--pseudo-heads", "2",       "--out", out};
  const RunResult refused = RunProgram(command);
  EXPECT_EQ(refused.exit.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("add --expand-kv"));
  std::vector<std::string> expanded = command;
  expanded.insert(expanded.end(), {"--expand-kv", "--json"});
  const RunResult done = RunProgram(expanded);
  EXPECT_EQ(done.exit.code, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out, nullptr, false);
  EXPECT_EQ(json["iha_layers"], 2);
  const RunResult inspected = RunProgram({"iha-eval", "inspect", out});
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("layer 0-1: iha P=2"), HasSubstr(json["digest"].get<std::string>())));
  EXPECT_EQ(RunProgram(expanded).exit.code, 3);  // it exists now
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--noise", "nan"}, {"--layers", "0-"}, {"--pseudo-heads", "0"}}) {
    std::vector<std::string> argv = {"iha-eval", "upcycle", "--model", model, "--kind", "iha", "--out", out + "2"};
    argv.insert(argv.end(), wrong.begin(), wrong.end());
    if (wrong[0] != "--pseudo-heads") argv.insert(argv.end(), {"--pseudo-heads", "2"});
    const RunResult result = RunProgram(argv);
    EXPECT_EQ(result.exit.code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(wrong[0]));
  }
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
