#include "benchmarks/scoring/choice_scores.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "common/errors.h"
#include "common/status_macros.h"
#include "common/text.h"

namespace iha::scoring {
namespace {

// The whole of `text` as a number.
template <class T>
bool ReadNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// What stands before the next `mark`, which is taken away too; false: there is none.
bool TakeUntil(std::string_view& text, char mark, std::string_view& part) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return false;
  part = text.substr(0, at);
  text.remove_prefix(at + 1);
  return true;
}

bool ReadLine(std::string_view line, ChoiceScore& score) {
  std::string_view likelihood, tokens;
  if (!TakeUntil(line, ' ', likelihood) || !TakeUntil(line, ' ', tokens)) return false;
  if (!ReadNumber(likelihood, score.loglikelihood) || std::isnan(score.loglikelihood)) return false;
  if (!ReadNumber(tokens, score.tokens) || score.tokens < 1) return false;
  score.greedy = line == "1";
  return score.greedy || line == "0";
}

// The index of the first largest value.
size_t ArgMax(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

std::string FormatChoiceScores(const std::vector<ChoiceScore>& scores) {
  std::string text;
  for (const ChoiceScore& score : scores) {
    text += fmt::format("{} {} {}\n", score.loglikelihood, score.tokens, score.greedy ? 1 : 0);
  }
  return text;
}

absl::StatusOr<std::vector<ChoiceScore>> ParseChoiceScores(std::string_view text, size_t choices) {
  std::vector<ChoiceScore> scores;
  for (std::string_view line; TakeUntil(text, '\n', line);) {
    if (!ReadLine(line, scores.emplace_back())) {
      return DataLoss("scores of choices: line {}: found \"{}\", expected \"LOGLIKELIHOOD TOKENS 0|1\"", scores.size(),
                      TerminalSafe(line, 80));
    }
  }
  if (!text.empty()) return DataLoss("scores of choices: found \"{}\" behind the last line", TerminalSafe(text, 80));
  if (scores.size() != choices) {
    return DataLoss("scores of choices: found {} lines, expected one for each of {} choices", scores.size(), choices);
  }
  return scores;
}

int64_t CharacterCount(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

size_t LikeliestChoice(const std::vector<ChoiceScore>& scores) {
  std::vector<double> values;
  for (const ChoiceScore& score : scores) values.push_back(score.loglikelihood);
  return ArgMax(values);
}

size_t LikeliestByLength(const std::vector<ChoiceScore>& scores, const std::vector<std::string>& choices) {
  std::vector<double> values;
  for (size_t i = 0; i < scores.size(); ++i) {
    values.push_back(scores[i].loglikelihood / static_cast<double>(CharacterCount(choices[i])));
  }
  return ArgMax(values);
}

}  // namespace iha::scoring
