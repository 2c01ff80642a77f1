#include "benchmarks/scoring/math/lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "benchmarks/scoring/math/words.h"
#include "common/text.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr int kMaxTextNesting = 8;

bool Among(string_view word, std::initializer_list<string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool IsTextCommand(string_view name) {
  return Among(name, {"text", "textbf",     "textit", "textrm", "textsf",    "texttt", "textnormal",   "mbox",
                      "hbox", "mathrm",     "mathbf", "mathit", "mathsf",    "mathtt", "operatorname", "rm",
                      "bf",   "boldsymbol", "bm",     "emph",   "underline", "textup", "mathop",       "pmb"});
}
bool IsSizeCommand(string_view name) {
  return Among(name, {"left",     "right",        "big",       "Big",       "bigg",       "Bigg",         "bigl",
                      "bigr",     "Bigl",         "Bigr",      "biggl",     "biggr",      "Biggl",        "Biggr",
                      "middle",   "displaystyle", "textstyle", "limits",    "nolimits",   "scriptstyle",  "rm",
                      "bf",       "it",           "large",     "Large",     "normalsize", "tag",          "label",
                      "nonumber", "notag",        "strut",     "mathstrut", "phantom",    "allowbreak",   "relax",
                      "protect",  "ensuremath",   "hfill",     "centering", "small",      "footnotesize", "scriptsize",
                      "tiny",     "LARGE",        "huge",      "Huge",      "boldmath"});
}

bool IsCurrencyCommand(string_view name) {
  return Among(name, {"pounds", "pound", "textsterling", "euro", "texteuro", "yen", "textyen", "textdollar"});
}

// "A, B", "A and C": single letters with what joins them.
bool OnlyLetters(string_view text) {
  bool joined = false;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    const string_view word = text.substr(i, end - i);
    if (word.size() > 1 && word != "and" && word != "or") return false;
    if (word.empty() && text[i] != ',' && text[i] != ' ') return false;
    joined = joined || word.size() > 1 || text[i] == ',';
    i = std::max(end, i + 1);
  }
  return joined && text.size() > 3;
}

class Lexer {
 public:
  Lexer(string_view text, size_t max_tokens) : text_(text), max_tokens_(max_tokens) {}

  TokenList Run() {
    Scan(text_, 0);
    list_.tokens.push_back({Tok::kEnd, gap_, ""});
    return std::move(list_);
  }

 private:
  void Push(Tok kind, string_view text) {
    if (list_.tokens.size() >= max_tokens_) {
      list_.complete = false;
      return;
    }
    list_.tokens.push_back({kind, gap_, std::string(text)});
    gap_ = Gap::kNone;
  }
  // \! wins over blanks; otherwise the widest counts.
  void Widen(Gap gap) {
    if (gap_ != Gap::kJoined && (gap == Gap::kJoined || gap > gap_)) gap_ = gap;
  }

  void Scan(string_view text, int nesting) {
    size_t i = 0;
    while (i < text.size() && list_.complete) {
      const char c = text[i];
      if (IsAsciiSpace(c) || c == '~') {
        Widen(Gap::kWide);
        ++i;
      } else if (IsAsciiDigit(c) || (c == '.' && i + 1 < text.size() && IsAsciiDigit(text[i + 1]))) {
        i = ScanNumber(text, i);
      } else if (const size_t accented = AccentedWord(text, i); accented > 0) {
        // "años", "kilómetros": no mathematics is written so.
        Push(Tok::kText, text.substr(i, accented));
        i += accented;
      } else if (IsAsciiLetter(c)) {
        i = ScanWord(text, i);
      } else if (c == '\\') {
        i = ScanCommand(text, i, nesting);
      } else if (c == '{' && IsBracedComma(text, i)) {
        i = text.find('}', i) + 1;
        Push(Tok::kThousands, ",");
      } else if (static_cast<unsigned char>(c) < 0x80) {
        Push(Tok::kChar, text.substr(i, 1));
        ++i;
      } else {
        // A Cyrillic word is one token, any other letter one of its own.
        const auto cyrillic = [&](size_t at) {
          return at + 1 < text.size() && (text[at] == '\xD0' || text[at] == '\xD1');
        };
        size_t length = std::max<size_t>(1, Utf8Length(text.substr(i), nullptr));
        while (cyrillic(i) && cyrillic(i + length)) length += 2;
        Push(Tok::kOther, text.substr(i, length));
        i += length;
      }
    }
  }

  // The length of a word that holds a Latin letter with an accent; 0 for any other.
  static size_t AccentedWord(string_view text, size_t i) {
    size_t end = i;
    bool accented = false;
    while (end < text.size()) {
      const auto byte = static_cast<unsigned char>(text[end]);
      const bool letter = byte >= 0xC3 && byte <= 0xC5 && end + 1 < text.size();
      if (!IsAsciiLetter(text[end]) && !letter) break;
      accented = accented || letter;
      end += letter ? 2 : 1;
    }
    return accented ? end - i : 0;
  }

  static bool IsBracedComma(string_view text, size_t i) {
    ++i;
    while (i < text.size() && text[i] == ' ') ++i;
    if (i >= text.size() || text[i] != ',') return false;
    ++i;
    while (i < text.size() && text[i] == ' ') ++i;
    return i < text.size() && text[i] == '}';
  }

  // "1.000.000": two or more groups of three behind points, which no decimal has. Its end, or `i`.
  static size_t PointGroupsEnd(string_view text, size_t i) {
    const auto digits_at = [&](size_t at) {
      size_t n = 0;
      while (at + n < text.size() && IsAsciiDigit(text[at + n])) ++n;
      return n;
    };
    const size_t first = digits_at(i);
    size_t end = i + first;
    int groups = 0;
    while (end < text.size() && text[end] == '.' && digits_at(end + 1) == 3) {
      end += 4;
      ++groups;
    }
    const bool more = end + 1 < text.size() && text[end] == '.' && IsAsciiDigit(text[end + 1]);
    return first >= 1 && first <= 3 && groups >= 2 && !more ? end : i;
  }

  // "0x1F", "0b101", "0o17": pushed as its value. Its end, or `i`.
  size_t ScanPrefixed(string_view text, size_t i) {
    const char mark = i + 2 < text.size() ? text[i + 1] : '\0';
    if (text[i] != '0' || (mark != 'x' && mark != 'b' && mark != 'o')) return i;
    const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
    int64_t value = 0;
    size_t end = i + 2;
    for (; end < text.size() && (IsAsciiLetter(text[end]) || IsAsciiDigit(text[end])); ++end) {
      const char c = LowerAscii(text.substr(end, 1))[0];
      const int digit = IsAsciiDigit(c) ? c - '0' : c - 'a' + 10;
      if (digit >= base || end > i + 16) return i;
      value = value * base + digit;
    }
    if (end == i + 2) return i;
    Push(Tok::kNumber, std::to_string(value));
    return end;
  }

  size_t ScanNumber(string_view text, size_t i) {
    const auto digits = [&](size_t at) {
      while (at < text.size() && IsAsciiDigit(text[at])) ++at;
      return at;
    };
    if (const size_t grouped = PointGroupsEnd(text, i); grouped > i) {
      std::string plain(text.substr(i, grouped - i));
      std::erase(plain, '.');
      Push(Tok::kNumber, plain);
      return grouped;
    }
    if (const size_t prefixed = ScanPrefixed(text, i); prefixed > i) return prefixed;
    size_t end = digits(i);
    if (end + 1 < text.size() && text[end] == '.' && IsAsciiDigit(text[end + 1])) end = digits(end + 1);
    if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
      size_t power = end + 1;
      if (power < text.size() && (text[power] == '+' || text[power] == '-')) ++power;
      const size_t power_end = digits(power);
      if (power_end > power && (power_end >= text.size() || !IsAsciiLetter(text[power_end]))) end = power_end;
    }
    Push(Tok::kNumber, text.substr(i, end - i));
    return end;
  }

  size_t ScanWord(string_view text, size_t i) {
    size_t end = i;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    string_view run = text.substr(i, end - i);
    // "1orW(x)", ")or(": a connective glued to its neighbours.
    const bool glued = !list_.tokens.empty() && gap_ == Gap::kNone &&
                       (list_.tokens.back().kind == Tok::kNumber || list_.tokens.back().text == ")");
    for (const string_view word : {"and", "or"}) {
      const bool before_name = run.size() == word.size() + 1 || (run.size() > word.size() && run[word.size()] < 'a');
      if (glued && run.starts_with(word) && before_name) run = word;
    }
    Push(Tok::kWord, run);
    return i + run.size();
  }

  // `open` is the position of "{"; the position of its "}" or npos.
  static size_t Closing(string_view text, size_t open) {
    int depth = 0;
    for (size_t i = open; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '{') {
        ++depth;
      } else if (text[i] == '}' && --depth == 0) {
        return i;
      }
    }
    return string_view::npos;
  }

  static size_t SkipBlanks(string_view text, size_t i) {
    while (i < text.size() && IsAsciiSpace(text[i])) ++i;
    return i;
  }

  size_t ScanCommand(string_view text, size_t i, int nesting) {
    if (i + 1 >= text.size()) return i + 1;
    const char next = text[i + 1];
    if (!IsAsciiLetter(next)) return ScanMark(text, i);
    size_t end = i + 1;
    while (end < text.size() && IsAsciiLetter(text[end])) ++end;
    string_view name = text.substr(i + 1, end - i - 1);
    for (const string_view prefix : {"qquad", "quad"}) {
      if (name.size() > prefix.size() && name.starts_with(prefix)) {
        end = i + 1 + prefix.size();
        name = prefix;
      }
    }
    if (name == "quad" || name == "qquad") {
      Widen(Gap::kQuad);
      return end;
    }
    if (Among(name, {"thinspace", "medspace", "thickspace", "enspace", "space", "newline"})) {
      Widen(Gap::kWide);
      return end;
    }
    if (name == "begin" || name == "end") return ScanEnvironment(text, end, name == "begin");
    if (Among(name, {"hspace", "vspace", "mspace", "kern", "hskip", "color", "textcolor", "leftroot", "uproot"})) {
      const size_t open = SkipBlanks(text, end);
      const size_t close = open < text.size() && text[open] == '{' ? Closing(text, open) : string_view::npos;
      Widen(Gap::kWide);
      return close == string_view::npos ? end : close + 1;
    }
    if (IsCurrencyCommand(name)) {
      Push(Tok::kCommand, "$");
      return end;
    }
    if (const size_t units = ScanUnitFraction(text, end, name); units > end) return units;
    if (IsTextCommand(name)) {
      const bool bold = Among(name, {"mathbf", "textbf", "boldsymbol", "bm", "bf"});
      return ScanText(text, end, nesting, bold);
    }
    if (IsSizeCommand(name)) {
      // "\left." and "\right." open and close nothing.
      const size_t mark = SkipBlanks(text, end);
      const bool sided = name == "left" || name == "right";
      if (sided && mark < text.size() && text[mark] == '.') return mark + 1;
      // "\left\{ \begin{array} ... \right.": a system.
      const size_t inner = name == "left" && text.substr(std::min(mark, text.size())).starts_with("\\{")
                               ? SkipBlanks(text, mark + 2)
                               : text.size();
      if (text.substr(std::min(inner, text.size())).starts_with("\\begin") && OpensOnly(text, inner)) {
        system_ = true;
        return inner;
      }
      if (sided && mark < text.size() && text[mark] == '|') {
        Push(Tok::kCommand, name == "left" ? "lvert" : "rvert");
        return mark + 1;
      }
      return end;
    }
    Push(Tok::kCommand, name == "lnot" ? string_view("neg") : name);
    return end;
  }

  size_t ScanMark(string_view text, size_t i) {
    const char next = text[i + 1];
    if (next == '!') {
      Widen(Gap::kJoined);
    } else if (next == ',') {
      Widen(Gap::kThin);
    } else if (next == ';' || next == ':' || next == '>' || next == '/' || next == '-' || IsAsciiSpace(next)) {
      Widen(Gap::kWide);
    } else if (next == '\\') {
      // A doubled backslash before a command outside of an environment is a slip of escaping, not a new row.
      const size_t name = i + 2;
      if (depth_ == 0) {
        if (name < text.size() && IsAsciiLetter(text[name])) return i + 1;
        Widen(Gap::kWide);
        return name;
      }
      Push(Tok::kNewRow, "");
      size_t at = SkipBlanks(text, name);
      if (at < text.size() && text[at] == '[' && text.find(']', at) < at + 12) {
        const size_t close = text.find(']', at);
        const string_view inside = text.substr(at + 1, close - at - 1);
        if (inside.ends_with("pt") || inside.ends_with("em") || inside.ends_with("ex") || inside.ends_with("mm")) {
          return close + 1;
        }
      }
      return name;
    } else {
      Push(Tok::kCommand, text.substr(i + 1, 1));
    }
    return i + 2;
  }

  // The environment at `begin` ends in "\right.".
  static bool OpensOnly(string_view text, size_t begin) {
    const size_t end = text.find("\\end{", begin);
    const size_t close = end == string_view::npos ? end : text.find('}', end);
    if (close == string_view::npos) return false;
    const string_view rest = text.substr(SkipBlanks(text, close + 1));
    return rest.starts_with("\\right.") || rest.starts_with("\\right .");
  }

  size_t ScanEnvironment(string_view text, size_t end, bool begin) {
    const size_t open = SkipBlanks(text, end);
    const size_t close = open < text.size() && text[open] == '{' ? text.find('}', open) : string_view::npos;
    if (close == string_view::npos) {
      Push(Tok::kCommand, begin ? "begin" : "end");
      return end;
    }
    string_view name = text.substr(open + 1, close - open - 1);
    if (name.ends_with('*')) name.remove_suffix(1);
    size_t at = close + 1;
    depth_ += begin ? 1 : -1;
    depth_ = std::max(depth_, 0);
    const bool system = begin && std::exchange(system_, false);
    // "align cases": its rows are joined like those of align first.
    const bool aligned = name.starts_with("align") || name.starts_with("gather") || name == "split";
    Push(begin ? Tok::kBegin : Tok::kEndEnv, system ? string_view(aligned ? "align cases" : "cases") : name);
    if (begin && (name == "array" || name == "tabular")) {
      at = SkipBlanks(text, at);
      const size_t columns = at < text.size() && text[at] == '{' ? Closing(text, at) : string_view::npos;
      if (columns != string_view::npos) at = columns + 1;
    }
    return at;
  }

  bool BehindValue() const {
    if (list_.tokens.empty()) return false;
    const Token& last = list_.tokens.back();
    return last.kind == Tok::kNumber || (last.kind == Tok::kCommand && (last.text == "mu" || last.text == "pi")) ||
           (last.kind == Tok::kChar && (last.text == "}" || last.text == ")"));
  }

  // \frac{\text{m}}{\text{s}} behind a number. Its end, or `end`.
  size_t ScanUnitFraction(string_view text, size_t end, string_view name) {
    if (!Among(name, {"frac", "dfrac", "tfrac"}) || list_.tokens.empty() || list_.tokens.back().kind != Tok::kNumber) {
      return end;
    }
    size_t at = end;
    for (int part = 0; part < 2; ++part) {
      const string_view rest = text.substr(std::min(at, text.size()));
      if (!rest.starts_with("{\\text{") && !rest.starts_with("{\\mathrm{")) return end;
      const size_t close = Closing(text, at);
      if (close == string_view::npos || !IsUnitProduct(text.substr(at + 1, close - at - 1))) return end;
      at = close + 1;
    }
    Push(Tok::kText, "units");
    return at;
  }

  // \text{...}: marks and numbers are read as mathematics, a lone letter as a symbol, words as a kText token.
  size_t ScanText(string_view text, size_t end, int nesting, bool bold) {
    size_t open = SkipBlanks(text, end);
    if (open < text.size() && text[open] == '*') open = SkipBlanks(text, open + 1);
    const size_t close = open < text.size() && text[open] == '{' ? Closing(text, open) : string_view::npos;
    if (close == string_view::npos) return end;
    const string_view inner = text.substr(open + 1, close - open - 1);
    const string_view content = TrimSpaces(inner);
    if (content.size() < inner.size()) Widen(Gap::kWide);
    const bool letters = std::any_of(content.begin(), content.end(), IsAsciiLetter);
    const bool plain_words = content.find_first_of("\\$^_{}()[]=<>0123456789") == string_view::npos;
    if (content.empty()) return close + 1;
    if (bold && content.size() == 1 && content[0] >= 'i' && content[0] <= 'k') {
      // The unit vectors.
      Push(Tok::kCommand, std::string("unit ") + content[0]);
      return close + 1;
    }
    // A digit of another base is no unit.
    const bool base = close + 1 < text.size() && text[close + 1] == '_';
    if (BehindValue() && !base &&
        (content.size() == 1 ? IsUnitLetter(content) : !plain_words && IsUnitProduct(content))) {
      Push(Tok::kText, "units");
      return close + 1;
    }
    if (OnlyLetters(content) && content.size() > 1 && nesting < kMaxTextNesting) {
      Scan(content, nesting + 1);
      return close + 1;
    }
    // "\text{FF}_{16}"
    if (base && content.size() > 1 && content.find_first_not_of("ABCDEF") == string_view::npos) {
      Push(Tok::kWord, content);
      return close + 1;
    }
    if (content.size() == 1 || (letters && plain_words && content != "times" && PlainCommand(content).has_value())) {
      if (IsAsciiLetter(content[0])) {
        Push(Tok::kWord, content);
        return close + 1;
      }
    }
    if ((letters || static_cast<unsigned char>(content[0]) >= 0x80) && plain_words) {
      string_view words = content;
      // ", and": the comma is a separator of its own.
      while (!words.empty() && (words.front() == ',' || words.front() == ';')) {
        Push(Tok::kChar, words.substr(0, 1));
        words = TrimSpaces(words.substr(1));
      }
      std::string_view tail;
      while (!words.empty() && (words.back() == ',' || words.back() == '.')) {
        if (words.back() == ',') tail = ",";
        words.remove_suffix(1);
      }
      if (!words.empty()) Push(Tok::kText, TrimSpaces(words));
      if (!tail.empty()) Push(Tok::kChar, tail);
    } else if (nesting < kMaxTextNesting) {
      Scan(content, nesting + 1);
    }
    if (inner.size() > content.size() && IsAsciiSpace(inner.back())) Widen(Gap::kWide);
    return close + 1;
  }

  string_view text_;
  size_t max_tokens_;
  TokenList list_;
  Gap gap_ = Gap::kNone;
  int depth_ = 0;        // open environments
  bool system_ = false;  // the next one is a system of equations
};

}  // namespace

bool IsUnitProduct(string_view text) {
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    if (IsAsciiLetter(text[i])) {
      size_t end = i;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      const string_view word = text.substr(i, end - i);
      const bool prefix = (word == "k" || word == "M") && text.substr(end).starts_with("\\Omega");
      if (!prefix && !IsUnitLetter(word) && !IsUnit(LowerAscii(word))) return false;
      any = true;
      i = end;
    } else if (text[i] == '\\') {
      size_t end = i + 1;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      if (end > i + 1 &&
          !Among(text.substr(i + 1, end - i - 1), {"cdot", "times", "text", "mathrm", "Omega", "left", "right"})) {
        return false;
      }
      i = std::max(end, i + 2);
    } else if (string_view(" ^{}()-/.*0123456789").find(text[i]) == string_view::npos) {
      return false;
    } else {
      ++i;
    }
  }
  return any;
}

TokenList Tokenize(string_view cleaned, size_t max_tokens) { return Lexer(cleaned, max_tokens).Run(); }

}  // namespace iha::scoring::math
