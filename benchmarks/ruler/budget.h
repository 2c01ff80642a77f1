// budget.h: NVIDIA's search for the largest size that fits, and its rows that are drawn anew until they fit.
//
// Every sample that is looked at is drawn from the task's one random stream, so the search decides all later rows.
// Pure but for the sampler. Source: the generate_samples functions of scripts/data/synthetic/*.py at c3f5e3b.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ruler/generate.h"

namespace iha::benchmarks::ruler {

// Attempts at the smallest size after which a row is given up; NVIDIA's scripts go on for ever.
inline constexpr int kMaxAttempts = 1000;

struct Sample {
  std::string text;  // the whole prompt, answer prefix included
  int64_t tokens = 0;
  std::vector<std::string> outputs;
  // niah rows only: characters and tokens of the input before the first reference.
  int64_t answer_at = -1;
  int64_t answer_token = -1;
};

// Draws complete samples of a size (words, lines, documents) from a task's stream.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // What tokens a unit are estimated from.
  virtual absl::StatusOr<Sample> Estimate(int64_t size) { return Probe(size); }
  // What the size search looks at. An error is one that ends NVIDIA's script: its draws stay consumed.
  virtual absl::StatusOr<Sample> Probe(int64_t size) = 0;
  // What becomes a row if it fits. An error counts as one that does not.
  virtual absl::StatusOr<Sample> Attempt(int64_t size) { return Probe(size); }
};

struct Budget {
  int64_t length = 0;  // tokens
  int64_t tokens_to_generate = 0;
  int64_t step = 0;         // the smallest size, and the size of one step
  int64_t first_probe = 0;  // the size from which tokens a unit are estimated
  bool floor_rule = false;  // cwe's upper bound: twice the whole quotient
};

// The size search. Errors: those of Probe.
absl::StatusOr<int64_t> FindSize(Sampler& sampler, const Budget& budget);

// Why no row came: what is left to say in a RowsEnd.
struct DeadEnd {
  std::string cause;
};
// The next row of at most `size`; `unit` names what is counted ("documents").
std::variant<Sample, DeadEnd> DrawRow(Sampler& sampler, const Budget& budget, int64_t size, std::string_view unit);

}  // namespace iha::benchmarks::ruler
