#include "benchmarks/scoring/math/markup.h"

#include <algorithm>
#include <initializer_list>

#include "benchmarks/scoring/math/number_words.h"
#include "benchmarks/scoring/math/words.h"
#include "common/text.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kLongestRemark = 60;
constexpr int kMaxRewrites = 40;

bool Among(string_view word, std::initializer_list<string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

size_t DigitsAt(string_view text, size_t at) {
  size_t n = 0;
  while (at + n < text.size() && IsAsciiDigit(text[at + n])) ++n;
  return n;
}

size_t SkipBlanks(string_view text, size_t at) {
  while (at < text.size() && (IsAsciiSpace(text[at]) || text[at] == '~' || text[at] == '$')) ++at;
  return at;
}

// "**12**" around a whole word: the marks go; "x**2" keeps its own.
void DropBold(std::string& text) {
  size_t open = text.find("**");
  for (int i = 0; i < kMaxRewrites && open != kNone; ++i) {
    const size_t close = text.find("**", open + 2);
    if (close == kNone) return;
    const auto edge = [](char c) { return IsAsciiSpace(c) || string_view("=:(,.;)$").find(c) != kNone; };
    const bool opens = (open == 0 || edge(text[open - 1])) && close > open + 2 && !IsAsciiSpace(text[open + 2]);
    const bool closes = close + 2 >= text.size() || edge(text[close + 2]);
    if (opens && closes) {
      text.erase(close, 2);
      text.erase(open, 2);
      open = text.find("**", close - 2);
    } else {
      open = close;
    }
  }
}

bool IsAboutWord(string_view word) { return Among(word, {"approximately", "approx", "about", "roughly"}); }

// Words that stand beside "approximately" and say nothing more.
bool IsLinkWord(string_view word) {
  return Among(word, {"or", "which", "is", "equals", "equal", "to", "i", "e", "that", "and"});
}

// Nothing but words of those two kinds, one of the first among them.
bool SaysAbout(string_view text) {
  bool about = false;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    const std::string word = LowerAscii(text.substr(i, end - i));
    if (word.empty() && !IsAsciiSpace(text[i]) && text[i] != '.' && text[i] != ',' && text[i] != '~') return false;
    if (!word.empty() && !IsAboutWord(word) && !IsLinkWord(word)) return false;
    about = about || IsAboutWord(word);
    i = std::max(end, i + 1);
  }
  return about;
}

// "approximately 3.46", "\text{ or about }3.46" -> "\approx 3.46".
void AboutAsMark(std::string& text) {
  for (const string_view piece : {"pproximately", "pprox", "bout", "oughly"}) {
    size_t from = 1;
    for (int i = 0; i < kMaxRewrites; ++i) {
      const size_t at = text.find(piece, from);
      if (at == kNone) break;
      from = at + piece.size();
      const size_t begin = at - 1;
      size_t end = from;
      if (begin > 0 && (IsAsciiLetter(text[begin - 1]) || text[begin - 1] == '\\')) continue;
      if (end < text.size() && IsAsciiLetter(text[end])) continue;
      if (!IsAboutWord(LowerAscii(string_view(text).substr(begin, end - begin)))) continue;
      if (end < text.size() && text[end] == '.' && !IsAsciiDigit(text[std::min(end + 1, text.size() - 1)])) ++end;
      const size_t open = text.rfind('{', begin);
      const size_t command = open == kNone ? kNone : text.rfind('\\', open);
      const size_t close = text.find('}', end);
      string_view words = command == kNone || close == kNone
                              ? string_view()
                              : TrimSpaces(string_view(text).substr(open + 1, close - open - 1));
      const bool bracket = words.starts_with('(');
      if (bracket) words.remove_prefix(1);
      if (string_view(text).substr(std::min(command, text.size())).starts_with("\\text") && SaysAbout(words)) {
        text.replace(command, close + 1 - command, bracket ? "(\\approx " : "\\approx ");
        from = command + 8;
        continue;
      }
      for (const string_view more : {" equal to", " equals"}) {
        if (string_view(text).substr(end).starts_with(more)) end += more.size();
      }
      const size_t value = SkipBlanks(text, end);
      const bool number = value < text.size() && (IsAsciiDigit(text[value]) || text[value] == '\\' ||
                                                  text[value] == '-' || text[value] == '.');
      if (!number) continue;
      text.replace(begin, end - begin, "\\approx ");
      from = begin + 8;
    }
  }
}

// "2\sqrt{3} (\approx 3.46)", "2\sqrt{3}, or \approx 3.46": what joins the mark to the value before it goes.
void JoinAbout(std::string& text) {
  size_t at = text.find("\\approx");
  for (int i = 0; i < kMaxRewrites && at != kNone && at > 0; ++i) {
    size_t begin = at;
    const auto blanks = [&] {
      while (begin > 0 && (IsAsciiSpace(text[begin - 1]) || text[begin - 1] == '$')) --begin;
    };
    blanks();
    for (bool again = true; again;) {
      again = false;
      size_t word = begin;
      while (word > 0 && IsAsciiLetter(text[word - 1])) --word;
      const bool command = word > 0 && text[word - 1] == '\\';
      const std::string run = LowerAscii(string_view(text).substr(word, begin - word));
      if (begin > word && !command && Among(run, {"or", "which", "is", "that"})) {
        begin = word;
        blanks();
        again = true;
      }
    }
    bool bracket = false;
    bool joined = begin < at && begin > 0;
    if (begin > 0 && (text[begin - 1] == '(' || text[begin - 1] == ',')) {
      const size_t left = begin - 1;
      const size_t before = string_view(text).substr(0, left).find_last_not_of(" $");
      if (before != kNone && string_view("(,=").find(text[before]) == kNone) {
        bracket = text[left] == '(';
        begin = left;
        joined = true;
      }
    }
    if (joined && begin > 0) {
      if (bracket) {
        const size_t close = text.find(')', at);
        if (close != kNone) text.erase(close, 1);
      }
      text.replace(begin, at - begin, " ");
      at = begin + 1;
    }
    at = text.find("\\approx", at + 7);
  }
}

// "12 (twelve)", "x = 2 \text{ (double root)}": words in brackets behind the answer.
void DropRemark(std::string& text) {
  size_t end = text.size();
  while (end > 0 && (IsAsciiSpace(text[end - 1]) || text[end - 1] == '.' || text[end - 1] == '$')) --end;
  const bool braced = end > 1 && text[end - 1] == '}' && text[end - 2] == ')';
  const size_t close = braced ? end - 2 : end - 1;
  if (end == 0 || text[close] != ')') return;
  size_t open = text.rfind('(', close);
  if (open == kNone || close - open > kLongestRemark || open == 0) return;
  string_view inside = string_view(text).substr(open + 1, close - open - 1);
  if (inside.ends_with("\\right")) inside.remove_suffix(6);
  if (string_view(text).substr(0, open).ends_with("\\left")) open -= 5;
  bool word = false;
  const bool multiplicity = inside.find("multiplicity") != kNone;  // "(multiplicity 2)"
  for (size_t i = 0; i < inside.size();) {
    size_t stop = i;
    while (stop < inside.size() && IsAsciiLetter(inside[stop])) ++stop;
    const string_view run = inside.substr(i, stop - i);
    const bool count = multiplicity && IsAsciiDigit(inside[i]);
    if (run.empty() && inside[i] != ' ' && inside[i] != '-' && !count) return;
    if (PlainCommand(LowerAscii(run)).has_value() || LowerAscii(run) == "base" || LowerAscii(run) == "mod") return;
    word = word || (run.size() >= 4 && LowerAscii(run).find_first_of("aeiouy") != kNone);
    i = std::max(stop, i + 1);
  }
  if (!word) return;
  size_t begin = open;
  if (braced) {
    const size_t brace = string_view(text).substr(0, open).find_last_not_of(' ');
    const size_t command = brace == kNone ? kNone : text.rfind('\\', brace);
    if (brace == kNone || text[brace] != '{' || command == kNone || text.compare(command, 5, "\\text") != 0) return;
    begin = command;
  } else if (open == 0 || !IsAsciiSpace(text[open - 1])) {
    return;
  }
  if (string_view(text).substr(0, begin).find_first_not_of(" $") == kNone) return;
  text.erase(begin, (braced ? end : close + 1) - begin);
}

// "twelve (12)", "12 (twelve) apples": a number said again in brackets.
void DropRestated(std::string& text) {
  for (size_t open = text.find('('), i = 0; open != kNone && i < kMaxRewrites; open = text.find('(', open + 1), ++i) {
    const size_t close = text.find(')', open);
    if (close == kNone || close - open > kLongestRemark || open == 0) return;
    string_view inside = TrimSpaces(string_view(text).substr(open + 1, close - open - 1));
    string_view before = TrimSpaces(string_view(text).substr(0, open));
    if (inside.ends_with("\\right")) inside.remove_suffix(6);
    const size_t from = before.ends_with("\\left") ? open - 5 : open;
    if (from < open) before = TrimSpaces(before.substr(0, from));
    before = TrimSpaces(before.substr(std::min(before.find_first_not_of('$'), before.size())));
    const bool number = !inside.empty() && DigitsAt(inside, 0) == inside.size();
    const string_view digits = number ? inside : before;
    const auto words = NumberWord(LowerAscii(number ? before : inside));
    if (!words.has_value() || DigitsAt(digits, 0) != digits.size() || digits != std::to_string(*words)) continue;
    text.erase(from, close + 1 - from);
    return;
  }
}

// "US\$40", "R\$ 30", "US$40": the letters in front of the sign.
void DropCurrencyLetters(std::string& text) {
  size_t at = text.find('$');
  for (int i = 0; i < kMaxRewrites && at != kNone; ++i) {
    const bool escaped = at > 0 && text[at - 1] == '\\';
    const size_t end = escaped ? at - 1 : at;
    size_t begin = end;
    while (begin > 0 && text[begin - 1] >= 'A' && text[begin - 1] <= 'Z') --begin;
    const string_view letters = string_view(text).substr(begin, end - begin);
    const bool bare = begin == 0 || (text[begin - 1] != '\\' && !IsAsciiLetter(text[begin - 1]));
    const bool code = Among(letters, {"US", "HK", "NZ", "AU", "CA"}) ||
                      (escaped && Among(letters, {"R", "C", "A", "S"})) || (begin == 0 && letters == "R");
    size_t value = SkipBlanks(text, at + 1);
    if (value < text.size() && text[value] == '}') value = SkipBlanks(text, value + 1);
    if (bare && code && DigitsAt(text, value) > 0) {
      text.erase(begin, letters.size());
      at -= letters.size();
      if (!escaped) text.insert(at++, "\\");
    }
    at = text.find('$', at + 1);
  }
}

// The shortest block that ends `digits` three times (one digit) or twice (more); 0 when there is none.
size_t RepeatedBlock(string_view digits) {
  for (size_t block = 1; block <= digits.size() / 2; ++block) {
    const size_t times = block == 1 ? 3 : 2;
    if (block * times > digits.size()) return 0;
    const string_view last = digits.substr(digits.size() - block);
    bool same = true;
    for (size_t t = 2; t <= times; ++t) same = same && digits.substr(digits.size() - t * block, block) == last;
    if (same) return block;
  }
  return 0;
}

// "0.333...": its digits repeat; "1.4142\ldots": the digits that are given.
void DotsBehindDecimals(std::string& text) {
  for (const string_view dots : {"...", "\\ldots", "\\dots", "\\cdots", "\u2026"}) {
    size_t at = text.find(dots);
    for (int i = 0; i < kMaxRewrites && at != kNone; ++i, at = text.find(dots, at + 1)) {
      size_t end = at;
      while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '{')) --end;
      size_t begin = end;
      while (begin > 0 && IsAsciiDigit(text[begin - 1])) --begin;
      const size_t places = end - begin;
      if (places < 3 || begin < 2 || text[begin - 1] != '.' || !IsAsciiDigit(text[begin - 2]) || end < at) continue;
      const size_t block = RepeatedBlock(string_view(text).substr(begin, places));
      text.erase(at, dots.size());
      if (block > 0) {
        std::string period = "\\overline{" + text.substr(end - block, block) + "}";
        size_t first = end - block;
        while (first >= begin + block && text.compare(first - block, block, text, end - block, block) == 0)
          first -= block;
        text.replace(first, end - first, period);
      }
      break;
    }
  }
}

// "0.1(6)" and "0,(3)" as a whole answer.
void BracketedPeriod(std::string& text) {
  size_t at = SkipBlanks(text, 0);
  const size_t equals = text.rfind('=');
  if (equals != kNone) at = SkipBlanks(text, equals + 1);
  if (at < text.size() && text[at] == '-') ++at;
  const size_t whole = DigitsAt(text, at);
  const size_t point = at + whole;
  if (whole == 0 || point >= text.size() || (text[point] != '.' && text[point] != ',')) return;
  const size_t open = point + 1 + DigitsAt(text, point + 1);
  if (open >= text.size() || text[open] != '(') return;
  const size_t period = DigitsAt(text, open + 1);
  const size_t close = open + 1 + period;
  if (period == 0 || close >= text.size() || text[close] != ')' || SkipBlanks(text, close + 1) < text.size()) return;
  text[close] = '}';
  text.replace(open, 1, "\\overline{");
  text[point] = '.';
}

// "\dot{1}4285\dot{7}" -> "\overline{142857}".
void DottedPeriod(std::string& text) {
  const size_t first = text.find("\\dot{");
  if (first == kNone || first == 0 || (!IsAsciiDigit(text[first - 1]) && text[first - 1] != '.')) return;
  const size_t second = text.find("\\dot{", first + 5);
  if (second == kNone || DigitsAt(text, first + 5) != 1 || text.compare(first + 6, 1, "}") != 0) return;
  if (first + 7 + DigitsAt(text, first + 7) != second) return;
  if (DigitsAt(text, second + 5) != 1 || text.compare(second + 6, 1, "}") != 0) return;
  const std::string digits = text.substr(first + 5, 1) + text.substr(first + 7, second - first - 7) + text[second + 5];
  text.replace(first, second + 7 - first, "\\overline{" + digits + "}");
}

// A digit with a line above it (U+0304, U+0305), one or several.
void LinedDigits(std::string& text) {
  for (int i = 0; i < kMaxRewrites; ++i) {
    const size_t first = std::min(text.find("\u0305"), text.find("\u0304"));
    if (first == kNone || first == 0 || !IsAsciiDigit(text[first - 1])) return;
    std::string digits;
    size_t end = first - 1;
    while (end + 2 < text.size() && IsAsciiDigit(text[end]) && text[end + 1] == '\xCC' &&
           (text[end + 2] == '\x85' || text[end + 2] == '\x84')) {
      digits += text[end];
      end += 3;
    }
    text.replace(first - 1, end - first + 1, "\\overline{" + digits + "}");
  }
}

void Replace(std::string& text, string_view from, string_view to) {
  size_t at = text.find(from);
  for (int i = 0; i < kMaxRewrites && at != kNone; ++i, at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// "\root 3 \of 8" -> "\sqrt[3]{8}"; "12'dir": a suffix behind a number.
void PlainTexForms(std::string& text) {
  const size_t root = text.find("\\root");
  const size_t of = root == kNone ? kNone : text.find("\\of", root);
  if (of != kNone) {
    std::string index(TrimSpaces(string_view(text).substr(root + 5, of - root - 5)));
    text.replace(root, of + 3 - root, "\\sqrt[" + index + "]");
  }
  size_t at = text.find('\'');
  for (int i = 0; i < kMaxRewrites && at != kNone; ++i, at = text.find('\'', at + 1)) {
    if (at == 0 || !IsAsciiDigit(text[at - 1]) || at + 1 >= text.size() || !IsAsciiLetter(text[at + 1])) continue;
    size_t end = at + 1;
    while (end < text.size() && (IsAsciiLetter(text[end]) || static_cast<unsigned char>(text[end]) >= 0xC3)) ++end;
    text.erase(at, end - at);
    if (at == text.size()) break;
  }
}

// "<1, 2>" and "{x | x > 0}" as whole answers.
void PlainBrackets(std::string& text) {
  const size_t first = text.find_first_not_of(" $");
  const size_t last = text.find_last_not_of(" $.");
  if (first == kNone || last <= first) return;
  const string_view inside = string_view(text).substr(first + 1, last - first - 1);
  if (text[first] == '<' && text[last] == '>' && inside.find(',') != kNone && inside.find_first_of("<>") == kNone) {
    text = "\\langle " + std::string(inside) + "\\rangle ";
  } else if (text[first] == '{' && text[last] == '}' && inside.find_first_of("|:") != kNone &&
             inside.find_first_of("{}\\") == kNone && std::any_of(inside.begin(), inside.end(), IsAsciiLetter)) {
    text = "\\{" + std::string(inside) + "\\}";
  }
}

// "\\Rightarrow x = 5", "=> x = 5": the arrow in front.
void DropLeadingArrow(std::string& text) {
  const size_t at = std::min(text.find_first_not_of(" $"), text.size());
  for (const string_view arrow :
       {"\\Rightarrow", "\\rightarrow", "\\implies", "\\to ", "\\therefore", "=>", "->", "\u21d2", "\u2192"}) {
    if (!string_view(text).substr(at).starts_with(arrow)) continue;
    text.erase(at, arrow.size());
    return;
  }
}

// "l: x + y = 1": the name of the line.
void DropCurveName(std::string& text) {
  const size_t at = std::min(text.find_first_not_of(" $"), text.size());
  if (at + 1 >= text.size() || !IsAsciiLetter(text[at])) return;
  const size_t colon = text.find_first_not_of(" ", at + 1);
  if (colon == kNone || text[colon] != ':') return;
  const size_t equals = text.find('=', colon);
  if (equals == kNone || text.find(':', colon + 1) != kNone) return;
  const string_view left = TrimSpaces(string_view(text).substr(colon + 1, equals - colon - 1));
  if (left == "y" || left == "x" || left.find_first_of("+-^") != kNone) text.erase(at, colon + 1 - at);
}

// "\\phantom{0}5": the digit is not shown.
void DropPhantoms(std::string& text) {
  for (const string_view command : {"\\phantom{", "\\hphantom{"}) {
    size_t at = text.find(command);
    for (int i = 0; i < kMaxRewrites && at != kNone; ++i, at = text.find(command)) {
      const size_t close = text.find('}', at);
      if (close == kNone) return;
      text.erase(at, close + 1 - at);
    }
  }
}

// "1) 2; 2) 3", "(a) 5, (b) 7": the marks of numbered parts, where a second one follows the first.
void DropPartMarks(std::string& text) {
  const size_t at = std::min(text.find_first_not_of(" $"), text.size());
  const size_t bracket = at < text.size() && text[at] == '(' ? 1 : 0;
  if (at + bracket + 2 >= text.size() || text[at + bracket + 1] != ')') return;
  char part = text[at + bracket];
  if (part != '1' && part != 'a') return;
  std::string out;
  size_t kept = at + bracket + 2;
  for (++part;; ++part) {
    const std::string mark = std::string(bracket == 1 ? "(" : "") + part + ") ";
    const size_t next = text.find(mark, kept);
    if (next == kNone) break;
    const string_view item = TrimSpaces(string_view(text).substr(kept, next - kept));
    if (item.empty()) return;
    out += item;
    if (item.back() != ',' && item.back() != ';') out += ",";
    out += ' ';
    kept = next + mark.size();
  }
  if (out.empty()) return;
  text = out + text.substr(kept);
  std::replace(text.begin(), text.end(), ';', ',');
}

// "minus 5", "7 out of 10", "2 & 3".
void PlainWords(std::string& text) {
  for (const string_view word : {"minus ", "negative ", "Minus ", "Negative "}) {
    const size_t at = text.find(word);
    if (at == kNone || (at > 0 && IsAsciiLetter(text[at - 1]))) continue;
    size_t value = SkipBlanks(text, at + word.size());
    const bool braced = value < text.size() && text[value] == '}' && text.substr(0, at).ends_with("\\text{");
    if (braced) value = SkipBlanks(text, value + 1);
    if (value >= text.size() || !IsAsciiDigit(text[value])) continue;
    const size_t begin = braced ? at - 6 : at;
    text.replace(begin, braced ? value - begin : word.size(), "-");
  }
  const size_t of = text.find(" out of ");
  if (of != kNone && of > 0 && IsAsciiDigit(text[of - 1]) && DigitsAt(text, of + 8) > 0) text.replace(of, 8, "/");
  const size_t in = text.find(" in ");  // "1 in 4" as a whole
  if (in != kNone && text.find_first_not_of(" $}.", in + 4 + DigitsAt(text, in + 4)) == kNone &&
      DigitsAt(text, in + 4) > 0) {
    const size_t before = text.find_last_not_of("0123456789", in - 1);
    string_view lead = before == kNone ? string_view() : TrimSpaces(string_view(text).substr(0, before + 1));
    if (lead.starts_with('$')) lead.remove_prefix(1);
    if (before + 1 < in && (lead.empty() || lead == "\\text{")) text.replace(in, 4, "/");
  }
  if (text.find(" & ") != kNone && text.find("\\begin") == kNone) Replace(text, " & ", " and ");
}

}  // namespace

std::string PlainMarkup(string_view raw) {
  std::string text(raw);
  if (text.find("**") != kNone) DropBold(text);
  if (text.find('$') != kNone) DropCurrencyLetters(text);
  AboutAsMark(text);
  if (text.find("\\approx") != kNone) JoinAbout(text);
  if (text.find(')') != kNone) {
    DropRestated(text);
    DropRemark(text);
    BracketedPeriod(text);
  }
  if (text.find("phantom{") != kNone) DropPhantoms(text);
  DropLeadingArrow(text);
  DropCurveName(text);
  if (text.find(')') != kNone) DropPartMarks(text);
  DomainsAsList(text);
  DotsBehindDecimals(text);
  DottedPeriod(text);
  if (text.find('\xCC') != kNone) LinedDigits(text);
  Replace(text, "plus or minus ", "\\pm ");
  Replace(text, "Plus or minus ", "\\pm ");
  for (const auto& [from, to] : {std::pair<string_view, string_view>{"\\lbrack", "["},
                                 {"\\rbrack", "]"},
                                 {"{\\,}", "\\,"},
                                 {"\\uppi", "\\pi"}}) {
    Replace(text, from, to);
  }
  PlainTexForms(text);
  PlainBrackets(text);
  PlainWords(text);
  return text;
}

}  // namespace iha::scoring::math
