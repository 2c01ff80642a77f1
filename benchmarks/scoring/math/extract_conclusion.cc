// What a last expression comes to (extract_impl.h): of "2a = 16\sqrt{3}" the right side, of a derivation its last row.
#include <algorithm>
#include <vector>

#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;

// Without blanks, math delimiters, and points at the end.
string_view Undressed(string_view text) {
  for (bool again = true; again;) {
    again = false;
    text = TrimSpaces(text);
    while (!text.empty() && (text.back() == '.' || text.back() == ','))
      text = TrimSpaces(text.substr(0, text.size() - 1));
    for (const auto& [open, close] :
         {std::pair<string_view, string_view>{"$$", "$$"}, {"$", "$"}, {"\\[", "\\]"}, {"\\(", "\\)"}}) {
      if (text.size() < open.size() + close.size() || !text.starts_with(open) || !text.ends_with(close)) continue;
      text = text.substr(open.size(), text.size() - open.size() - close.size());
      again = true;
      break;
    }
  }
  return text;
}

// What stands at the top level of a formula: rows, relations, commas.
struct Marks {
  size_t row = 0;              // behind the last "\\"
  std::vector<size_t> equals;  // of that row, behind each "="
  std::vector<size_t> before;  // and in front of it
  bool other = false;          // another relation, a comma, a second formula
};

Marks MarksOf(string_view text) {
  Marks marks;
  int depth = 0;
  const auto equals = [&](size_t at, size_t size) {
    marks.before.push_back(at);
    marks.equals.push_back(at + size);
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      size_t end = i + 1;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      const string_view name = text.substr(i + 1, end - i - 1);
      if (name == "begin" || name == "end") depth += name == "begin" ? 1 : -1;
      if (name.empty() && depth == 0 && text.substr(i).starts_with("\\\\")) {
        marks = Marks{.row = i + 2, .equals = {}, .before = {}, .other = false};
      } else if (depth == 0 && (name == "Rightarrow" || name == "implies" || name == "Longrightarrow")) {
        marks = Marks{.row = end, .equals = {}, .before = {}, .other = false};
      } else if (depth == 0 && name == "equiv") {
        equals(i, end - i);
      } else if (depth == 0) {
        const bool relation = name == "le" || name == "leq" || name == "ge" || name == "geq" || name == "ne" ||
                              name == "neq" || name == "in" || name == "lt" || name == "gt" || name == "not" ||
                              name == "approx";
        const bool apart = (name == "quad" || name == "qquad") && !marks.equals.empty();
        marks.other = marks.other || relation || apart;
      }
      i = std::max(end, i + 2) - 1;
    } else if (c == '{' || c == '(' || c == '[' || c == '}' || c == ')' || c == ']') {
      depth += c == '{' || c == '(' || c == '[' ? 1 : -1;
    } else if (depth == 0 && c == '=') {
      equals(i, 1);
    } else if (depth == 0 && string_view("<>,;$").find(c) != kNone) {
      marks.other = true;
    } else if (depth == 0 && IsAsciiLetter(c)) {
      size_t end = i + 1;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      marks.other = marks.other || (end > i + 1 && IsConnective(text.substr(i, end - i)));  // "x = 4 or x = -4"
      i = end - 1;
    }
  }
  return marks;
}

bool IsLetter(string_view text) {
  text = TrimSpaces(text);
  return text.size() == 1 && IsAsciiLetter(text[0]);
}

// The name of the environment of rows that a formula begins with; "" for none.
string_view RowsEnvironment(string_view formula) {
  if (!formula.starts_with("\\begin{")) return "";
  const string_view name = formula.substr(7, std::min(formula.find('}'), formula.size()) - 7);
  return IsRows(name) ? name : string_view();
}

// A formula without delimiters, of an environment of rows its inside; "" for an environment that is not all of it.
string_view RowsOf(string_view text) {
  string_view formula = Undressed(text);
  const string_view name = RowsEnvironment(formula);
  if (name.empty()) return formula;
  const std::string close = "\\end{" + std::string(name) + "}";
  const size_t open = 8 + name.size();
  if (!formula.ends_with(close) || formula.size() < open + close.size()) return "";
  formula = Undressed(formula.substr(open, formula.size() - open - close.size()));
  return formula.ends_with("\\\\") ? Undressed(formula.substr(0, formula.size() - 2)) : formula;
}

// The letters outside of commands, each once.
std::string LettersOf(string_view text) {
  std::string letters;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      while (i + 1 < text.size() && IsAsciiLetter(text[i + 1])) ++i;
    } else if (IsAsciiLetter(text[i]) && letters.find(text[i]) == std::string::npos) {
      letters += text[i];
    }
  }
  return letters;
}

// "x = 12", "x &= 12": the letter and a value without it.
bool IsSolved(string_view row, char letter) {
  row = TrimSpaces(row);
  const size_t equals = row.find('=');
  if (equals == kNone || row.empty() || row[0] != letter) return false;
  return row.substr(1, equals - 1).find_first_not_of(" &") == kNone && LettersOf(row.substr(equals)).empty();
}

}  // namespace

bool IsRows(string_view name) {
  if (name.ends_with('*')) name.remove_suffix(1);
  return name == "align" || name == "aligned" || name == "gather" || name == "gathered" || name == "split" ||
         name == "eqnarray" || name == "equation";
}

bool IsRelation(string_view text) {
  const Marks marks = MarksOf(Undressed(text));
  return marks.other || !marks.equals.empty();
}

Equation EquationOf(string_view text) {
  const string_view formula = Undressed(text);
  const Marks marks = MarksOf(formula);
  if (marks.equals.empty() || marks.other || marks.row > 0) return Equation::kNone;
  const string_view left = TrimSpaces(formula.substr(0, marks.before[0]));
  const bool call = left.size() > 3 && IsAsciiLetter(left[0]) && left[1] == '(' && left.back() == ')';
  const bool tuple = left.starts_with('(') && left.ends_with(')');
  const bool indexed = left.size() > 2 && IsAsciiLetter(left[0]) && left[1] == '_';  // "x_1"
  const bool name = !left.empty() && ((left.size() < 6 && left.find_first_of("+-*/^0123456789") == kNone) ||
                                      (indexed && left.size() < 8 && left.find_first_of("+-*/^") == kNone));
  return name || call || tuple ? Equation::kNamed : Equation::kOther;
}

string_view ConclusionOf(string_view text) {
  const string_view formula = RowsOf(text);
  if (formula.empty()) return text;
  const Marks marks = MarksOf(formula);
  if (marks.equals.empty() || marks.other) return text;
  const string_view last = Undressed(formula.substr(marks.equals.back()));
  // "36 - 10 = 26 = x"
  if (IsLetter(last)) {
    const size_t from = marks.equals.size() > 1 ? marks.equals[marks.equals.size() - 2] : marks.row;
    const string_view before = Undressed(formula.substr(from, marks.before.back() - from));
    if (before.find_first_of("0123456789") != kNone) return before;
  }
  return SaysNothing(last) ? text : last;
}

std::string LastRowOf(string_view text) {
  const string_view rows = RowsEnvironment(Undressed(text)).empty() ? string_view() : RowsOf(text);
  const size_t last = MarksOf(rows).row;
  const std::string letters = LettersOf(rows);
  if (last < 2 || letters.size() != 1 || !IsSolved(rows.substr(last), letters[0])) return std::string(text);
  for (string_view before = rows.substr(0, last - 2); !before.empty();) {
    const size_t row = MarksOf(before).row;
    // "x = 1 \\ x = 2" lists two values.
    if (IsSolved(before.substr(row), letters[0])) return std::string(text);
    before = before.substr(0, row < 2 ? 0 : row - 2);
  }
  std::string solved(TrimSpaces(rows.substr(last)));
  std::erase(solved, '&');
  return solved;
}

string_view WithoutDrawings(string_view text) {
  while (true) {
    const string_view trimmed = TrimSpaces(text);
    const size_t open = trimmed.ends_with("[/asy]") ? trimmed.rfind("[asy]") : kNone;
    if (open == kNone) return text;
    text = trimmed.substr(0, open);
  }
}

}  // namespace iha::scoring::math
