// `iha-eval run --device emulated` end to end: coordinator, worker processes, the kernels for the device under the
// emulator, table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RunProgram;

class EmulatedRun : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomic(Path("q.jsonl"), R"({"question":"ab","answer":"1"})"
                                                 "\n"
                                                 R"({"question":"cde","answer":"2"})"
                                                 "\n")
                    .ok());
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  // A model of two layers with the tokenizer of the fake ones (bytes).
  void Make(const std::string& name, const std::string& attention, int head_dim = 8) const {
    ASSERT_TRUE(model::MakeFakeCheckpoint(Path(name), {.style = model::FakeStyle::kWords}).ok());
    const absl::Status written = model::testing::WriteTinyCheckpoint(
        Path(name), fmt::format(R"({{"model_type": "llama", "vocab_size": 257, "hidden_size": 16,
            "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
            "head_dim": {}, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "iha_eval": {{"version": 1,
            "mlp": "gated", "pattern": "repeat", "attention": [{}]}}}})",
                                head_dim, attention));
    ASSERT_TRUE(written.ok()) << written;
  }
  RunResult Run(const std::string& model, const std::string& out, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv = {
        "iha-eval", "run",      "--model",          Path(model), "--bench", "jsonl:" + Path("q.jsonl"),
        "--device", "emulated", "--max-new-tokens", "3",         "--quiet", "--out",
        Path(out)};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  }
  std::string Read(const std::string& file) const { return ReadFile(Path(file)).value_or(""); }

  testing::TempDir dir_;
};

TEST_F(EmulatedRun, FromCoordinatorToTable) {
  Make("iha", R"({"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
      "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half", "window": null, "qk_norm": "none"})");
  const RunResult one = Run("iha", "one");
  ASSERT_EQ(one.exit.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("2/2"));
  const RunResult two = Run("iha", "two", {"--workers", "2", "--max-batch", "1"});
  ASSERT_EQ(two.exit.code, 0) << two.err;
  for (const char* file : {"table.json", "samples.jsonl"}) {
    EXPECT_EQ(Read(std::string("one/") + file), Read(std::string("two/") + file)) << file;
  }
  EXPECT_THAT(Read("one/table.json"), HasSubstr("cuda-emulated"));
}

// What it costs is told by operation, as on the CPU, but not beside the CPU's peak; no byte of a result depends on it.
TEST_F(EmulatedRun, ProfileTimesOperations) {
  Make("global", R"({"kind": "global", "rope_pairing": "half", "qk_norm": "none"})");
  ASSERT_EQ(Run("global", "plain").exit.code, 0);
  const RunResult run = Run("global", "profiled", {"--profile"});
  ASSERT_EQ(run.exit.code, 0) << run.err;
  for (const char* operation : {"qkv ", "positions ", "attention ", "attention_output ", "mlp ", "head "}) {
    EXPECT_THAT(run.err, HasSubstr(std::string("\n") + operation));
  }
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("machine")));
  EXPECT_EQ(Read("plain/samples.jsonl"), Read("profiled/samples.jsonl"));
}

TEST_F(EmulatedRun, ALayerWithoutAKernelIsOneLine) {
  Make("wide", R"({"kind": "global", "rope_pairing": "half", "qk_norm": "none"})", 258);
  const RunResult tool = RunProgram({"iha-eval", "logits", "--model", Path("wide"), "--ids", Path("ids.json"), "--out",
                                     Path("out.safetensors"), "--device", "emulated"});
  EXPECT_EQ(tool.exit.code, 3) << tool.err;
  EXPECT_THAT(tool.err,
              HasSubstr("layer 0: head_dim 258 (at most 256): the device has no kernel for it; use --device cpu"));
}

// Generation by hand: the same samples in any batch, and not those of the exact CPU engine's id.
TEST_F(EmulatedRun, ToolsTakeTheDevice) {
  Make("global", R"({"kind": "global", "rope_pairing": "half", "qk_norm": "none"})");
  const RunResult generated = RunProgram({"iha-eval", "generate", "--model", Path("global"), "--device", "emulated",
                                          "--max-new-tokens", "3", "--ignore-eos"},
                                         R"({"prompt": "ab"})"
                                         "\n");
  ASSERT_EQ(generated.exit.code, 0) << generated.err;
  EXPECT_EQ(nlohmann::json::parse(generated.out).at("samples").at(0).at("ids").size(), 3u) << generated.out;
  const RunResult refused = RunProgram(
      {"iha-eval", "generate", "--model", Path("global"), "--device", "emulated", "--numerics", "torch"}, "");
  EXPECT_EQ(refused.exit.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("--numerics torch: not available on --device emulated; use --numerics exact"));
}

}  // namespace
}  // namespace iha
