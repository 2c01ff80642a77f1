// What the programs print and write is what docs/schemas says (docs/formats.md).
#include <gtest/gtest.h>

#include "model/fake_model.h"
#include "tests/support/programs.h"
#include "tests/support/roots.h"
#include "tests/support/temp_dir.h"

namespace iha {
namespace {

TEST(Formats, OutputsFollowTheirSchemas) {
  const testing::TempDir dir;
  const std::string model = dir.path() + "/alpha";
  ASSERT_TRUE(model::MakeFakeCheckpoint(model, {.style = model::FakeStyle::kWords}).ok());
  ChildOptions options;
  options.argv = {"/usr/bin/python3", IHA_FORMATS_SCRIPT, IHA_PROGRAM_FOLDER, IHA_SCHEMA_FOLDER, model, dir.path()};
  if (const auto cases = testing::CasesRoot(); cases.has_value()) {
    options.argv.push_back(*cases);
    if (const auto data = testing::DataRoot(); data.has_value()) options.argv.push_back(*data);
  } else {
    ASSERT_FALSE(testing::DataRequired()) << "no data root";
  }
  RunLimits limits;
  limits.timeout = absl::Minutes(5);
  const auto result = RunChild(options, "", limits);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.code, 0) << result->out << result->err;
}

}  // namespace
}  // namespace iha
