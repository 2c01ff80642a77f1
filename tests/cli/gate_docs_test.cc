// The worked example of docs/ci-gating.md, run as it stands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::HasSubstr;

// The fenced blocks of that language, one after the other.
std::string Blocks(const std::string& markdown, const std::string& language) {
  std::istringstream lines(markdown);
  std::string blocks, line;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line == "```" + language) {
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks += line + "\n";
    }
  }
  return blocks;
}

TEST(GateDocs, TheWorkedExampleRunsAsItStands) {
  const testing::TempDir dir;
  const std::string main = dir.path() + "/models/main";
  ASSERT_TRUE(MakeFolders(dir.path() + "/models").ok());
  ASSERT_TRUE(model::MakeFakeCheckpoint(main, {.style = model::FakeStyle::kWords}).ok());
  const absl::Status written = model::testing::WriteTinyCheckpoint(
      main, R"({"model_type": "llama", "vocab_size": 257, "hidden_size": 16, "intermediate_size": 24,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8,
          "max_position_embeddings": 8192, "rms_norm_eps": 1e-5})");
  ASSERT_TRUE(written.ok()) << written;
  std::filesystem::copy(main, dir.path() + "/models/candidate", std::filesystem::copy_options::recursive);
  const auto markdown = ReadFile(IHA_DOCS_FOLDER "/ci-gating.md");
  ASSERT_TRUE(markdown.ok()) << markdown.status();
  const std::string commands = Blocks(*markdown, "sh");
  ASSERT_THAT(commands, HasSubstr("iha-eval gate "));

  const RunResult result = testing::RunProgram(
      {"/bin/bash", "-euc",
       fmt::format("export PATH={}:/usr/bin:/bin; cd {}\n{}", IHA_PROGRAM_FOLDER, dir.path(), commands)});
  ASSERT_EQ(result.exit.code, 0) << result.out << result.err;
  std::istringstream expected(Blocks(*markdown, "text"));
  int lines = 0;
  for (std::string line; std::getline(expected, line); lines++) EXPECT_THAT(result.out, HasSubstr(line));
  EXPECT_GE(lines, 3);
  EXPECT_THAT(ReadFile(dir.path() + "/gate.xml").value_or(""), HasSubstr("tests=\"3\" failures=\"0\" errors=\"0\""));
  EXPECT_THAT(ReadFile(dir.path() + "/gate.md").value_or(""), HasSubstr("### Evaluation gate: PASS\n"));
}

}  // namespace
}  // namespace iha
