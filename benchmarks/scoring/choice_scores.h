// choice_scores.h: the log-likelihoods of an item's choices as text and back, and which choice they say.
//
// The text is what is stored and sent in a generation's place: one line a choice, "LOGLIKELIHOOD TOKENS GREEDY\n", the
// number in the fewest digits that give the same double again, GREEDY 1 when every token was the model's first choice.
// Rules of lm-evaluation-harness 0.4.13 (api/task.py, process_results of multiple_choice). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace iha::scoring {

struct ChoiceScore {
  double loglikelihood = 0;  // natural log, sum over its tokens; never NaN
  int32_t tokens = 0;        // that were scored, at least 1
  bool greedy = false;       // each was the argmax
  bool operator==(const ChoiceScore&) const = default;
};

std::string FormatChoiceScores(const std::vector<ChoiceScore>& scores);

// DataLoss: not what FormatChoiceScores writes for `choices` choices (says the line, found and expected).
absl::StatusOr<std::vector<ChoiceScore>> ParseChoiceScores(std::string_view text, size_t choices);

// Python's len(): Unicode characters of valid UTF-8.
int64_t CharacterCount(std::string_view text);

// acc: the likeliest choice, the first among equals (numpy.argmax). At least one.
size_t LikeliestChoice(const std::vector<ChoiceScore>& scores);
// acc_norm: the same of log-likelihood / characters of the choice itself, without what stands between prompt and
// choice. `choices`: one text a score, none empty.
size_t LikeliestByLength(const std::vector<ChoiceScore>& scores, const std::vector<std::string>& choices);

}  // namespace iha::scoring
