// Every command explains itself: --help exits 0 and shows a real example. The commands are read from --help itself, so
// that a new one cannot be forgotten.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/programs.h"

namespace iha {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::RunProgram;

// The names under "Subcommands:" (one a line, indented by two blanks, the description beside or below it).
std::vector<std::string> Subcommands(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) inside = line.starts_with("Subcommands:");
    if (!inside || !line.starts_with("  ") || line.size() < 3 || line[2] == ' ') continue;
    names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

void CheckHelp(const std::vector<std::string>& command, std::vector<std::string>* seen) {
  std::vector<std::string> argv = command;
  argv.emplace_back("--help");
  SCOPED_TRACE(::testing::PrintToString(argv));
  const RunResult result = RunProgram(argv);
  EXPECT_EQ(result.exit.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Example"));
  // The example is of this very command.
  std::string name = command[0];
  for (size_t i = 1; i < command.size(); i++) name += " " + command[i];
  const size_t example = std::min(result.out.find("Example"), result.out.size());
  EXPECT_THAT(result.out.substr(example), HasSubstr(name));
  seen->push_back(name);
  for (const std::string& sub : Subcommands(result.out)) {
    std::vector<std::string> deeper = command;
    deeper.push_back(sub);
    CheckHelp(deeper, seen);
  }
}

TEST(Help, EveryCommandHasAnExample) {
  std::vector<std::string> seen;
  CheckHelp({"iha-eval"}, &seen);
  EXPECT_THAT(seen, Contains("iha-eval sweep example"));
  EXPECT_THAT(seen, Contains("iha-eval inspect"));
  EXPECT_THAT(seen, Contains("iha-eval generate"));
}

// The help of a command that is none would be that of another.
TEST(Help, OfAnUnknownCommandIsAUsageError) {
  for (const std::vector<std::string>& argv : {std::vector<std::string>{"iha-eval", "tabel", "--help"},
                                               {"iha-eval", "sweep", "exampel", "--help"},
                                               {"iha-tool", "generat", "--help"}}) {
    const RunResult result = RunProgram(argv);
    EXPECT_EQ(result.exit.code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("unknown command \""));
  }
}

}  // namespace
}  // namespace iha
