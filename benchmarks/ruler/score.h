// score.h: how NVIDIA's scripts judge a prediction, and what they print of a task's predictions.
//
// Pure, thread-safe; linear in references x prediction. Source: NVIDIA/RULER @ c3f5e3b, scripts/eval/evaluate.py
// (postprocess_pred) and synthetic/constants.py (string_match_all, string_match_part); str methods as CPython's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/ruler/tasks.h"
#include "common/eval_types.h"

namespace iha::benchmarks::ruler {

const char* NameOf(Match match);  // "string_match_all", "string_match_part"

// The prediction as it is judged: stripped, characters below U+0020 made newlines, stripped again.
std::string CleanPrediction(std::string_view prediction);

// Which of `references` the cleaned prediction holds, in lower case on both sides.
std::vector<bool> FoundIn(const std::vector<std::string>& references, std::string_view prediction);

// In [0, 1], lowest terms: kAll the share that was found, kPart 1 if any was. `found`: FoundIn's, at least one:
// upstream fails on a row without references.
Score ScoreOf(Match match, const std::vector<bool>& found);

// The score that upstream prints for a task, "97.35": the mean of `scores`, at least one, x 100, in doubles added up in
// row order and rounded as Python rounds.
std::string OfficialPercent(std::span<const Score> scores);

}  // namespace iha::benchmarks::ruler
