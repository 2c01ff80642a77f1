// RULER on the real small model: its prompts are NVIDIA's rows for its tokenizer, and a run that was killed ends with
// the bytes of one that was not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "tests/support/gz_lines.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

using nlohmann::json;
using testing::RunProgram;

TEST(RulerModel, PromptsAreTheOfficialRowsAndKillsChangeNoByte) {
  IHA_REQUIRE_MODEL(model);
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  const testing::TempDir dir;
  const auto run = [&](const std::string& out, const std::vector<std::string>& extra) {
    std::vector<std::string> argv = {"iha-eval",    "run",
                                     "--model",     model,
                                     "--bench",     "ruler:niah_single_1@1024?template=base&max_new_tokens=12",
                                     "--limit",     "2",
                                     "--cache-dir", dir.File("cache"),
                                     "--data-root", data,
                                     "--out",       dir.File(out)};
    argv.insert(argv.end(), extra.begin(), extra.end());
    return RunProgram(argv);
  };
  const RunResult calm = run("calm", {});
  ASSERT_EQ(calm.exit.code, 0) << calm.err;
  ASSERT_EQ(run("dead", {"--fault", "store.commit.after_commit:kill:6"}).exit.signal, SIGKILL);
  const RunResult resumed = run("dead", {});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  for (const char* file : {"table.json", "samples.jsonl"}) {
    EXPECT_EQ(ReadFile(dir.File("calm") + "/" + file).value(), ReadFile(dir.File("dead") + "/" + file).value());
  }
  const json table = json::parse(ReadFile(dir.File("calm") + "/table.json").value());
  EXPECT_EQ(table["rows"][0]["cells"][0]["scored"], 2);

  const auto rows = testing::JsonRows(cases + "/ruler_rows/official_smollm2/1024/niah_single_1.jsonl.gz");
  for (int item = 0; item < 2; item++) {
    const RunResult story =
        RunProgram({"iha-eval", "explain", "--db", dir.File("calm") + "/iha-eval.db", "--sweep",
                    table["sweep"].get<std::string>(), "--model", table["rows"][0]["model"].get<std::string>(),
                    "--item", std::to_string(item), "--checkpoint", model, "--data-root", data, "--json"});
    ASSERT_EQ(story.exit.code, 0) << story.err;
    const json& row = rows.at(static_cast<size_t>(item));
    EXPECT_EQ(json::parse(story.out)["prompt"].get<std::string>(),
              row["input"].get<std::string>() + row["answer_prefix"].get<std::string>());
    EXPECT_EQ(json::parse(story.out)["gold"], row["outputs"][0]);
  }
}

}  // namespace
}  // namespace iha
