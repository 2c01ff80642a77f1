// tools.h: programs that tests compare with or look through; tools/deps/test.debian installs them.
#pragma once

#include <unistd.h>

#include <string>

#include "tests/support/roots.h"

namespace iha::testing {

// Its path, or "" where it is not installed.
inline std::string FindTool(const std::string& name) {
  for (const std::string folder : {"/usr/local/bin/", "/usr/bin/"}) {
    if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
  }
  return "";
}

}  // namespace iha::testing

#define IHA_REQUIRE_TOOL(var, name)                                                               \
  const std::string var = iha::testing::FindTool(name);                                           \
  if (var.empty()) {                                                                              \
    if (iha::testing::DataRequired()) FAIL() << name << " is not installed: run ./dev deps test"; \
    GTEST_SKIP() << name << " is not installed: run ./dev deps test";                             \
  }                                                                                               \
  static_assert(true)
