// Words in bold type (extract_impl.h, WithoutBold, SaidInBold).
#include <algorithm>
#include <initializer_list>

#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kLongestSpan = 300;
constexpr size_t kLongestWords = 40;
constexpr size_t kMostWords = 4;

// A mark in front of what it makes bold: not the power of "x**2" or "x ** 2".
bool Opens(string_view text, size_t at) {
  const bool glued = at > 0 && (IsAsciiDigit(text[at - 1]) || IsAsciiLetter(text[at - 1]) || text[at - 1] == ')');
  return !glued && at + 2 < text.size() && !IsAsciiSpace(text[at + 2]) && text[at + 2] != '*';
}

bool Closes(string_view text, size_t at) {
  const bool glued = at + 2 < text.size() && (IsAsciiDigit(text[at + 2]) || text[at + 2] == '(');
  return !IsAsciiSpace(text[at - 1]) && !glued;
}

// The mark that closes what the one at `open` begins, in its line.
size_t CloseOf(string_view text, size_t open) {
  const string_view near = text.substr(open, kLongestSpan);
  const size_t end = std::min(near.find('\n'), near.size());
  for (size_t at = near.find("**", 3); at < end; at = near.find("**", at + 2)) {
    if (Closes(text, open + at)) return open + at;
  }
  return kNone;
}

// Headings ("**Total:** 12", "**Step 3** ..."), and what goes on to another value behind them.
bool LeadsOn(string_view line, const Phrase& span) {
  const string_view inside = line.substr(span.begin, span.end - span.begin);
  const string_view behind = TrimSpaces(line.substr(span.end));
  if (inside.ends_with(':') || behind.starts_with(':')) return true;
  if (span.begin == 0 && !behind.empty() && behind != "." && IsAsciiLetter(inside[0])) return true;
  const std::string lower = " " + LowerAscii(behind) + " ";
  return std::any_of(lower.begin(), lower.end(), IsAsciiDigit) &&
         std::any_of(lower.begin(), lower.end(), [](char c) { return c == '=' || c == ':' || c == '\\'; });
}

bool GoesOn(string_view behind) {
  const std::string lower = LowerAscii(behind);
  // "For **5 people**, it costs $100"
  const size_t comma = lower.find(", ");
  if (comma != kNone && std::any_of(lower.begin() + static_cast<ptrdiff_t>(comma), lower.end(), IsAsciiDigit))
    return true;
  for (const string_view word : {" is ", " are ", " was ", " total", " so ", " thus ", " equals ", " leaves ", " or ",
                                 " and ", " plus ", " minus ", " have ", " has "}) {
    if (lower.find(word) != kNone) return true;
  }
  return false;
}

// What a sentence says of a word in bold that answers nothing: "**not** 5", "the **only** one".
bool IsStress(const std::string& words) {
  for (const string_view word : {"not", "only", "all", "every", "must", "note", "never", "always", "and", "or", "both",
                                 "cannot", "no", "exactly", "at least", "at most", "any", "answer", "final answer"}) {
    if (words == word) return true;
  }
  return false;
}

}  // namespace

Emphasis WithoutBold(string_view text) {
  Emphasis out;
  size_t kept = 0;
  for (size_t open = text.find("**"); open != kNone;) {
    const size_t close = Opens(text, open) ? CloseOf(text, open) : kNone;
    if (close == kNone) {
      open = text.find("**", open + 2);
      continue;
    }
    out.text += text.substr(kept, open - kept);
    out.spans.push_back({out.text.size(), out.text.size() + close - open - 2});
    out.text += text.substr(open + 2, close - open - 2);
    kept = close + 2;
    open = text.find("**", kept);
  }
  out.text += text.substr(kept);
  return out;
}

string_view SaidInBold(const Emphasis& emphasis) {
  const string_view text = string_view(emphasis.text).substr(0, emphasis.text.find_last_not_of(" \n\t\r") + 1);
  const size_t begin = text.rfind('\n') + 1;
  const string_view line = text.substr(begin);
  std::vector<Phrase> spans;
  for (const Phrase& span : emphasis.spans) {
    if (span.begin >= begin && span.end <= text.size()) spans.push_back({span.begin - begin, span.end - begin});
  }
  if (spans.empty() || LeadsOn(line, spans.back())) return "";
  const Phrase last = spans.back();
  const string_view said = line.substr(last.begin, last.end - last.begin);
  const Shape shape = ShapeOf(said);
  if (shape.digits || shape.formula) {
    const bool label = said.size() > 1 && IsAsciiLetter(said[0]) && IsAsciiLetter(said[1]) && said.find('=') == kNone &&
                       said.find(" is ") == kNone;  // "Day 3"
    const bool alone = spans.size() == 1 && shape.digits && !label;
    return alone && !GoesOn(line.substr(last.end)) ? said : string_view();
  }
  const bool digits = std::any_of(line.begin(), line.end(), IsAsciiDigit);
  if (digits || said.size() > kLongestWords || shape.words > kMostWords) return "";
  const std::string lower = LowerAscii(line);
  for (const string_view closing : {"let me know", "hope", "feel free", "help"}) {
    if (lower.find(closing) != kNone) return "";
  }
  return IsStress(LowerAscii(said)) || IsRemark(said) ? string_view() : said;
}

}  // namespace iha::scoring::math
