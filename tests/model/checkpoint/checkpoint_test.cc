#include "model/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "tests/model/checkpoint/test_files.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::ReadText;
using testing::WriteText;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::vector<std::string> Folders(const std::string& root) {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "config.json")) result.push_back(entry.path().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(CheckpointTest, EveryFamilyCaseOpensAndBothConfigFormsAreOneFunction) {
  IHA_REQUIRE_CASES(cases);
  int pairs = 0;
  for (const std::string& folder : Folders(cases + "/hf_families")) {
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_TRUE(checkpoint->warnings().empty()) << checkpoint->warnings().front();
    if (!folder.ends_with(".v4")) continue;
    const auto newer = Checkpoint::Open(folder.substr(0, folder.size() - 3));
    ASSERT_TRUE(newer.ok()) << newer.status();
    EXPECT_EQ(checkpoint->config().FunctionBytes(), newer->config().FunctionBytes()) << folder;
    EXPECT_EQ(checkpoint->config().layers, newer->config().layers) << folder;
    EXPECT_EQ(checkpoint->config().ropes, newer->config().ropes) << folder;
    EXPECT_EQ(checkpoint->WeightsDigest(), newer->WeightsDigest()) << folder;
    ++pairs;
  }
  EXPECT_EQ(pairs, 15);
}

TEST(CheckpointTest, EveryAttentionOracleOpens) {
  IHA_REQUIRE_CASES(cases);
  int count = 0;
  for (const std::string& folder : Folders(cases + "/attention_oracles")) {
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_TRUE(checkpoint->warnings().empty()) << checkpoint->warnings().front();
    EXPECT_TRUE(checkpoint->config().has_iha_eval);
    ++count;
  }
  EXPECT_EQ(count, 47);
}

// expect.txt: each line must occur in the message; " | " separates alternatives.
TEST(CheckpointTest, EveryBadCheckpointIsRefusedInOneLine) {
  IHA_REQUIRE_CASES(cases);
  int count = 0;
  for (const std::string& folder : Folders(cases + "/attention_oracles/bad")) {
    const auto checkpoint = Checkpoint::Open(folder);
    ASSERT_FALSE(checkpoint.ok()) << folder;
    const std::string message = Lower(Message(checkpoint.status()));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    std::ifstream expectations(folder + "/expect.txt");
    for (std::string line; std::getline(expectations, line);) {
      bool found = false;
      for (size_t begin = 0; begin <= line.size();) {
        const size_t end = std::min(line.find(" | ", begin), line.size());
        found |= message.find(Lower(line.substr(begin, end - begin))) != std::string::npos;
        begin = end + 3;
      }
      EXPECT_TRUE(found) << folder << "\n  expected: " << line << "\n  message: " << message;
    }
    ++count;
  }
  EXPECT_EQ(count, 12);
}

}  // namespace
}  // namespace iha::checkpoint
