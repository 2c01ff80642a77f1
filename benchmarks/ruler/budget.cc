#include "benchmarks/ruler/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/errors.h"
#include "common/status_macros.h"

namespace iha::benchmarks::ruler {
namespace {

// Python's float // float: the floor of the exact quotient, where floor(a / b) may have been rounded up before.
double FloorDivide(double a, double b) {
  const double quotient = (a - std::fmod(a, b)) / b;
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

int64_t UpperBound(const Budget& budget, double tokens_per_unit) {
  const auto length = static_cast<double>(budget.length);
  const auto bound = budget.floor_rule ? static_cast<int64_t>(FloorDivide(length, tokens_per_unit)) * 2
                                       : static_cast<int64_t>(length / tokens_per_unit * 3);
  return std::max(bound, 2 * budget.step);
}

}  // namespace

absl::StatusOr<int64_t> FindSize(Sampler& sampler, const Budget& budget) {
  IHA_ASSIGN_OR_RETURN(const Sample estimate, sampler.Estimate(budget.first_probe));
  int64_t low = budget.step, best = budget.step;
  int64_t high = UpperBound(budget, static_cast<double>(estimate.tokens) / static_cast<double>(budget.first_probe));
  while (low <= high) {
    const int64_t middle = (low + high) / 2;
    IHA_ASSIGN_OR_RETURN(const Sample probe, sampler.Probe(middle));
    if (probe.tokens + budget.tokens_to_generate <= budget.length) {
      best = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

std::variant<Sample, DeadEnd> DrawRow(Sampler& sampler, const Budget& budget, int64_t size, std::string_view unit) {
  int64_t used = size, smallest = std::numeric_limits<int64_t>::max();
  std::string error;
  for (int attempts = 0; attempts < kMaxAttempts;) {
    absl::StatusOr<Sample> sample = sampler.Attempt(used);
    if (sample.ok() && sample->tokens + budget.tokens_to_generate <= budget.length) return *std::move(sample);
    if (used > budget.step) {
      used -= budget.step;
      continue;
    }
    ++attempts;
    if (sample.ok()) smallest = std::min(smallest, sample->tokens + budget.tokens_to_generate);
    if (!sample.ok()) error = std::string(sample.status().message());
  }
  const std::string why = smallest == std::numeric_limits<int64_t>::max()
                              ? error
                              : fmt::format("the shortest took {} tokens, {} to generate included; it may take {}",
                                            smallest, budget.tokens_to_generate, budget.length);
  return DeadEnd{fmt::format("{} attempts at {} {} gave no row: {}", kMaxAttempts, used, unit, why)};
}

}  // namespace iha::benchmarks::ruler
