// graders.h: where tests find the Python libraries of the SymPy graders (./dev exports IHA_EVAL_GRADERS).
#pragma once

#include <cstdlib>
#include <string>

#include "tests/support/roots.h"

namespace iha::testing {

inline std::string GraderLibraries() {
  const char* value = std::getenv("IHA_EVAL_GRADERS");
  return value == nullptr ? "" : value;
}

}  // namespace iha::testing

#define IHA_REQUIRE_GRADERS(var)                                                            \
  const std::string var = iha::testing::GraderLibraries();                                  \
  if (var.empty()) {                                                                        \
    if (iha::testing::DataRequired()) FAIL() << "no grader libraries: run ./dev deps test"; \
    GTEST_SKIP() << "no grader libraries: run ./dev deps test";                             \
  }                                                                                         \
  static_assert(true)
