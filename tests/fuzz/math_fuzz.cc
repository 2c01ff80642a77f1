// Answers are model output: the LaTeX parser, the extraction and the comparison must hold for any bytes.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "benchmarks/scoring/math/math_robust.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

// The input is two answers around the first newline; without one, an answer against itself and "1".
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t middle = text.find('\n');
  const std::string left = text.substr(0, middle);
  const std::string right = middle == std::string::npos ? "1" : text.substr(middle + 1);
  const iha::scoring::MathBudget budget{.nodes = 4000, .ball_work = 300'000, .comparisons = 2000};
  const auto there = iha::scoring::JudgeMath(left, right, budget);
  const auto back = iha::scoring::JudgeMath(right, left, budget);
  Require(there.outcome == back.outcome && there.rule == back.rule && !there.rule.empty());
  const auto self = iha::scoring::JudgeMath(left, left, budget);
  Require(self.equal() || !iha::scoring::ExtractMathAnswer(left).found());
  return 0;
}
