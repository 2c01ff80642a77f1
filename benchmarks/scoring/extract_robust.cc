#include "benchmarks/scoring/extract_robust.h"

#include <algorithm>
#include <cstddef>

#include "benchmarks/scoring/number.h"

namespace iha::scoring {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
// Words between "answer" and its verb ("answer to the question is"), and unbalanced \boxed candidates: bounded, so that
// a hostile text stays linear.
constexpr size_t kVerbWindow = 60;
constexpr int kMaxBoxedTries = 32;

string_view LineAt(string_view text, size_t pos) {
  const size_t end = text.find('\n', pos);
  return text.substr(pos, end == kNone ? kNone : end - pos);
}

bool IsOperator(string_view text, size_t pos) {
  for (const string_view op : {"+", "-", "*", "/", "=", "x ", "\u00d7", "\u00f7", "\u2212", "\\times", "\\div"}) {
    if (text.substr(pos).starts_with(op)) return true;
  }
  return false;
}

// The number that a line states: its first, or the one behind the last "=" when the first is an operand.
std::optional<RobustAnswer> NumberOfLine(string_view line, const char* rule) {
  auto match = NextNumber(line, 0);
  if (!match.has_value()) return std::nullopt;
  size_t behind = match->end;
  while (behind < line.size() && line[behind] == ' ') ++behind;
  if (const size_t equals = line.rfind('='); IsOperator(line, behind) && equals != kNone && equals >= match->end) {
    if (auto result = NextNumber(line, equals + 1)) match = std::move(result);
  }
  return RobustAnswer{match->value, rule, std::string(line.substr(match->begin, match->end - match->begin))};
}

std::optional<RobustAnswer> FromHash(string_view text) {
  for (size_t pos = text.rfind("####"); pos != kNone; pos = pos == 0 ? kNone : text.rfind("####", pos - 1)) {
    const string_view line = LineAt(text, pos + 4);
    // "#####" is found once for each of its "####": only the last has no "#" behind it.
    if (!line.empty() && line.front() == '#') continue;
    if (auto answer = NumberOfLine(line, "last '####'")) return answer;
  }
  return std::nullopt;
}

std::optional<RobustAnswer> FromBoxed(string_view text) {
  size_t limit = text.size();
  for (int i = 0; i < kMaxBoxedTries; ++i) {
    const auto boxed = LastBoxed(text, limit);
    if (!boxed.has_value()) return std::nullopt;
    if (auto answer = NumberOfLine(boxed->content, "last \\boxed")) return answer;
    limit = boxed->begin;
  }
  return std::nullopt;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Where the statement behind "answer" (whose end is `pos`) begins: behind "is", ":" or "=" of the same clause.
size_t StatementAfterAnswer(string_view lower, size_t pos) {
  const size_t limit = std::min(lower.size(), pos + kVerbWindow);
  for (size_t i = pos; i < limit; ++i) {
    const char c = lower[i];
    if (c == ':' || c == '=') return i + 1;
    if (c == '\n' || c == '.' || c == '?' || c == ',') return kNone;
    for (const string_view verb : {" is ", " is:", " was ", " be ", "'s ", " is\n"}) {
      if (lower.substr(i).starts_with(verb)) return i + verb.size() - 1;
    }
  }
  return kNone;
}

std::optional<RobustAnswer> FromAnswerIs(string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  const string_view view = lower;
  constexpr string_view kWord = "answer";
  for (size_t pos = view.rfind(kWord); pos != kNone; pos = pos == 0 ? kNone : view.rfind(kWord, pos - 1)) {
    const size_t statement = StatementAfterAnswer(view, pos + kWord.size());
    if (statement == kNone) continue;
    if (auto answer = NumberOfLine(LineAt(text, statement), "last 'answer is'")) return answer;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Boxed> LastBoxed(string_view text, size_t limit) {
  // One pass from the right, with the matching brace of each "{" found by counting only inside its candidate; the
  // number of candidates is bounded.
  size_t pos = limit;
  for (int tries = 0; tries < kMaxBoxedTries && pos > 0; ++tries) {
    const size_t boxed = text.rfind("\\boxed", pos - 1);
    const size_t fbox = text.rfind("\\fbox", pos - 1);
    if (boxed == kNone && fbox == kNone) return std::nullopt;
    const bool is_boxed = fbox == kNone || (boxed != kNone && boxed > fbox);
    pos = is_boxed ? boxed : fbox;
    size_t open = pos + (is_boxed ? 6 : 5);
    while (open < text.size() && text[open] == ' ') ++open;
    if (open >= text.size() || text[open] != '{') continue;
    int depth = 0;
    for (size_t i = open; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) return Boxed{pos, text.substr(open + 1, i - open - 1)};
    }
  }
  return std::nullopt;
}

std::optional<RobustAnswer> RobustNumber(string_view text) {
  if (auto answer = FromHash(text)) return answer;
  if (auto answer = FromBoxed(text)) return answer;
  if (auto answer = FromAnswerIs(text)) return answer;
  if (auto last = LastNumber(text)) {
    return RobustAnswer{last->value, "last number", std::string(text.substr(last->begin, last->end - last->begin))};
  }
  return std::nullopt;
}

}  // namespace iha::scoring
