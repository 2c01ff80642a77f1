// ruler generate as a user runs it: files, exit codes, messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "tests/support/gz_lines.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::RunProgram;
using testing::TempDir;

std::vector<std::string> Generate(const std::string& data, const std::string& out,
                                  const std::vector<std::string>& more) {
  std::vector<std::string> argv = {"iha-eval", "ruler", "generate", "--tokenizer", "whitespace", "--data-root",
                                   data,       "--out", out};
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

TEST(RulerGenerate, WritesTheHandedRows) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  const TempDir dir;
  const RunResult result = RunProgram(
      Generate(data, dir.path(), {"--lengths", "4096", "--samples", "3", "--sentences", "simple", "--seed", "42"}));
  ASSERT_EQ(result.exit.code, 0) << result.err;
  int tasks = 0;
  for (const auto& file : fs::directory_iterator(cases + "/ruler_rows/official_whitespace/4096")) {
    const std::string name = file.path().filename().string();
    const std::string task = name.substr(0, name.find('.'));
    const std::string path = dir.path() + "/4096/" + task + ".jsonl";
    EXPECT_THAT(result.out, HasSubstr(path + ": 3 rows"));
    EXPECT_EQ(testing::JsonRows(path), testing::JsonRows(file.path().string())) << task;
    ++tasks;
  }
  EXPECT_EQ(tasks, 13);
}

TEST(RulerGenerate, AnEndKeepsTheRowsBeforeAndExits3) {
  IHA_REQUIRE_DATA(data);
  const TempDir dir;
  const RunResult result = RunProgram(
      Generate(data, dir.path(),
               {"--lengths", "4096", "--samples", "102", "--tasks", "qa_2,vt", "--mode", "seeded", "--threads", "2"}));
  EXPECT_EQ(result.exit.code, 3);
  EXPECT_THAT(result.err, HasSubstr("qa_2 at 4096: row 100: data_exhausted: the data has 100 questions"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(testing::JsonRows(dir.File("4096/qa_2.jsonl")).size(), 100u);
  EXPECT_EQ(testing::JsonRows(dir.File("4096/vt.jsonl")).size(), 102u);
}

TEST(RulerGenerate, BadInput) {
  IHA_REQUIRE_DATA(data);
  const TempDir dir;
  const auto expect_of = [&](const std::vector<std::string>& argv, int code, const std::string& message) {
    SCOPED_TRACE(::testing::PrintToString(argv));
    const RunResult result = RunProgram(argv);
    EXPECT_EQ(result.exit.code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(fs::exists(dir.File("out")));
  };
  const auto expect = [&](const std::vector<std::string>& more, int code, const std::string& message) {
    expect_of(Generate(data, dir.File("out"), more), code, message);
  };
  expect({"--lengths", "0"}, 2, "--lengths");
  expect({"--lengths", "4096", "--tasks", "niah_singel_1"}, 2, "did you mean \"niah_single_1\"");
  expect({"--lengths", "4096", "--mode", "fast"}, 2, "--mode");
  expect({"--lengths", "4096", "--template", "chatml"}, 2, "--template");
  expect({"--lengths", "4096", "--template", "model"}, 3, "--template base");
  expect({"--lengths", "4096,1024,4096"}, 2, "--lengths: 4096 is there twice");
  expect({"--lengths", "4096", "--tasks", "all,vt"}, 2, "--tasks: vt is there twice");
  // The minimum is named, and nothing is made of the task that would fit.
  expect({"--lengths", "4096,40", "--tasks", "vt"}, 3, "vt: length 40 is too short");
  expect({"--lengths", "4096", "--seed", "4294967296", "--tasks", "fwe"}, 3, "seeds below 2^32");
  expect_of(Generate(dir.File("none"), dir.File("out"), {"--lengths", "4096", "--tasks", "qa_1"}), 3,
            "ruler/qa/squad-dev-merged.json: no such file");
  expect_of(
      {"iha-eval", "ruler", "generate", "--lengths", "4096", "--tokenizer", dir.File("none"), "--out", dir.File("out")},
      3, "none: no such folder");
}

}  // namespace
}  // namespace iha
