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

// From `pos` to the end of its line, or to `end`.
string_view LineAt(string_view text, size_t pos, size_t end) {
  return text.substr(pos, std::min(text.find('\n', pos), end) - pos);
}

bool IsOperator(string_view text, size_t pos) {
  for (const string_view op : {"+", "-", "*", "/", "=", "x ", "\u00d7", "\u00f7", "\u2212", "\\times", "\\div"}) {
    if (text.substr(pos).starts_with(op)) return true;
  }
  return false;
}

bool OperatorFollows(string_view line, const NumberMatch& number) {
  size_t behind = number.end;
  while (behind < line.size() && line[behind] == ' ') ++behind;
  return IsOperator(line, behind);
}

// The number that a line states: its first, or, when that is an operand of a calculation, the lone one behind its "=".
std::optional<RobustAnswer> NumberOfLine(string_view line, const char* rule) {
  auto match = NextNumber(line, 0);
  if (!match.has_value()) return std::nullopt;
  const size_t equals = line.rfind('=');
  if (equals != kNone && equals >= match->end && OperatorFollows(line, *match)) {
    auto result = NextNumber(line, equals + 1);
    if (result.has_value() && !OperatorFollows(line, *result)) match = std::move(result);
  }
  return RobustAnswer{match->value, rule, std::string(line.substr(match->begin, match->end - match->begin))};
}

// The candidates of a rule are tried from the last one backwards; each reads on to where the one after it began, since
// that one found nothing from there to the end of the line.
std::optional<RobustAnswer> FromHash(string_view text) {
  size_t end = text.size();
  for (size_t pos = text.rfind("####"); pos != kNone; pos = pos == 0 ? kNone : text.rfind("####", pos - 1)) {
    const string_view line = LineAt(text, pos + 4, std::max(end, pos + 4));
    end = pos;
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

// Where the statement behind "answer" (whose end is `pos`) begins: behind a verb, ":" or "=" that follows at once, or
// behind " is " after "answer to ..." and "answer for ..." of the same clause. "Express the answer as a percentage: 3 /
// 4" and "the long answer questions: 5" state nothing.
size_t StatementAfterAnswer(string_view lower, size_t pos) {
  const size_t word_end = pos;
  while (pos < lower.size() && (lower[pos] == ' ' || lower[pos] == '*')) ++pos;
  for (const string_view verb : {":", "=", "is ", "is:", "is\n", "was ", "would be ", "will be ", "should be "}) {
    if (lower.substr(pos).starts_with(verb)) return pos + verb.size() - (verb.back() == '\n' ? 1 : 0);
  }
  const string_view clause = lower.substr(word_end, kVerbWindow);
  if (!clause.starts_with(" to ") && !clause.starts_with(" for ")) return kNone;
  const size_t verb = clause.find(" is ");
  return verb < clause.find_first_of("\n.?:,") ? word_end + verb + 4 : kNone;
}

std::optional<RobustAnswer> FromAnswerIs(string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  const string_view view = lower;
  constexpr string_view kWord = "answer";
  size_t end = text.size();
  for (size_t pos = view.rfind(kWord); pos != kNone; pos = pos == 0 ? kNone : view.rfind(kWord, pos - 1)) {
    const size_t statement = StatementAfterAnswer(view, pos + kWord.size());
    if (statement == kNone || statement > end) continue;
    if (auto answer = NumberOfLine(LineAt(text, statement, end), "last 'answer is'")) return answer;
    end = statement;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Boxed> LastBoxed(string_view text, size_t limit, bool escapes) {
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
      if (escapes && text[i] == '\\') {
        ++i;
        continue;
      }
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
