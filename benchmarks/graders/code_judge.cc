#include "benchmarks/graders/code_judge.h"

namespace iha::benchmarks {

std::string ProgramOf(const CodeTask& task, std::string_view candidate, CodeRule rule) {
  std::string program = std::string(candidate) + "\n";
  if (rule == CodeRule::kDefault && !task.setup.empty()) program += task.setup + "\n";
  return program + task.tests;
}

}  // namespace iha::benchmarks
