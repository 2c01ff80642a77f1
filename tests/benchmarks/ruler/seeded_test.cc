// Seeded rows: what they are made of, that each depends on its number alone, what happens where texts are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/benchmarks/ruler/audit.h"
#include "tests/benchmarks/ruler/ruler_support.h"

namespace iha::benchmarks::ruler {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(RulerSeeded, RowsAreWhatTheyMustBe) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  AuditSeededRows(data, cases, 4096, 4);
}

TEST(RulerSeeded, RowsDependOnTheirNumberAlone) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  for (const Task& task : Tasks()) {
    RulerOptions options = SmolLm2Options(data, cases, std::string(task.name), 2048);
    options.mode = Mode::kSeeded;
    const auto whole = MakeRows(options, 0, 5);
    options.threads = 3;
    const auto range = MakeRows(options, 2, 3);
    ASSERT_TRUE(whole.ok() && range.ok()) << whole.status() << range.status();
    if (whole->end.has_value()) {
      EXPECT_EQ(task.name, "qa_2") << whole->end->cause;  // ten documents of a question's own
      continue;
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(whole->rows[2 + i], range->rows[i]) << task.name << " " << i;
    options.seed = 43;
    const auto other = MakeRows(options, 2, 1);
    EXPECT_NE(other->rows[0].input, range->rows[0].input) << task.name;
  }
}

TEST(RulerSeeded, QuestionsEnd) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  RulerOptions options = SmolLm2Options(data, cases, "qa_2", 4096);
  options.mode = Mode::kSeeded;
  const auto rows = MakeRows(options, 98, 4);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->rows.size(), 2u);
  ASSERT_TRUE(rows->end.has_value());
  EXPECT_EQ(*rows->end, (RowsEnd{EndKind::kDataExhausted, 100, "the data has 100 questions, none with number 100"}));
}

TEST(RulerSeeded, WithoutEssaysAGeneratedHaystackSaysSo) {
  IHA_REQUIRE_DATA(data);
  IHA_REQUIRE_CASES(cases);
  const testing::TempDir root;
  fs::create_directories(root.File("ruler"));
  fs::create_directory_symlink(fs::path(data) / "ruler/wonderwords", root.File("ruler/wonderwords"));
  RulerOptions options = SmolLm2Options(root.path(), cases, "niah_multivalue", 2048);
  options.texts = nullptr;
  EXPECT_THAT(Generator::Open(options).status().message(), HasSubstr("PaulGrahamEssays.json: no such file"));
  options.mode = Mode::kSeeded;
  const auto rows = MakeRows(options, 0, 2);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->provenance, HasSubstr("generated haystack"));
  ASSERT_EQ(rows->rows.size(), 2u);
  for (const RulerRow& row : rows->rows) {
    EXPECT_GE(row.length, 2048 - 20);
    for (const std::string& value : row.outputs) EXPECT_THAT(row.input, HasSubstr("is: " + value + "."));
  }
}

}  // namespace
}  // namespace iha::benchmarks::ruler
