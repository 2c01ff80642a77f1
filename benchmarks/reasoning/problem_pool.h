// problem_pool.h: questions with answers, addressed by row: a checked JSON Lines file or text bundled in the program.
//
// Immutable, thread-safe. Rows of a file are parsed when asked for: opening GSM8K must cost its digest, not its parse.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace iha::benchmarks {

struct WordProblem {
  std::string question;
  std::string answer;    // as an exemplar shows it and graders take it
  std::string solution;  // "" where the data have none beside the answer
  std::string id;        // "" where the data have none
};

// Names of the string fields of a row; "" = the data have no such field.
struct ProblemFields {
  std::string question;
  std::string answer;
  std::string solution = "";
  std::string id = "";
};

class ProblemPool {
 public:
  virtual ~ProblemPool() = default;
  virtual int64_t size() const = 0;
  // 0 <= row < size().
  virtual WordProblem At(int64_t row) const = 0;
};

// One JSON object a line. `bytes` must be a file that the manifest has checked: a row that can't be parsed would be our
// bug and reads as an empty problem.
std::unique_ptr<const ProblemPool> JsonLinesPool(std::string bytes, ProblemFields fields);

struct BundledProblem {
  std::string_view question;
  std::string_view answer;
};
// `problems` must outlive the pool.
std::unique_ptr<const ProblemPool> BundledPool(std::span<const BundledProblem> problems);

}  // namespace iha::benchmarks
