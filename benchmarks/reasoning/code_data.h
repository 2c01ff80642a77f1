// code_data.h: HumanEval's and MBPP's problems as they are published, and the task that each sets a candidate.
//
// Values; pure but for the readers, which block on one checked file (manifest.h) and give its errors. Line ends and
// blanks are kept: prompts and tests are compared byte for byte with what other tools show and run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/graders/code_judge.h"

namespace iha::benchmarks {

inline constexpr char kHumanEvalFile[] = "humaneval/HumanEval.jsonl.gz";
inline constexpr char kMbppFile[] = "mbpp/mbpp.jsonl";
inline constexpr char kMbppSanitizedFile[] = "mbpp/sanitized-mbpp.json";

struct HumanEvalProblem {
  std::string task_id;  // "HumanEval/0"
  std::string prompt;
  std::string entry_point;
  std::string canonical_solution;
  std::string test;
};
// All 164, in file order.
absl::StatusOr<std::vector<HumanEvalProblem>> ReadHumanEval(const std::string& data_root);
// Tests: the problem's, and the call of check().
CodeTask TaskOf(const HumanEvalProblem& problem);

enum class MbppSet { kFull, kSanitized };  // 974 and 427 problems

struct MbppProblem {
  int64_t task_id = 0;
  std::string text;   // the task in words
  std::string code;   // the reference
  std::string setup;  // test_setup_code, or the sanitized set's test_imports
  std::vector<std::string> tests;
};
// In file order.
absl::StatusOr<std::vector<MbppProblem>> ReadMbpp(const std::string& data_root, MbppSet set);
// Tests: one a line.
CodeTask TaskOf(const MbppProblem& problem);

// The text of a gzip file, of all its members. DataLoss: not one, or longer than `max_bytes`.
absl::StatusOr<std::string> Gunzip(std::string_view bytes, size_t max_bytes);

}  // namespace iha::benchmarks
