#include "benchmarks/scoring/answer_metric.h"

#include <array>

#include "benchmarks/scoring/extract_lm_eval.h"
#include "benchmarks/scoring/extract_robust.h"
#include "benchmarks/scoring/hendrycks.h"
#include "benchmarks/scoring/math/math_robust.h"
#include "benchmarks/scoring/plain_answers.h"
#include "common/errors.h"
#include "common/status_macros.h"
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

std::string Against(const Extraction& extraction, const std::string& answer, bool correct, const std::string& gold) {
  if (!extraction.valid) return fmt::format("{}: nothing extracted, gold {}", extraction.rule, gold);
  return fmt::format("{}: {} {} gold {}", extraction.rule, answer, correct ? "equals" : "differs from", gold);
}

template <Extraction (*kExtract)(std::string_view)>
absl::StatusOr<Verdict> JudgeLmEval(std::string_view gold, std::string_view output) {
  Verdict verdict{.extraction = kExtract(output), .correct = false, .reason = {}};
  const std::string answer = LmEvalNormalise(verdict.extraction.text);
  const std::string expected = LmEvalNormalise(gold);
  verdict.correct = answer == expected;
  verdict.reason = Against(verdict.extraction, answer, verdict.correct, expected);
  return verdict;
}

// Equal texts are one answer, also where the rule cannot read an extracted answer again. `score equiv` asks so; votes
// group equal texts before they ask.
bool SameText(std::string_view a, std::string_view b) { return a == b && !a.empty(); }

Equality EqualTexts(const std::string& a, const std::string& b) {
  return {a == b, fmt::format("{} {} {}", a, a == b ? "equals" : "differs from", b)};
}

Equality EqualLmEval(std::string_view a, std::string_view b) {
  return EqualTexts(LmEvalNormalise(a), LmEvalNormalise(b));
}

absl::StatusOr<Verdict> JudgeRobustNumber(std::string_view gold, std::string_view output) {
  const auto expected = RobustNumber(gold);
  if (!expected.has_value()) {
    return InvalidArgument("gold: '{}' holds no answer that gsm8k.robust can read; expected a number",
                           TerminalSafe(gold, 80));
  }
  Verdict verdict;
  verdict.extraction.rule = "no number found";
  if (const auto answer = RobustNumber(output)) {
    verdict.extraction = {answer->value.ToString(), true, answer->rule + ": '" + answer->written + "'"};
    verdict.correct = answer->value == expected->value;
  }
  verdict.reason = Against(verdict.extraction, verdict.extraction.text, verdict.correct, expected->value.ToString());
  return verdict;
}

Equality EqualRobustNumber(std::string_view a, std::string_view b) {
  if (SameText(a, b)) return {true, "same text"};
  const auto x = RobustNumber(a);
  const auto y = RobustNumber(b);
  if (!x.has_value() || !y.has_value()) return {false, "no number found"};
  return EqualTexts(x->value.ToString(), y->value.ToString());
}

absl::StatusOr<Verdict> JudgeMathRobust(std::string_view gold, std::string_view output) {
  MathAnswer answer = GradedAnswer(gold, output);
  const MathVerdict math = JudgeMath(gold, output);
  const bool found = answer.found();
  return Verdict{.extraction = {std::move(answer.text), found, answer.step},
                 .correct = math.equal(),
                 .reason = fmt::format("{}; {}: {}", answer.step, NameOf(math.outcome), math.rule)};
}

Equality EqualMathRobust(std::string_view a, std::string_view b) {
  if (SameText(a, b)) return {true, "equal: same text"};
  const MathVerdict math = JudgeMath(a, b);
  return {math.equal(), fmt::format("{}: {}", NameOf(math.outcome), math.rule)};
}

// The gold answer may be a whole solution: then its box counts.
std::string GoldOfHendrycks(std::string_view gold) {
  const std::optional<std::string> box = LastBoxed(gold);
  const std::optional<std::string> inside = box.has_value() ? RemoveBoxed(*box) : std::nullopt;
  return inside.value_or(std::string(gold));
}

Equality EqualHendrycks(std::string_view a, std::string_view b) {
  const std::string x = HendrycksStrip(a).value_or(std::string(a));
  const std::string y = HendrycksStrip(b).value_or(std::string(b));
  const bool equal = HendrycksEquivalent(a, b);
  return {equal, fmt::format("{} {} {}", x, equal ? "equals" : "differs from", y)};
}

absl::StatusOr<Verdict> JudgeHendrycks(std::string_view gold, std::string_view output) {
  const std::string_view answer = HendrycksAnswer(output);
  const bool found = answer.find_first_not_of(" \t\r\n") != std::string_view::npos;
  const Equality equality = EqualHendrycks(answer, GoldOfHendrycks(gold));
  const char* rule = answer.size() < output.size() ? "between the first and the last '$'" : "whole output";
  return Verdict{.extraction = {std::string(answer), found, rule},
                 .correct = equality.equal,
                 .reason = fmt::format("{}: {}", rule, equality.reason)};
}

Equality EqualTrimmed(std::string_view a, std::string_view b) {
  return EqualTexts(std::string(Trimmed(a)), std::string(Trimmed(b)));
}

absl::StatusOr<Verdict> JudgeExact(std::string_view gold, std::string_view output) {
  const std::string answer(Trimmed(output));
  const bool correct = answer == Trimmed(gold);
  return Verdict{.extraction = {answer, !answer.empty(), "whole text"},
                 .correct = correct,
                 .reason = correct ? "the whole text equals gold" : "the whole text differs from gold"};
}

absl::StatusOr<Verdict> JudgeRegex(std::string_view gold, std::string_view output) {
  IHA_ASSIGN_OR_RETURN(const std::optional<std::string> match, FirstMatch(gold, output));
  return Verdict{.extraction = {match.value_or(""), match.has_value(), "first match"},
                 .correct = match.has_value(),
                 .reason = match.has_value() ? "the gold pattern matches" : "the gold pattern does not match"};
}

std::optional<std::string> LmEvalKey(std::string_view answer) { return LmEvalNormalise(answer); }

std::optional<std::string> TextKeyOf(std::string_view answer) { return std::string(Trimmed(answer)); }

// Plain whole numbers are equal when they are written alike; for anything else there is more than its text.
std::optional<std::string> WholeNumberKey(std::string_view answer) {
  const std::string_view digits = answer.starts_with('-') ? answer.substr(1) : answer;
  const bool plain = !digits.empty() && digits.size() <= 18 && digits.front() != '0' &&
                     digits.find_first_not_of("0123456789") == std::string_view::npos;
  return plain ? std::optional(std::string(answer)) : std::nullopt;
}

constexpr std::array<AnswerMetric, 12> kMetrics = {{
    {"gsm8k.strict_match", "lm-evaluation-harness 0.4.13 gsm8k strict-match, bug for bug", true,
     JudgeLmEval<ExtractStrict>, EqualLmEval, LmEvalKey},
    {"gsm8k.flexible_extract", "lm-evaluation-harness 0.4.13 gsm8k flexible-extract, bug for bug", true,
     JudgeLmEval<ExtractFlexible>, EqualLmEval, LmEvalKey},
    {"gsm8k.robust", "iha-eval: ####, boxed, 'answer is' or last number, compared as exact rationals", false,
     JudgeRobustNumber, EqualRobustNumber, WholeNumberKey},
    {"gsm8k_cot.strict_match", "lm-evaluation-harness 0.4.13 gsm8k_cot strict-match, bug for bug", true,
     JudgeLmEval<ExtractCotStrict>, EqualLmEval, LmEvalKey},
    {"gsm8k_cot.flexible_extract", "lm-evaluation-harness 0.4.13 gsm8k_cot flexible-extract, bug for bug", true,
     JudgeLmEval<ExtractFlexible>, EqualLmEval, LmEvalKey},
    {"gsm8k_cot_llama.strict_match", "lm-evaluation-harness 0.4.13 gsm8k_cot_llama strict-match, bug for bug", true,
     JudgeLmEval<ExtractCotLlamaStrict>, EqualLmEval, LmEvalKey},
    {"gsm8k_cot_llama.flexible_extract", "lm-evaluation-harness 0.4.13 gsm8k_cot_llama flexible-extract, bug for bug",
     true, JudgeLmEval<ExtractFlexible>, EqualLmEval, LmEvalKey},
    {"gsm8k_cot.self_consistency", "lm-evaluation-harness 0.4.13 gsm8k_cot_self_consistency, bug for bug", true,
     JudgeLmEval<ExtractSelfConsistency>, EqualLmEval, LmEvalKey},
    {"math.robust", "iha-eval: last box, final answer or last expression, compared as mathematics", false,
     JudgeMathRobust, EqualMathRobust, WholeNumberKey},
    {"math.hendrycks", "lm-evaluation-harness 0.4.13 hendrycks_math, bug for bug", false, JudgeHendrycks,
     EqualHendrycks, WholeNumberKey},
    {"exact", "the whole text equals the gold answer, white space around them aside", false, JudgeExact, EqualTrimmed,
     TextKeyOf},
    {"regex", "the gold answer is a PCRE2 pattern that matches somewhere in the text", false, JudgeRegex, EqualTrimmed,
     TextKeyOf},
}};

}  // namespace

std::span<const AnswerMetric> AnswerMetrics() { return kMetrics; }

const AnswerMetric* FindAnswerMetric(std::string_view name) {
  for (const AnswerMetric& metric : kMetrics) {
    if (name == metric.name) return &metric;
  }
  return nullptr;
}

}  // namespace iha::scoring
