// Which statements say no value (extract_shape.h).
#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "benchmarks/scoring/math/clean.h"
#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/number_words.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;
using Words = std::unordered_set<string_view>;

constexpr size_t kNone = string_view::npos;
constexpr size_t kLooked = 12;  // words of a statement

// Judgements of an answer. They end a statement, or a reason follows.
bool IsJudgement(string_view word) {
  static const auto* const kWords =
      new Words{"correct",  "right",   "wrong",     "incorrect",  "verified",   "confirmed",  "checked",
                "boxed",    "valid",   "validated", "consistent", "reasonable", "unique",     "accurate",
                "complete", "obvious", "clear",     "simplified", "plausible",  "acceptable", "good"};
  return kWords->contains(word);
}

bool LeadsReason(string_view word) {
  static const auto* const kWords =
      new Words{"because", "since", "as",    "and",  "by",    "so",   "in",    "with",  "for",       "above", "below",
                "now",     "too",   "also",  "if",   "that",  "here", "but",   "given", "according", "up",    "then",
                "indeed",  "at",    "which", "from", "using", "when", "after", "only",  "or"};
  return kWords->contains(word);
}

// Words that point to where the answer stands, or say what kind of thing it is.
bool Points(string_view word) {
  static const auto* const kWords = new Words{
      "above",     "below",    "see",       "shown",     "given",     "stated",      "as",        "in",      "already",
      "exact",     "obtained", "found",     "what",      "here",      "ready",       "expressed", "written", "provided",
      "indicated", "marked",   "enclosed",  "listed",    "derived",   "based",       "same",      "that",    "this",
      "easy",      "simple",   "presented", "displayed", "mentioned", "highlighted", "expected",  "desired", "required",
      "therefore", "thus",     "now",       "supposed",  "going",     "likely",      "probably"};
  return kWords->contains(word);
}

bool NamesAKind(string_view word) {
  static const auto* const kWords =
      new Words{"integer",  "number",     "fraction",   "decimal",  "value",  "expression", "multiple",
                "integers", "percentage", "polynomial", "quantity", "answer", "result",     "solution"};
  return kWords->contains(word);
}

// In lower case, up to a reason.
std::vector<std::string> WordsOf(string_view text) {
  std::vector<std::string> words;
  for (size_t i = 0; i < text.size() && words.size() < kLooked;) {
    size_t end = i;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    if (end > i) words.push_back(LowerAscii(text.substr(i, end - i)));
    i = std::max(end, i + 1);
  }
  return words;
}

string_view WithoutReason(string_view text) {
  const std::string lower = LowerAscii(text);
  for (const string_view word : {" because ", " since ", " as "}) text = text.substr(0, lower.find(word));
  return text;
}

}  // namespace

bool SaysNothing(string_view text) {
  constexpr string_view kMarks = "{}$ \t\r\n.,:;~*";
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      if (kMarks.find(text[i]) == kNone) return false;
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    const string_view name = text.substr(i + 1, end - i - 1);
    if (name.empty()) {
      if (end < text.size() && string_view("()[],;:! \n").find(text[end]) == kNone) return false;
      i = std::min(end + 1, text.size());
      continue;
    }
    static const auto* const kDress =
        new Words{"boxed", "fbox", "text", "textbf", "mathrm", "mathbf", "mbox", "quad", "qquad", "displaystyle"};
    if (!kDress->contains(name)) return false;
    i = end;
  }
  return true;
}

bool IsNegated(string_view statement) {
  const std::string lower = LowerAscii(statement.substr(0, 8));
  const bool german = lower.starts_with("nicht ");
  if (!german && !lower.starts_with("not ") && lower != "not") return false;
  const string_view rest = TrimSpaces(statement.substr(std::min<size_t>(german ? 6 : 4, statement.size())));
  // "not possible", "not defined" are answers.
  const bool lone = !rest.empty() && IsAsciiLetter(rest[0]) && (rest.size() == 1 || !IsAsciiLetter(rest[1]));
  return rest.empty() || !IsAsciiLetter(rest[0]) || lone || IsRemark(rest);
}

bool IsRemark(string_view statement) {
  statement = TrimSpaces(statement);
  if (IsNegated(statement)) return true;
  if (statement.empty() || !IsAsciiLetter(statement[0])) return false;
  const std::vector<std::string> words = WordsOf(statement);
  size_t first = 0;
  const auto skips = [](string_view word) {
    return word == "indeed" || word == "also" || word == "clearly" || word == "definitely" || word == "actually" ||
           word == "therefore" || word == "thus" || word == "now" || word == "fully" || word == "already" ||
           word == "the";
  };
  while (first + 1 < words.size() && skips(words[first])) ++first;
  const std::string& word = words[first];
  const bool last = first + 1 == words.size();
  const Shape shape = ShapeOf(WithoutReason(statement));
  const bool mathematics = shape.digits || shape.formula;
  if (IsJudgement(word) && (last ? !mathematics : LeadsReason(words[first + 1]))) return true;
  if (mathematics) return false;
  if (Points(word)) return true;
  const bool article = word == "a" || word == "an";
  const size_t end = std::min(words.size(), first + 4);
  return article &&
         std::any_of(words.begin() + static_cast<ptrdiff_t>(first), words.begin() + static_cast<ptrdiff_t>(end),
                     [](const std::string& w) { return NamesAKind(w); });
}

string_view SaidLast(string_view text) {
  text = TrimSpaces(text);
  while (!text.empty() && string_view(".*!\"` \n").find(text.back()) != kNone) text.remove_suffix(1);
  const size_t line = text.rfind('\n');
  if (line != kNone) text.remove_prefix(line + 1);
  const size_t point = text.rfind(". ");
  if (point != kNone) text.remove_prefix(point + 2);
  std::string lower = LowerAscii(text);
  for (const string_view reason : {", since ", ", because ", " because "}) {
    lower.resize(std::min(lower.size(), lower.find(reason)));
  }
  const auto said = [&](string_view words) { return text.substr(lower.size() - words.size(), words.size()); };
  for (const string_view words : {"no solution",
                                  "no solutions",
                                  "no real solution",
                                  "no real solutions",
                                  "no integer solutions",
                                  "no real roots",
                                  "no such number",
                                  "no such integers",
                                  "does not exist",
                                  "do not exist",
                                  "diverges to infinity",
                                  "is undefined",
                                  "is not defined",
                                  "infinitely many solutions",
                                  "is all real numbers",
                                  "is infinity",
                                  "is negative infinity",
                                  "is \u221e",
                                  "is $\\infty$",
                                  "is e",
                                  "is $e$",
                                  "is \u03c0",
                                  "is $\\pi$"}) {
    if (lower.size() <= words.size() || !lower.ends_with(words)) continue;
    return said(words.starts_with("is ") ? words.substr(3) : words);
  }
  const size_t last = lower.rfind(' ');
  if (last == kNone) return "";
  const string_view word = string_view(lower).substr(last + 1);
  const string_view before = string_view(lower).substr(0, last);
  // "48 boxes on Friday" is no Friday.
  const auto is_behind = [&](string_view link) {
    return before.ends_with(std::string(" is") + std::string(link)) ||
           before.ends_with(std::string(" be") + std::string(link));
  };
  if (before.ends_with(" is neither even nor")) return text.substr(lower.rfind("neither even"), 7);
  const bool day = is_behind("") || is_behind(" a") || is_behind(" on") || is_behind(" on a");
  if (WeekdayOf(word).has_value() && word.ends_with("day") && day) return said(word);
  return is_behind("") && (word == "odd" || word == "even" || word == "neither") ? said(word) : string_view();
}

bool StatesValue(string_view answer) {
  const Shape shape = ShapeOf(answer);
  if (shape.digits || shape.formula) return true;
  while (!answer.empty() && answer.back() == '.') answer.remove_suffix(1);
  const std::string lower = LowerAscii(TrimSpaces(answer));
  static const auto* const kWords =
      new Words{"yes", "no", "true", "false", "undefined", "none", "even", "odd", "no solution", "infinitely many"};
  return lower.size() == 1 || kWords->contains(lower) || CountInWords(TextKey(lower)).has_value() ||
         PlainCommand(lower).has_value() || WeekdayOf(lower).has_value() || MonthOf(lower).has_value();
}

}  // namespace iha::scoring::math
