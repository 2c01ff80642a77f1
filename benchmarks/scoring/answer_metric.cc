#include "benchmarks/scoring/answer_metric.h"

#include <array>

#include "benchmarks/scoring/extract_lm_eval.h"
#include "benchmarks/scoring/extract_robust.h"
#include "common/errors.h"
#include "common/text.h"

namespace iha::scoring {
namespace {

Extraction FromLmEval(std::string answer, const char* rule) {
  const bool valid = answer != kLmEvalInvalid;
  return {std::move(answer), valid, rule};
}

Extraction ExtractStrict(std::string_view output) {
  return FromLmEval(LmEvalGsm8kStrict(output), "first '#### N' (lm-eval strict-match)");
}
Extraction ExtractFlexible(std::string_view output) {
  return FromLmEval(LmEvalGsm8kFlexible(output), "last number-like run (lm-eval flexible-extract)");
}
Extraction ExtractCotStrict(std::string_view output) {
  return FromLmEval(LmEvalGsm8kCotStrict(output),
                    "first 'The answer is N' and one more character (lm-eval strict-match)");
}
Extraction ExtractCotLlamaStrict(std::string_view output) {
  return FromLmEval(LmEvalGsm8kCotLlamaStrict(output), "last 'The final answer is N' (lm-eval strict-match)");
}
Extraction ExtractSelfConsistency(std::string_view output) {
  return FromLmEval(LmEvalGsm8kSelfConsistency(output), "first 'The answer is N' (lm-eval self-consistency)");
}

std::optional<std::string> LmEvalGold(std::string_view gold) { return LmEvalNormalise(gold); }

Extraction ExtractRobust(std::string_view output) {
  auto answer = RobustNumber(output);
  if (!answer.has_value()) return {"", false, "no number found"};
  return {answer->value.ToString(), true, answer->rule + ": '" + answer->written + "'"};
}

std::string Identity(std::string_view text) { return std::string(text); }

std::optional<std::string> RobustGold(std::string_view gold) {
  const auto answer = RobustNumber(gold);
  if (!answer.has_value()) return std::nullopt;
  return answer->value.ToString();
}

constexpr std::array<AnswerMetric, 8> kMetrics = {{
    {"gsm8k.strict_match", "lm-evaluation-harness 0.4.13 gsm8k strict-match, bug for bug", ExtractStrict,
     LmEvalNormalise, LmEvalGold},
    {"gsm8k.flexible_extract", "lm-evaluation-harness 0.4.13 gsm8k flexible-extract, bug for bug", ExtractFlexible,
     LmEvalNormalise, LmEvalGold},
    {"gsm8k.robust", "iha-eval: ####, boxed, 'answer is' or last number, compared as exact rationals", ExtractRobust,
     Identity, RobustGold},
    {"gsm8k_cot.strict_match", "lm-evaluation-harness 0.4.13 gsm8k_cot strict-match, bug for bug", ExtractCotStrict,
     LmEvalNormalise, LmEvalGold},
    {"gsm8k_cot.flexible_extract", "lm-evaluation-harness 0.4.13 gsm8k_cot flexible-extract, bug for bug",
     ExtractFlexible, LmEvalNormalise, LmEvalGold},
    {"gsm8k_cot_llama.strict_match", "lm-evaluation-harness 0.4.13 gsm8k_cot_llama strict-match, bug for bug",
     ExtractCotLlamaStrict, LmEvalNormalise, LmEvalGold},
    {"gsm8k_cot_llama.flexible_extract", "lm-evaluation-harness 0.4.13 gsm8k_cot_llama flexible-extract, bug for bug",
     ExtractFlexible, LmEvalNormalise, LmEvalGold},
    {"gsm8k_cot.self_consistency", "lm-evaluation-harness 0.4.13 gsm8k_cot_self_consistency, bug for bug",
     ExtractSelfConsistency, LmEvalNormalise, LmEvalGold},
}};

}  // namespace

std::span<const AnswerMetric> AnswerMetrics() { return kMetrics; }

const AnswerMetric* FindAnswerMetric(std::string_view name) {
  for (const AnswerMetric& metric : kMetrics) {
    if (name == metric.name) return &metric;
  }
  return nullptr;
}

absl::StatusOr<Verdict> Judge(const AnswerMetric& metric, std::string_view gold, std::string_view output) {
  const std::optional<std::string> expected = metric.gold(gold);
  if (!expected.has_value()) {
    return InvalidArgument("gold: '{}' holds no answer that {} can read; expected a number", TerminalSafe(gold, 80),
                           metric.name);
  }
  Verdict verdict;
  verdict.extraction = metric.extract(output);
  const std::string answer = metric.normalise(verdict.extraction.text);
  verdict.correct = answer == *expected;
  if (!verdict.extraction.valid) {
    verdict.reason = fmt::format("{}: nothing extracted, gold {}", verdict.extraction.rule, *expected);
  } else {
    verdict.reason = fmt::format("{}: {} {} gold {}", verdict.extraction.rule, answer,
                                 verdict.correct ? "equals" : "differs from", *expected);
  }
  return verdict;
}

}  // namespace iha::scoring
