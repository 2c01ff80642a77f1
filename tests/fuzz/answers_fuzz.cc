// Model output and specs are untrusted: every answer rule must end, in linear time, and keep its promises.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "benchmarks/benchmark.h"
#include "benchmarks/scoring/answer_metric.h"
#include "benchmarks/scoring/choice_scores.h"
#include "benchmarks/scoring/extract_robust.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto& metric : iha::scoring::AnswerMetrics()) {
    const auto verdict = metric.judge("7", text);
    Require(verdict.ok());
    // What was extracted is one answer with itself.
    const std::string& answer = verdict->extraction.text;
    if (verdict->extraction.valid) Require(metric.equal(answer, answer).equal);
  }
  if (const auto answer = iha::scoring::RobustNumber(text)) {
    Require(text.find(answer->written) != std::string::npos);
    // The canonical number is a bare answer: it reads as itself (numbers of up to 1,000 digits are read).
    const std::string canonical = answer->value.ToString();
    if (canonical.size() < 1000) {
      const auto again = iha::scoring::RobustNumber(canonical);
      Require(again.has_value() && again->value == answer->value);
    }
  }
  // Scores of choices as a worker might send them: what is read is written and read the same.
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  if (const auto scores = iha::scoring::ParseChoiceScores(text, lines); scores.ok() && lines > 0) {
    const auto again = iha::scoring::ParseChoiceScores(iha::scoring::FormatChoiceScores(*scores), lines);
    Require(again.ok() && *again == *scores);
    Require(iha::scoring::LikeliestChoice(*scores) < lines);
  }
  if (const auto ref = iha::benchmarks::ParseBenchmarkRef(text); ref.ok()) {
    const auto again = iha::benchmarks::ParseBenchmarkRef(iha::benchmarks::ToString(*ref));
    Require(again.ok() && *again == *ref);
  }
  return 0;
}
