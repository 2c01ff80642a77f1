// tool_run.h: runs the built iha-tool.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/child_process.h"
#include "model/fake_model.h"

namespace iha::tools::testing {

// A child that hangs is ended; no check depends on how long it takes.
inline RunResult RunTool(std::vector<std::string> arguments, const std::string& input = "") {
  ChildOptions options;
  options.argv = {IHA_TOOL};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  auto result = RunChild(options, input, {.timeout = absl::Minutes(9), .stdout_bytes = size_t{64} << 20});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult();
}

inline std::vector<nlohmann::ordered_json> Rows(const std::string& text) {
  std::vector<nlohmann::ordered_json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(nlohmann::ordered_json::parse(line, nullptr, false));
    EXPECT_TRUE(rows.back().is_object()) << line;
  }
  return rows;
}

inline int LineCount(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

}  // namespace iha::tools::testing
