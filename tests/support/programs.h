// programs.h: runs the built programs as a user would: arguments in, exit code and outputs out.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/child_process.h"

namespace iha::testing {

// IHA_PROGRAM_FOLDER is a compile definition of the test targets that use this.
inline std::string ProgramPath(const std::string& name) { return fmt::format("{}/{}", IHA_PROGRAM_FOLDER, name); }

// argv[0]: a program's name, or a path.
inline RunResult RunProgram(std::vector<std::string> argv, std::string_view input = "",
                            absl::Duration timeout = absl::Minutes(5)) {
  ChildOptions options;
  options.argv = std::move(argv);
  if (options.argv[0].find('/') == std::string::npos) options.argv[0] = ProgramPath(options.argv[0]);
  // Sanitizer builds read their options from the environment; data roots come by flag.
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "HOME"}) {
    if (const char* value = std::getenv(name)) options.env.push_back(fmt::format("{}={}", name, value));
  }
  RunLimits limits;
  limits.timeout = timeout;
  limits.stdout_bytes = size_t{64} << 20;
  auto result = RunChild(options, input, limits);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->timed_out);
  return *std::move(result);
}

}  // namespace iha::testing
