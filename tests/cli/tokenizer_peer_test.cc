// A slice of tools/tokenizer_peer: both programs on the same strings. `./dev peers` runs the whole.
#include <filesystem>

#include "tests/support/programs.h"
#include "tests/support/roots.h"

namespace iha::testing {
namespace {

TEST(TokenizerPeer, ASliceEqualsHuggingFace) {
  IHA_REQUIRE_CASES(cases);
  if (!std::filesystem::exists(fmt::format("{}/tokenizers", IHA_PEER_PACKAGES))) {
    if (DataRequired()) FAIL() << "no package tokenizers in .deps/peers; ./dev deps test installs it";
    GTEST_SKIP() << "no package tokenizers in .deps/peers; ./dev deps test installs it";
  }
  ChildOptions options;
  options.argv = {"/usr/bin/python3", IHA_PEER_SCRIPT,
                  "--program",        ProgramPath("iha-eval"),
                  "--cases",          cases,
                  "--count",          "1000",
                  "--configs",        "25"};
  options.env.push_back(fmt::format("PYTHONPATH={}", IHA_PEER_PACKAGES));
  options.env.push_back("PYTHONDONTWRITEBYTECODE=1");
  RunLimits limits;
  limits.timeout = absl::Minutes(5);
  const auto result = RunChild(options, "", limits);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->exit.ok()) << result->exit.ToString() << "\n" << result->out << result->err;
  EXPECT_NE(result->out.find("25 random pipelines"), std::string::npos) << result->out;
}

}  // namespace
}  // namespace iha::testing
