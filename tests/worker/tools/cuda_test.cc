// iha-tool --device cuda where there is no module, and where there is no such GPU.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/model/checkpoint/random_checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/tools/tool_run.h"

namespace iha::tools {
namespace {

using ::iha::testing::TempDir;
using ::testing::HasSubstr;
using testing::LineCount;
using testing::RunTool;

constexpr char kModel[] = R"({
    "model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": true})";

// As on a host where only the programs were installed.
TEST(Cuda, AMissingModuleIsOneLine) {
  const TempDir dir;
  std::filesystem::create_directories(dir.File("bin"));
  std::filesystem::copy(IHA_TOOL, dir.File("bin/iha-tool"));
  checkpoint::testing::WriteRandomCheckpoint(dir.File("model"), kModel);
  ChildOptions options;
  options.argv = {dir.File("bin/iha-tool"), "check-oracle", "--device", "cuda", dir.File("model")};
  const auto result = RunChild(options, "", {.timeout = absl::Minutes(5)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.code, 4);
  EXPECT_THAT(result->err, HasSubstr("iha-tool check-oracle: --device cuda: "));
  EXPECT_THAT(result->err, HasSubstr("lib/iha-eval/libiha_cuda_backend.so: not found; this build has no cuda backend"));
  EXPECT_EQ(LineCount(result->err), 1) << result->err;
  options.argv.insert(options.argv.end(), {"--numerics", "fast"});
  const auto fast = RunChild(options, "", {.timeout = absl::Minutes(5)});
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_EQ(fast->exit.code, 4);
  EXPECT_THAT(fast->err, HasSubstr("lib/iha-eval/libiha_cuda_fast_backend.so: not found; this build has no cuda_fast"));
  EXPECT_EQ(LineCount(fast->err), 1) << fast->err;
}

TEST(Cuda, FastNumericsAreNotForTheCpu) {
  const RunResult result = RunTool({"generate", "--model", "x", "--device", "cpu", "--numerics", "fast"});
  EXPECT_EQ(result.exit.code, 4);
  EXPECT_THAT(result.err, HasSubstr("--numerics fast: found --device cpu, expected cuda, cuda:N or emulated"));
  EXPECT_EQ(LineCount(result.err), 1) << result.err;
}

TEST(Cuda, ADeviceThatIsNotThereIsOneLine) {
#ifndef IHA_HAVE_CUDA
  GTEST_SKIP() << "built without the CUDA backend";
#endif
  const TempDir dir;
  checkpoint::testing::WriteRandomCheckpoint(dir.File("model"), kModel);
  for (const auto& command : {std::vector<std::string>{"check-oracle", "--device", "cuda:127", dir.File("model")},
                              std::vector<std::string>{"logits", "--device", "cuda:127", "--model", dir.File("model"),
                                                       "--ids", "/dev/null", "--out", dir.File("out.safetensors")},
                              std::vector<std::string>{"cuda-backend", "--device", "cuda:127"}}) {
    const RunResult result = RunTool(command);
    EXPECT_EQ(result.exit.code, 4) << command[0] << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr("iha-tool " + command[0] + ": --device cuda:127: found"));
    EXPECT_EQ(LineCount(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(dir.File("out.safetensors")));
}

TEST(Cuda, FakeNumericsAreNotForAGpu) {
  const RunResult result = RunTool({"generate", "--model", "x", "--device", "cuda", "--numerics", "fake"});
  EXPECT_EQ(result.exit.code, 4);
  EXPECT_THAT(result.err, HasSubstr("--numerics fake: not available on --device cuda; use --numerics exact"));
}

}  // namespace
}  // namespace iha::tools
