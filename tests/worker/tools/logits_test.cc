// iha-tool logits and check-oracle.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/file.h"
#include "model/checkpoint/safetensors.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/tools/tool_run.h"

namespace iha::tools {
namespace {

using checkpoint::Safetensors;
using checkpoint::TensorView;
using iha::testing::TempDir;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
using testing::LineCount;
using testing::Rows;
using testing::RunTool;

class Logits : public ::testing::Test {
 protected:
  Logits() {
    const absl::Status made = model::MakeFakeCheckpoint(dir_.path(), {.context_tokens = 256});
    EXPECT_TRUE(made.ok()) << made;
  }
  RunResult Run(const std::string& ids, const std::string& out, const std::string& chunk = "256") {
    return RunTool(
        {"logits", "--model", dir_.path(), "--numerics", "fake", "--ids", "-", "--out", out, "--chunk", chunk}, ids);
  }

  TempDir dir_;
};

TEST_F(Logits, WritesOneRowAnId) {
  std::vector<int32_t> ids(150);
  for (size_t i = 0; i < ids.size(); i++) ids[i] = static_cast<int32_t>(i * 7 % 257);
  const RunResult whole = Run(Json(ids).dump(), dir_.File("whole.safetensors"), "0");
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  const auto file = Safetensors::Open(dir_.File("whole.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 1u);
  const TensorView* logits = file->Find("logits");
  ASSERT_NE(logits, nullptr);
  EXPECT_EQ(logits->dtype, checkpoint::DType::kF32);
  EXPECT_EQ(logits->shape, (std::vector<int64_t>{150, 257}));
  // Chunks and the other form of the ids: the same bytes.
  const RunResult chunked = Run(Json({{"ids", ids}}).dump(), dir_.File("chunked.safetensors"), "7");
  ASSERT_EQ(chunked.exit.code, 0) << chunked.err;
  EXPECT_EQ(*ReadFile(dir_.File("whole.safetensors")), *ReadFile(dir_.File("chunked.safetensors")));
  // Causal: the rows of a prefix are its own.
  ids.resize(10);
  ASSERT_EQ(Run(Json(ids).dump(), dir_.File("prefix.safetensors")).exit.code, 0);
  const auto prefix = Safetensors::Open(dir_.File("prefix.safetensors"));
  const auto bytes = prefix->Find("logits")->bytes;
  ASSERT_EQ(bytes.size(), 10u * 257 * 4);
  EXPECT_EQ(std::memcmp(bytes.data(), logits->bytes.data(), bytes.size()), 0);
}

TEST_F(Logits, BadIdsLeaveNoFile) {
  const std::pair<std::string, const char*> cases[] = {
      {"[]", "no ids; expected at least one"},
      {"{\"ids\":[]}", "no ids; expected at least one"},
      {"[1,257]", "id 257 at [1]; expected 0 to 256"},
      {"[1,-3]", "[1]: found -3"},
      {"[1,\"a\"]", "[1]: found \"a\""},
      {"7", "not an array of token ids"},
      {"", "not an array of token ids"},
      {"{\"id\":[1]}", "field \"ids\": missing"},
      {std::string(1'000'000, '[') + std::string(1'000'000, ']'), "--ids -: JSON nested 1000000 deep"},
      {Json(std::vector<int>(257, 1)).dump(), "257 ids; the model's context is 256"},
  };
  for (const auto& [ids, message] : cases) {
    const RunResult result = Run(ids, dir_.File("out.safetensors"));
    EXPECT_EQ(result.exit.code, 3) << ids;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(LineCount(result.err), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(dir_.File("out.safetensors")));
  }
  EXPECT_NE(Run("[1]", "/nowhere/out.safetensors").exit.code, 0);
}

TEST_F(Logits, AnInterruptLeavesNothingBehind) {
  ASSERT_TRUE(model::MakeFakeCheckpoint(dir_.path(), {.context_tokens = 1 << 20}).ok());
  const std::string out = dir_.File("out.safetensors"), ids = dir_.File("ids.json");
  std::ofstream(ids) << Json(std::vector<int>(1 << 20, 1)).dump();
  // A row a step: far from done when the signal comes, which is as soon as there is something to leave behind.
  ChildOptions options;
  options.argv = {IHA_TOOL,  "logits", "--model", dir_.path(), "--numerics", "fake",
                  "--chunk", "1",      "--ids",   ids,         "--out",      out};
  auto child = ChildProcess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto entries = [this] {
    return std::distance(std::filesystem::directory_iterator(dir_.path()), std::filesystem::directory_iterator());
  };
  const auto before = entries();
  while (entries() == before && !child->Wait(absl::Milliseconds(1)).has_value()) continue;
  child->Kill(SIGINT);
  const std::optional<ExitState> exit = child->Wait(absl::InfiniteDuration());
  EXPECT_EQ(exit->code, 4) << exit->ToString();
  EXPECT_EQ(entries(), before);
}

TEST_F(Logits, WhatAKilledOneOnItsWayToStdoutLeftIsRemovedByTheNext) {
  ASSERT_TRUE(model::MakeFakeCheckpoint(dir_.path(), {.context_tokens = 1 << 20}).ok());
  const std::string temporary = dir_.File("tmp"), ids = dir_.File("ids.json");
  std::filesystem::create_directory(temporary);
  std::ofstream(ids) << Json(std::vector<int>(1 << 20, 1)).dump();
  ChildOptions options;
  options.env.push_back("TMPDIR=" + temporary);
  options.argv = {IHA_TOOL,  "logits", "--model", dir_.path(), "--numerics", "fake",
                  "--chunk", "1",      "--out",   "-",         "--ids",      ids};
  auto child = ChildProcess::Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto is_empty = [&] { return std::filesystem::is_empty(temporary); };
  while (is_empty() && !child->Wait(absl::Milliseconds(1)).has_value()) continue;
  child->Kill(SIGKILL);
  child->Wait(absl::InfiniteDuration());
  EXPECT_FALSE(is_empty());
  options.argv.back() = "-";
  const auto next = RunChild(options, "[1,2,3]", {.timeout = absl::Minutes(9)});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->exit.code, 0) << next->err;
  EXPECT_TRUE(is_empty());
}

std::vector<std::string> WithFolders(const std::vector<std::string>& folders) {
  std::vector<std::string> arguments = {"check-oracle", "--threads", "2"};
  arguments.insert(arguments.end(), folders.begin(), folders.end());
  return arguments;
}

TEST(CheckOracle, ReportsEachFolder) {
  IHA_REQUIRE_CASES(cases);
  const std::string families = cases + "/hf_families/";
  const RunResult result = RunTool(WithFolders({families + "llama_default", families + "gemma3_5to1/"}));
  EXPECT_EQ(result.exit.code, 0) << result.err;
  const auto rows = Rows(result.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["oracle"], "llama_default");
  EXPECT_EQ(rows[0]["tolerance"], 1e-4);
  EXPECT_EQ(rows[1]["oracle"], "gemma3_5to1");
  for (const Json& row : rows) {
    EXPECT_EQ(row["ok"], true);
    EXPECT_LE(row["max_abs_err"], row["tolerance"]);
    EXPECT_GT(row["max_abs_err"], 0);  // fp32 is not float64
    EXPECT_LE(row["attn_out_max_abs_err"], row["attn_out_tolerance"]);
  }
  auto chunked = WithFolders({families + "llama_default", families + "gemma3_5to1/"});
  chunked.insert(chunked.end(), {"--chunk", "5"});
  EXPECT_EQ(RunTool(chunked).out, result.out);
}

// A copy of an oracle with one expected value moved.
void CopyWithMovedValue(const std::string& from, const std::string& to, const std::string& tensor) {
  std::filesystem::copy(from, to);
  const std::string path = to + "/expected.safetensors";
  std::string bytes = *ReadFile(path);
  const std::string file = from + "/expected.safetensors";
  const auto original = Safetensors::Open(file);
  const TensorView* view = original->Find(tensor);
  ASSERT_NE(view, nullptr);
  const std::string values(reinterpret_cast<const char*>(view->bytes.data()), view->bytes.size());
  const size_t at = bytes.find(values);
  ASSERT_NE(at, std::string::npos);
  double value = 0;
  std::memcpy(&value, bytes.data() + at + 8, sizeof value);
  value += 0.01;
  std::memcpy(bytes.data() + at + 8, &value, sizeof value);
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(CheckOracle, FailsWhenLogitsOrAttentionAreOutOfTolerance) {
  IHA_REQUIRE_CASES(cases);
  TempDir dir;
  const std::string good = cases + "/hf_families/llama_default";
  for (const char* tensor : {"logits", "attn_out.1"}) {
    const std::string moved = dir.File(tensor);
    CopyWithMovedValue(good, moved, tensor);
    const RunResult result = RunTool(WithFolders({moved, good}));
    EXPECT_EQ(result.exit.code, 5) << tensor << result.err;
    const auto rows = Rows(result.out);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0]["ok"], false) << tensor;
    EXPECT_EQ(rows[1]["ok"], true);
    const bool logits = std::string(tensor) == "logits";
    EXPECT_EQ(rows[0]["max_abs_err"] > rows[0]["tolerance"], logits);
    EXPECT_EQ(rows[0]["attn_out_max_abs_err"] > rows[0]["attn_out_tolerance"], !logits);
  }
}

TEST(CheckOracle, BadCheckpointsAreALineWithAnError) {
  IHA_REQUIRE_CASES(cases);
  TempDir dir;
  const std::string good = cases + "/hf_families/llama_default";
  std::filesystem::copy(good, dir.File("unlabelled"));
  std::filesystem::remove(dir.File("unlabelled") + "/expected.safetensors");
  const std::vector<std::string> folders = {cases + "/attention_oracles/bad/truncated_safetensors", "/nowhere/at-all",
                                            dir.File("unlabelled"), good};
  const RunResult result = RunTool(WithFolders(folders));
  EXPECT_EQ(result.exit.code, 3);
  const auto rows = Rows(result.out);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["oracle"], "truncated_safetensors");
  EXPECT_EQ(rows[1]["oracle"], "at-all");
  for (size_t i = 0; i < 3; i++) {
    EXPECT_EQ(rows[i]["ok"], false);
    EXPECT_TRUE(rows[i]["max_abs_err"].is_null());
    EXPECT_THAT(rows[i]["error"].get<std::string>(), HasSubstr(i == 2 ? "expected.safetensors" : folders[i]));
  }
  EXPECT_EQ(rows[3]["ok"], true);
  EXPECT_EQ(LineCount(result.err), 3) << result.err;
}

}  // namespace
}  // namespace iha::tools
