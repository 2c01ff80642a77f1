// The paper's five attention variants on five benchmarks, from tiny checkpoints to the printed table: one small run of
// everything that a table goes through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "model/fake_model.h"
#include "tests/model/device/tiny_checkpoint.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tools.h"

namespace iha {
namespace {

using ::testing::HasSubstr;
using testing::RunProgram;
using Json = nlohmann::json;

struct Variant {
  const char* name;
  const char* layers;  // of "attention", repeated
};
constexpr Variant kVariants[] = {
    {"iha",
     R"({"kind": "iha", "pseudo_heads": 2, "alpha_layout": "source_target_pseudo", "collapse": "per_head",
         "mask": "flat_causal", "rope_positions": "virtual", "rope_pairing": "half",
         "window": {"unit": "token", "size": 64}, "qk_norm": "none"},
        {"kind": "global", "rope_pairing": "half", "qk_norm": "none"})"},
    {"global", R"({"kind": "global", "rope_pairing": "half", "qk_norm": "none"})"},
    {"global-local", R"({"kind": "local", "rope_pairing": "half", "window": 64, "qk_norm": "none"},
                        {"kind": "global", "rope_pairing": "half", "qk_norm": "none"})"},
    {"talking-heads", R"({"kind": "talking_heads", "rope_pairing": "half", "window": null, "qk_norm": "none"})"},
    {"diff", R"({"kind": "diff", "rope_pairing": "half", "window": null, "lambda_init": "depth", "norm_eps": 1e-5})"},
};

class VariantsSweep : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  // Two layers over bytes; the weights are random, so nothing is answered right but by chance.
  void MakeModels() const {
    for (const Variant& variant : kVariants) {
      const std::string folder = Path(std::string("models/") + variant.name);
      ASSERT_TRUE(model::MakeFakeCheckpoint(folder, {.style = model::FakeStyle::kWords}).ok());
      const absl::Status written = model::testing::WriteTinyCheckpoint(
          folder, fmt::format(R"({{"model_type": "llama", "vocab_size": 257, "hidden_size": 16, "intermediate_size": 24,
              "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8,
              "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "iha_eval": {{"version": 1, "mlp": "gated",
              "pattern": "repeat", "attention": [{}]}}}})",
                              variant.layers));
      ASSERT_TRUE(written.ok()) << variant.name << ": " << written;
    }
  }

  // Table 2's columns over two items each, a text of 1,024 tokens (bytes) of RULER's, and a benchmark of one's own.
  void WriteSweep() const {
    ASSERT_TRUE(
        WriteFileAtomic(Path("quiz.jsonl"), "{\"question\":\"q\",\"choices\":[\"ab\",\"c\"],\"answer\":1}\n").ok());
    Json models = Json::array();
    for (const Variant& variant : kVariants) models.push_back(variant.name);
    const auto entry = [](Json extra) {
      extra["limit"] = 2;
      extra["max_new_tokens"] = 12;
      return extra;
    };
    const Json sweep = {{"version", 1},
                        {"models", models},
                        {"benchmarks",
                         {entry({{"spec", "gsm8k?fewshot=1"}, {"metrics", {"gsm8k.flexible_extract"}}}),
                          entry({{"spec", "gsm8k?fewshot=1"},
                                 {"samples", 5},
                                 {"temperature", 0.6},
                                 {"metrics", {"maj@5?metric=gsm8k.flexible_extract"}}}),
                          entry({{"spec", "math500?fewshot=0"}, {"metrics", {"math.robust"}}}),
                          entry({{"spec", "mbpp"}, {"metrics", {"mbpp.pass@1"}}}),
                          entry({{"spec", "humaneval"}, {"metrics", {"humaneval.pass@1"}}}),
                          {{"spec", "ruler:fwe@1024"}, {"limit", 2}},
                          {{"spec", "choice:" + Path("quiz.jsonl")}, {"metrics", {"acc"}}}}},
                        {"numerics", {{"backend", "cpu-exact"}}}};
    ASSERT_TRUE(WriteFileAtomic(Path("sweep.json"), sweep.dump(2)).ok());
  }

  RunResult Run(const std::string& out, const std::string& data, const std::vector<std::string>& more) const {
    std::vector<std::string> argv = {
        "iha-eval", "run",    "--sweep",    Path("sweep.json"), "--models-root", Path("models"), "--data-root", data,
        "--layout", "table2", "--baseline", "global",           "--quiet",       "--out",        Path(out)};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  }
  RunResult Table(const std::string& db, const std::string& format) const {
    const Json listed = Json::parse(RunProgram({"iha-eval", "list", "--db", db, "--json"}).out);
    return RunProgram({"iha-eval", "table", "--db", db, "--sweep", listed["sweep"].get<std::string>(), "--layout",
                       "table2", "--baseline", "global", "--format", format});
  }
  void OpenInBrowser(const std::string& page) const {
    IHA_REQUIRE_TOOL(browser, "chromium-headless-shell");
    ASSERT_TRUE(WriteFileAtomic(Path("page.html"), page).ok());
    ASSERT_TRUE(WriteFileAtomic(Path("hostile.json"), R"(["global-local", "talking-heads"])").ok());
    const RunResult used = RunProgram(
        {"/usr/bin/python3", "tests/reports/check_page.py", browser, Path("page.html"), Path("hostile.json")});
    EXPECT_EQ(used.exit.code, 0) << used.out << used.err;
  }

  testing::TempDir dir_;
};

TEST_F(VariantsSweep, FromCheckpointsToTheTableInEveryFormat) {
  IHA_REQUIRE_DATA(data);
  MakeModels();
  WriteSweep();
  const RunResult one = Run("one", data, {"--workers", "1"});
  ASSERT_EQ(one.exit.code, 0) << one.err;
  const RunResult two = Run("two", data, {"--workers", "2", "--max-batch", "3"});
  ASSERT_EQ(two.exit.code, 0) << two.err;
  EXPECT_EQ(one.out, two.out);
  for (const char* column :
       {"GSM8K EM", "GSM8K Maj@5", "MATH-500 EM", "MBPP P@1", "HumanEval P@1", "ruler:fwe@1024", "Avg. Rank"}) {
    EXPECT_THAT(one.out, HasSubstr(column));
  }
  for (const char* format : {"md", "csv", "json", "latex", "html"}) {
    const RunResult first = Table(Path("one/iha-eval.db"), format);
    ASSERT_EQ(first.exit.code, 0) << first.err;
    EXPECT_EQ(first.out, Table(Path("two/iha-eval.db"), format).out) << format;
    for (const Variant& variant : kVariants) EXPECT_THAT(first.out, HasSubstr(variant.name)) << format;
  }
  const Json table = Json::parse(Table(Path("one/iha-eval.db"), "json").out);
  for (const Json& row : table["rows"]) {
    for (const Json& cell : row["cells"]) EXPECT_TRUE(cell["complete"].get<bool>()) << row["model"] << cell;
  }
  EXPECT_EQ(RunProgram({"iha-eval", "fsck", "--db", Path("two/iha-eval.db")}).exit.code, 0);
  OpenInBrowser(Table(Path("one/iha-eval.db"), "html").out);
}

}  // namespace
}  // namespace iha
