// iha-tool with and without the torch backend beside it.
#include <gmock/gmock.h>

#include <filesystem>

#include "common/file.h"
#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/model/torch/require_torch.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/tools/tool_run.h"

namespace iha::tools {
namespace {

using ::iha::testing::TempDir;
using ::testing::HasSubstr;
using testing::LineCount;
using ::testing::Not;
using testing::Rows;
using testing::RunTool;

TEST(Torch, ProgramsStartWithoutLibTorch) {
  const auto program = ReadFile(IHA_TOOL);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(*program, Not(HasSubstr("libtorch_cpu.so")));
}

// As on a host where only the programs were installed.
TEST(Torch, AMissingModuleIsOneLine) {
  const TempDir dir;
  std::filesystem::create_directories(dir.File("bin"));
  std::filesystem::copy(IHA_TOOL, dir.File("bin/iha-tool"));
  checkpoint::testing::WriteRandomCheckpoint(dir.File("model"), R"({
    "model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": true})");
  ChildOptions options;
  options.argv = {dir.File("bin/iha-tool"), "check-oracle", "--numerics", "torch", dir.File("model")};
  const auto result = RunChild(options, "", {.timeout = absl::Minutes(5)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.code, 4);
  EXPECT_THAT(result->err,
              HasSubstr("lib/iha-eval/libiha_torch_backend.so: not found; this build has no torch backend"));
  EXPECT_EQ(LineCount(result->err), 1) << result->err;
}

TEST(Torch, ChecksOracles) {
  IHA_REQUIRE_TORCH();
  IHA_REQUIRE_CASES(cases);
  const std::string oracles = cases + "/attention_oracles/";
  const RunResult result = RunTool(
      {"check-oracle", "--numerics", "torch", "--chunk", "5", oracles + "iha_hybrid10", oracles + "kinds_mixed_gqa"});
  EXPECT_EQ(result.exit.code, 0) << result.err;
  const auto rows = Rows(result.out);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) EXPECT_EQ(row["ok"], true) << row;
}

TEST(Torch, UnknownDevicesAreNamed) {
  IHA_REQUIRE_TORCH();
  IHA_REQUIRE_CASES(cases);
  const std::string folder = cases + "/attention_oracles/global_mha";
  const RunResult name = RunTool({"check-oracle", "--numerics", "torch", "--device", "gpu", folder});
  EXPECT_EQ(name.exit.code, 2);
  EXPECT_THAT(name.err, HasSubstr("--device: found \"gpu\", expected cpu, emulated, cuda or cuda:N"));
  const RunResult index = RunTool({"check-oracle", "--numerics", "torch", "--device", "cuda:127", folder});
  EXPECT_EQ(index.exit.code, 4);
  EXPECT_THAT(index.err, HasSubstr("--device cuda:127: "));
  EXPECT_EQ(LineCount(index.err), 1) << index.err;
}

}  // namespace
}  // namespace iha::tools
