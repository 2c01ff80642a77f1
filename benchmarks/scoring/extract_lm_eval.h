// extract_lm_eval.h: how lm-evaluation-harness 0.4.13 finds and compares GSM8K answers, bug for bug.
//
// Its filters are regular expressions of a few symbols; they are written out by hand here so that the quirks can be
// read: digits are ASCII, an answer cut by the expression stays cut (docs/formats.md, "Benchmark specs and metrics").
// Each returns what the tool logs, "[invalid]" when nothing matched. Pure, thread-safe, linear in the text's length.
// Source: lm_eval/tasks/gsm8k/*.yaml, lm_eval/filters/extraction.py, lm_eval/api/metrics.py (exact_match) at 0.4.13.
#pragma once

#include <string>
#include <string_view>

namespace iha::scoring {

inline constexpr std::string_view kLmEvalInvalid = "[invalid]";

// First match of `#### (\-?[0-9\.\,]+)`.
std::string LmEvalGsm8kStrict(std::string_view output);
// Last match of `(-?[$0-9.,]{2,})|(-?[0-9]+)`. Also the flexible filter of gsm8k_cot and gsm8k_cot_llama.
std::string LmEvalGsm8kFlexible(std::string_view output);
// First match of `The answer is (\-?[0-9\.\,]+).`: the last dot is any character but a newline, so the group gives its
// own last character away where the answer ends the line.
std::string LmEvalGsm8kCotStrict(std::string_view output);
// Last match of `The final answer is ((-?[$0-9.,]{2,})|(-?[0-9]+))`.
std::string LmEvalGsm8kCotLlamaStrict(std::string_view output);
// First match of `The answer is (\-?[0-9\.\,]*[0-9]+)`: score-first of gsm8k_cot_self_consistency.
std::string LmEvalGsm8kSelfConsistency(std::string_view output);

// The substitutions that exact_match applies to both sides, in order: delete `,`; delete `$`; delete `(?s).*#### `;
// delete `\.$` ($ also matches before a final newline); then lower-case. Lower-casing is ASCII only: an extracted
// answer has no letters (or is "[invalid]"), so other letters of a gold answer can't make the two sides equal.
std::string LmEvalNormalise(std::string_view text);

}  // namespace iha::scoring
