// roots.h: where tests find the benchmark data and the labelled cases that live outside the repository.
//
// IHA_EVAL_DATA names the data root, IHA_EVAL_CASES the case root (./dev exports both when ../shared exists beside the
// checkout). Absent: the test is skipped with the reason "no data root"; under IHA_EVAL_REQUIRE_DATA=1 it fails.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace iha::testing {

inline std::optional<std::string> RootFrom(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || !std::filesystem::is_directory(value)) return std::nullopt;
  return std::string(value);
}
inline std::optional<std::string> DataRoot() { return RootFrom("IHA_EVAL_DATA"); }
inline std::optional<std::string> CasesRoot() { return RootFrom("IHA_EVAL_CASES"); }
// The imported SmolLM2 checkpoint (./dev model makes it) or nullopt.
inline std::optional<std::string> ModelRoot() { return RootFrom("IHA_EVAL_TEST_MODEL"); }

inline bool DataRequired() {
  const char* value = std::getenv("IHA_EVAL_REQUIRE_DATA");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace iha::testing

#define IHA_REQUIRE_ROOT_(var, expr)                            \
  const std::optional<std::string> var##_root_ = (expr);        \
  if (!var##_root_.has_value()) {                               \
    if (iha::testing::DataRequired()) FAIL() << "no data root"; \
    GTEST_SKIP() << "no data root";                             \
  }                                                             \
  const std::string var = *var##_root_
#define IHA_REQUIRE_DATA(var) IHA_REQUIRE_ROOT_(var, iha::testing::DataRoot())
#define IHA_REQUIRE_CASES(var) IHA_REQUIRE_ROOT_(var, iha::testing::CasesRoot())
#define IHA_REQUIRE_MODEL(var) IHA_REQUIRE_ROOT_(var, iha::testing::ModelRoot())
