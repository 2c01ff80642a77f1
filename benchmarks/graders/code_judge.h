// code_judge.h: who judges programs that a model wrote. Benchmarks only know this interface: running such programs
// belongs to the worker (worker/sandbox/judge.h), and a process without one leaves their metrics unscored.
//
// Thread-safe. Blocking up to the time limits of the rule, and while all places to run are taken.
// Errors: FailedPrecondition (nothing can be run on this machine: no retry), Unavailable (no verdict, also on a second
// try); never a program's failure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace iha::benchmarks {

// What a candidate is judged by. All of it is the benchmark's own: trusted.
struct CodeTask {
  std::string id;
  std::string setup;                 // runs between candidate and tests; "" = none
  std::string tests;                 // what stands behind the candidate in the official program
  std::string reference;             // a whole program that passes: gives the time scale, and helpers of the tests
  std::vector<std::string> entries;  // names that the tests take from the candidate; empty: all that they use
};

enum class CodeRule {
  kDefault,  // setup runs; CPU time up to max(10 s, 10 times the reference's)
  kLmEval,   // no setup, 3 s
};

struct CodeVerdict {
  bool official_passed = false;  // the program ran to its end: what upstream counts
  bool suspect = false;          // and it did, but nothing that the candidate could not have forged confirms it
  bool passed() const { return official_passed && !suspect; }
  // "passed", "suspect", "timed out", "failed: TYPE", "exited", "killed", "out of memory": the same for equal programs.
  std::string result;
  std::string reason;  // one line that says why, the same for equal programs; holds names of the candidate's: untrusted
  // For people: may differ from run to run; untrusted.
  std::string detail;  // the exception with its message
  std::string out;
  std::string err;
};

class CodeJudge {
 public:
  virtual ~CodeJudge() = default;
  // Whether programs can be judged here; what is missing, else. Cheap once it has answered.
  virtual absl::Status Ready() = 0;
  virtual absl::StatusOr<CodeVerdict> Judge(const CodeTask& task, const std::string& candidate, CodeRule rule) = 0;
  // Candidates that it can judge at a time.
  virtual int parallel() const = 0;
};

// The official program.
std::string ProgramOf(const CodeTask& task, std::string_view candidate, CodeRule rule);

}  // namespace iha::benchmarks
