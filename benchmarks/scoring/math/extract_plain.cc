// Mathematics in plain text, outside of math delimiters (extract_impl.h, LastPlain).
#include <algorithm>
#include <array>
#include <vector>

#include "benchmarks/scoring/math/extract_impl.h"
#include "benchmarks/scoring/math/extract_shape.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kNone = string_view::npos;
constexpr size_t kLineBytes = 600;  // of a line, up to the last number
constexpr size_t kMaxTokens = 400;  // of a line

enum class Mark : uint8_t {
  kNumber,
  kName,      // a letter, a function, a LaTeX command
  kOperator,  // between two operands
  kRelation,
  kPrefix,   // a root, plus-minus
  kPostfix,  // behind an operand: degrees, raised digits
  kOpen,
  kClose,
  kComma,  // inside brackets
  kProse,  // ends an expression
};

struct Token {
  Mark mark = Mark::kProse;
  size_t begin = 0;
  size_t end = 0;
  bool valued = false;    // holds a digit or a constant
  bool function = false;  // takes what follows
};

struct Sign {
  string_view text;
  Mark mark;
  bool valued = false;
};
constexpr std::array<Sign, 44> kSigns = {{{"+", Mark::kOperator},
                                          {"-", Mark::kOperator},
                                          {"\u2212", Mark::kOperator},
                                          {"*", Mark::kOperator},
                                          {"/", Mark::kOperator},
                                          {"^", Mark::kOperator},
                                          {"_", Mark::kOperator},
                                          {"\u00d7", Mark::kOperator},
                                          {"\u00f7", Mark::kOperator},
                                          {"\u00b7", Mark::kOperator},
                                          {"\u222a", Mark::kOperator},
                                          {"\u2229", Mark::kOperator},
                                          {"=", Mark::kRelation},
                                          {"<", Mark::kRelation},
                                          {">", Mark::kRelation},
                                          {"\u2264", Mark::kRelation},
                                          {"\u2265", Mark::kRelation},
                                          {"\u2260", Mark::kRelation},
                                          {"\u2208", Mark::kRelation},
                                          {"\u221a", Mark::kPrefix},
                                          {"\u221b", Mark::kPrefix},
                                          {"\u00b1", Mark::kPrefix},
                                          {"\u00b0", Mark::kPostfix},
                                          {"\u00b2", Mark::kPostfix},
                                          {"\u00b3", Mark::kPostfix},
                                          {"\u00b9", Mark::kPostfix},
                                          {"\u2070", Mark::kPostfix},
                                          {"\u2074", Mark::kPostfix},
                                          {"\u2075", Mark::kPostfix},
                                          {"\u2076", Mark::kPostfix},
                                          {"\u2077", Mark::kPostfix},
                                          {"\u2078", Mark::kPostfix},
                                          {"\u2079", Mark::kPostfix},
                                          {"\u207b", Mark::kPostfix},
                                          {"%", Mark::kPostfix},
                                          {"\u03c0", Mark::kName, true},
                                          {"\u221e", Mark::kName, true},
                                          {"\u03b8", Mark::kName},
                                          {"(", Mark::kOpen},
                                          {"[", Mark::kOpen},
                                          {"{", Mark::kOpen},
                                          {")", Mark::kClose},
                                          {"]", Mark::kClose},
                                          {"}", Mark::kClose}}};

// A short run of letters that stand for numbers: "2xy".
bool IsLetterProduct(string_view word) { return word.size() <= 3 && word.find_first_not_of("abckmnpqrtxyz") == kNone; }

// One line as tokens, and the expressions that they make.
class PlainLine {
 public:
  PlainLine(string_view text, size_t begin, size_t end) : text_(text), end_(end) {
    for (size_t i = begin; i < end && tokens_.size() < kMaxTokens;) i = Scan(i);
    PairBrackets();
  }

  // The last expression that holds a value; several that are one list. `again`: a number behind it only says it again
  // in decimals, or belongs to the words behind it.
  std::optional<Phrase> Last(bool& again) const {
    std::vector<Phrase> runs;
    for (size_t i = 0; i < tokens_.size();) {
      const size_t end = RunEnd(i);
      if (const auto run = Trimmed(i, end)) runs.push_back(*run);
      i = end;
    }
    if (runs.empty()) return std::nullopt;
    const bool refers = runs.size() > 1 && IsReference(runs.back());
    while (runs.size() > 1 && IsReference(runs.back())) runs.pop_back();
    again = runs.size() > 1 &&
            SaysAbout(text_.substr(runs[runs.size() - 2].end, runs.back().begin - runs[runs.size() - 2].end));
    if (again) runs.pop_back();
    again = again || refers;
    size_t first = runs.size() - 1;
    while (first > 0 && IsJoin(text_.substr(runs[first - 1].end, runs[first].begin - runs[first - 1].end))) --first;
    if (first + 1 < runs.size() && IsList(runs, first)) return Phrase{runs[first].begin, runs.back().end};
    const size_t result = LastResult(runs);
    again = again || result + 1 < runs.size();
    return WithoutUnit(WithoutCalculation(WithoutBrackets(runs[result])));
  }

 private:
  size_t Scan(size_t i) {
    if (IsAsciiSpace(text_[i])) return i + 1;
    if (IsAsciiDigit(text_[i])) return ScanNumber(i);
    if (IsAsciiLetter(text_[i])) return ScanWord(i);
    if (text_[i] == '\\') return ScanCommand(i);
    if (text_[i] == '.' && i + 1 < end_ && IsAsciiDigit(text_[i + 1])) return ScanNumber(i);
    if (text_[i] == '!' && IsFactorial(i)) return Push(Mark::kPostfix, i, i + 1);
    if (text_[i] == ',' || text_[i] == ';') return Push(Mark::kComma, i, i + 1);
    if (const size_t fraction = FractionMark(text_.substr(i)); fraction > 0) {
      return Push(Mark::kNumber, i, i + fraction, true);
    }
    for (const Sign& sign : kSigns) {
      if (text_.substr(i).starts_with(sign.text)) return Push(sign.mark, i, i + sign.text.size(), sign.valued);
    }
    size_t end = i + 1;
    while (end < end_ && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    return Push(Mark::kProse, i, end);
  }

  size_t ScanNumber(size_t i) {
    size_t end = i;
    while (end < end_ && IsNumberPart(text_[end])) ++end;
    while (end > i + 1 && !IsAsciiDigit(text_[end - 1])) --end;
    // "1 250"
    const auto digits = [&](size_t at) {
      size_t n = 0;
      while (at + n < end_ && IsAsciiDigit(text_[at + n])) ++n;
      return n;
    };
    // "1.6e5"
    const size_t exponent = end + (end + 1 < end_ && (text_[end + 1] == '-' || text_[end + 1] == '+') ? 2 : 1);
    if (end < end_ && (text_[end] == 'e' || text_[end] == 'E') && digits(exponent) > 0) {
      return Push(Mark::kNumber, i, exponent + digits(exponent), true);
    }
    while (digits(i) <= 3 && end + 1 < end_ && text_[end] == ' ' && digits(end + 1) == 3 &&
           text_.substr(i, end - i).find_first_not_of("0123456789 ") == kNone) {
      end += 4;
    }
    return Push(Mark::kNumber, i, end, true);
  }

  // Single letters, functions, units behind a number and short products of letters; "x2" and whatever else is prose.
  size_t ScanWord(size_t i) {
    size_t end = i;
    while (end < end_ && IsAsciiLetter(text_[end])) ++end;
    const string_view word = text_.substr(i, end - i);
    const bool glued = i > 0 && IsAsciiDigit(text_[i - 1]);
    const bool raised = text_.substr(end).starts_with("\u00b2") || text_.substr(end).starts_with("\u00b3");
    const bool constant = word == "pi" || word == "Pi" || (word.size() == 1 && raised && !IsUnitLetter(word));
    const bool function = word.size() > 1 && IsFunctionBefore(LowerAscii(word), end);
    // "7 - a small number": the article.
    const bool article = (word == "a" || word == "A" || word == "I") && end + 2 < end_ && text_[end] == ' ' &&
                         IsAsciiLetter(text_[end + 1]) && IsAsciiLetter(text_[end + 2]);
    const bool name = (word.size() == 1 && !article) || function || constant ||
                      (glued && (IsLetterProduct(word) || IsUnit(LowerAscii(word))));
    if (end < end_ && IsAsciiDigit(text_[end])) {
      while (end < end_ && IsNumberPart(text_[end])) ++end;
      return Push(Mark::kProse, i, end);
    }
    Push(name ? Mark::kName : Mark::kProse, i, end, constant);
    if (!tokens_.empty()) tokens_.back().function = function;
    return end;
  }

  // "log 8", "sin(x)"; "32 sec" and "7/min" are no functions.
  bool IsFunctionBefore(const std::string& word, size_t end) const {
    if (!IsFunctionName(word) && word != "sqrt" && word != "cbrt") return false;
    size_t next = end;
    while (next < end_ && text_[next] == ' ') ++next;
    if (next >= end_) return false;
    const bool letter = IsAsciiLetter(text_[next]) && (next + 1 >= end_ || !IsAsciiLetter(text_[next + 1]));
    const bool digit = IsAsciiDigit(text_[next]) && word != "sec" && word != "min" && word != "deg";
    return letter || digit || string_view("(_^\\{").find(text_[next]) != kNone;
  }

  // "4! ways", "5!/3!"; a sentence that ends in "7!" has a capital behind it, or nothing.
  bool IsFactorial(size_t i) const {
    if (i == 0 || i + 1 >= end_ || !(IsAsciiDigit(text_[i - 1]) || text_[i - 1] == ')')) return false;
    const string_view rest = text_.substr(i + 1);
    if (string_view("/*=)^!").find(rest[0]) != kNone) return true;
    if (rest[0] != ' ' || rest.size() < 2) return false;
    return string_view("=/*+-").find(rest[1]) != kNone || (rest[1] >= 'a' && rest[1] <= 'z');
  }

  size_t ScanCommand(size_t i) {
    size_t end = i + 1;
    while (end < end_ && IsAsciiLetter(text_[end])) ++end;
    const string_view name = text_.substr(i + 1, end - i - 1);
    const bool text = name.empty() || name.starts_with("text") || name == "mbox" || name == "boxed" || name == "approx";
    return Push(text ? Mark::kProse : Mark::kName, i, std::max(end, i + 2), name == "pi" || name == "infty");
  }

  size_t Push(Mark mark, size_t begin, size_t end, bool valued = false) {
    end = std::min(end, end_);
    tokens_.push_back({mark, begin, end, valued});
    return end;
  }

  // Brackets around prose, and those without a partner, are prose.
  void PairBrackets() {
    std::vector<size_t> open;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].mark == Mark::kOpen) open.push_back(i);
      if (tokens_[i].mark != Mark::kClose) continue;
      if (open.empty()) {
        tokens_[i].mark = Mark::kProse;
        continue;
      }
      const size_t partner = open.back();
      open.pop_back();
      const bool prose = std::any_of(tokens_.begin() + static_cast<ptrdiff_t>(partner) + 1,
                                     tokens_.begin() + static_cast<ptrdiff_t>(i),
                                     [](const Token& token) { return token.mark == Mark::kProse; });
      if (prose) tokens_[partner].mark = tokens_[i].mark = Mark::kProse;
    }
    for (const size_t i : open) tokens_[i].mark = Mark::kProse;
  }

  bool Blank(size_t i) const { return tokens_[i].begin > tokens_[i - 1].end; }

  // Whether the tokens i - 1 and i, outside of brackets, belong to one expression.
  bool Joined(size_t i) const {
    const Mark a = tokens_[i - 1].mark;
    const Mark b = tokens_[i].mark;
    if (a == Mark::kProse || b == Mark::kProse || a == Mark::kComma || b == Mark::kComma) return false;
    if (!Blank(i)) return true;
    const auto binds = [](Mark mark) { return mark == Mark::kOperator || mark == Mark::kRelation; };
    if (binds(a) || binds(b) || tokens_[i - 1].function) return true;
    // "1/2 x + 3"
    const bool more = i + 1 < tokens_.size() && tokens_[i + 1].mark == Mark::kOperator;
    if (a == Mark::kNumber && b == Mark::kName && tokens_[i].end == tokens_[i].begin + 1 && more) return true;
    // "3 1/2"
    return a == Mark::kNumber && b == Mark::kNumber && IsWhole(i - 1) && TextOf(i).find('/') != kNone &&
           TextOf(i).find_first_of(".,:") == kNone;
  }

  string_view TextOf(size_t i) const { return text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin); }
  bool IsWhole(size_t i) const { return TextOf(i).find_first_not_of("0123456789") == kNone; }

  // Behind the last token of the expression that begins with token `i`.
  size_t RunEnd(size_t i) const {
    size_t depth = tokens_[i].mark == Mark::kOpen ? 1 : 0;
    size_t end = i + 1;
    for (; end < tokens_.size() && (depth > 0 || Joined(end)); ++end) {
      if (tokens_[end].mark == Mark::kOpen) ++depth;
      if (tokens_[end].mark == Mark::kClose) depth -= depth > 0 ? 1 : 0;
    }
    return end;
  }

  // Without the operators at its edges; a sign in front stays where it is written so. nullopt: no value in it.
  std::optional<Phrase> Trimmed(size_t begin, size_t end) const {
    const auto edge = [&](size_t i) {
      return tokens_[i].mark == Mark::kOperator || tokens_[i].mark == Mark::kRelation ||
             tokens_[i].mark == Mark::kProse || tokens_[i].mark == Mark::kComma;
    };
    const auto leads = [&](size_t i) { return edge(i) || tokens_[i].mark == Mark::kPostfix; };
    while (begin < end && leads(begin) && !IsSign(begin, end)) ++begin;
    while (end > begin && (edge(end - 1) || tokens_[end - 1].mark == Mark::kPrefix)) --end;
    const bool valued =
        std::any_of(tokens_.begin() + static_cast<ptrdiff_t>(begin), tokens_.begin() + static_cast<ptrdiff_t>(end),
                    [](const Token& t) { return t.valued; });
    if (!valued) return std::nullopt;
    if (tokens_[begin].begin > 0 && text_[tokens_[begin].begin - 1] == '^') return std::nullopt;  // "24 cm^3"
    // "10 digits of pi"
    const bool lone = begin + 1 == end && tokens_[begin].mark == Mark::kName;
    const string_view before = TrimSpaces(text_.substr(0, tokens_[begin].begin));
    if (lone && !before.ends_with(" is") && !before.ends_with(" equals")) return std::nullopt;
    return Phrase{tokens_[begin].begin, tokens_[end - 1].end};
  }

  bool IsSign(size_t i, size_t end) const {
    const string_view text = TextOf(i);
    if (text == "<" || text == ">" || text == "\u2264" || text == "\u2265") return false;
    return (text == "-" || text == "\u2212") && i + 1 < end && !Blank(i + 1) && tokens_[i + 1].mark != Mark::kOperator;
  }

  // What stands between the members of a list.
  static bool IsJoin(string_view gap) {
    const std::string lower = LowerAscii(TrimSpaces(gap));
    const bool blank = gap.size() > lower.size();
    if (!blank && (lower.empty() || static_cast<unsigned char>(lower[0]) < 0x80)) return false;
    const string_view word = lower.starts_with(',') ? TrimSpaces(string_view(lower).substr(1)) : string_view(lower);
    return word.empty() || word == ";" || IsConnective(word);
  }

  // "≈", "(approximately", ", which is about".
  static bool SaysAbout(string_view gap) {
    const std::string lower = LowerAscii(TrimSpaces(gap));
    string_view rest = lower;
    for (const string_view lead : {"(", ",", "or ", "which is "}) {
      if (rest.starts_with(lead)) rest = TrimSpaces(rest.substr(lead.size()));
    }
    return rest == "\u2248" || rest == "approximately" || (rest == "about" && rest.size() < lower.size()) ||
           rest == "approx." || rest == "approx";
  }

  // "x = 1", "f(x) > 2".
  bool IsStatement(const Phrase& run) const {
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].begin != run.begin || tokens_[i].mark != Mark::kName) continue;
      const auto from = tokens_.begin() + static_cast<ptrdiff_t>(i);
      return std::any_of(from, tokens_.end(),
                         [&](const Token& token) { return token.mark == Mark::kRelation && token.begin < run.end; });
    }
    return false;
  }

  // Statements joined in words ("x = 1 and x = -1", "n = 1 or 2"), or values behind "are", "be", "is" and ":".
  bool IsList(const std::vector<Phrase>& runs, size_t first) const {
    const auto from = runs.begin() + static_cast<ptrdiff_t>(first);
    const bool all = std::all_of(from, runs.end(), [&](const Phrase& run) { return IsStatement(run); });
    const bool none = std::none_of(from + 1, runs.end(), [&](const Phrase& run) { return IsStatement(run); });
    const string_view last_gap = text_.substr(runs[runs.size() - 2].end, runs.back().begin - runs[runs.size() - 2].end);
    const string_view join = TrimSpaces(last_gap);
    const bool in_words = join != "," && join != ";";
    if (IsStatement(*from)) return in_words && (all || none);
    const string_view before = TrimSpaces(text_.substr(0, from->begin));
    for (const string_view verb : {" are", " be", " is", ":"}) {
      if (before.ends_with(verb)) return none;
    }
    return false;
  }

  // Of "16 - 3 - 4 = 9", "400g / 200g = 2" and "2x = 20" the result, of "20 = A" the number; an equation of two names
  // or more, and what a function is, stays whole.
  Phrase WithoutCalculation(Phrase run) const {
    size_t equals = kNone;
    std::string left;
    std::string right;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].begin < run.begin || tokens_[i].begin >= run.end) continue;
      const bool other = tokens_[i].mark == Mark::kRelation && TextOf(i) != "=";
      if (other) return run;
      if (tokens_[i].mark == Mark::kRelation) {
        equals = i;
        left += right;
        right.clear();
      } else if (tokens_[i].mark == Mark::kName && !tokens_[i].valued && !tokens_[i].function && !IsUnitAt(i)) {
        if (right.find(TextOf(i)) == std::string::npos) right += TextOf(i);
      }
    }
    if (equals == kNone || equals + 1 >= tokens_.size()) return run;
    const bool mark = tokens_[equals + 1].mark == Mark::kPostfix && equals + 2 < tokens_.size();  // "= %95"
    const Token& next = tokens_[equals + (mark ? 2 : 1)];
    // "(42/7 = 6)": up to the bracket that closes around it.
    int depth = 0;
    for (size_t i = equals + 1; i < tokens_.size() && tokens_[i].begin < run.end; ++i) {
      depth += tokens_[i].mark == Mark::kOpen ? 1 : tokens_[i].mark == Mark::kClose ? -1 : 0;
      if (depth < 0) run.end = tokens_[i - 1].end;
    }
    const bool lone_name = next.mark == Mark::kName && next.end == run.end;
    if (lone_name && left.empty()) return {run.begin, tokens_[equals - 1].end};
    return right.empty() && left.size() < 2 ? Phrase{next.begin, run.end} : run;
  }

  // "see step 3", "in 2 steps".
  bool IsReference(const Phrase& run) const {
    const string_view number = text_.substr(run.begin, run.end - run.begin);
    if (number.find_first_not_of("0123456789") != kNone) return false;
    const std::string before =
        LowerAscii(TrimSpaces(text_.substr(run.begin > 12 ? run.begin - 12 : 0, std::min<size_t>(run.begin, 12))));
    for (const string_view word : {"step", "steps", "equation", "part", "case", "line", "figure", "theorem", "lemma"}) {
      if (before.ends_with(word)) return true;
    }
    return before.ends_with("in") && LowerAscii(text_.substr(run.end, 6)).starts_with(" step");
  }

  bool IsResult(const Phrase& run) const {
    const string_view before = text_.substr(0, text_.substr(0, run.begin).find_last_not_of(" $") + 1);
    const bool relation = std::any_of(tokens_.begin(), tokens_.end(), [&](const Token& token) {
      return token.mark == Mark::kRelation && token.begin >= run.begin && token.begin < run.end;
    });
    return relation || before.ends_with('=');
  }

  // "4 + 2 = 6 for 2 tubs and 4 packets": numbers behind a result, in its sentence, that nothing is said to be.
  size_t LastResult(const std::vector<Phrase>& runs) const {
    const size_t last = runs.size() - 1;
    size_t result = last;
    while (result > 0 && !IsResult(runs[result])) {
      const string_view gap = text_.substr(runs[result - 1].end, runs[result].begin - runs[result - 1].end);
      const bool lone =
          text_.substr(runs[result].begin, runs[result].end - runs[result].begin).find_first_not_of("0123456789.,/") ==
          kNone;
      const bool words = std::any_of(gap.begin(), gap.end(), IsAsciiLetter);
      if (!lone || !words || gap.find(". ") != kNone || gap.find("? ") != kNone || gap.find(',') != kNone) return last;
      for (const string_view verb :
           {" is ", " are ", " was ", " will be ", "equal", "so ", "then ", "=", ">", "<", ";", ":"}) {
        if (gap.find(verb) != kNone) return last;
      }
      --result;
    }
    return IsResult(runs[result]) ? result : last;
  }

  // "(10 m²)": what one pair of brackets encloses, unless it is a tuple.
  Phrase WithoutBrackets(Phrase run) const {
    if (run.end - run.begin < 3 || text_[run.begin] != '(' || text_[run.end - 1] != ')') return run;
    const string_view inside = text_.substr(run.begin + 1, run.end - run.begin - 2);
    return inside.find_first_of(",()") == kNone ? Phrase{run.begin + 1, run.end - 1} : run;
  }

  // "12m", "400g".
  bool IsUnitAt(size_t i) const {
    const string_view word = TextOf(i);
    return i > 0 && tokens_[i - 1].mark == Mark::kNumber && !Blank(i) &&
           (IsUnitLetter(word) || IsUnit(LowerAscii(word)));
  }

  // "1,000.99m²": the number.
  Phrase WithoutUnit(Phrase run) const {
    const auto number = std::find_if(tokens_.begin(), tokens_.end(), [&](const Token& token) {
      return token.begin >= run.begin && token.mark == Mark::kNumber;
    });
    if (number == tokens_.end() || number->end >= run.end || number + 1 == tokens_.end()) return run;
    if (text_.substr(run.begin, number->begin - run.begin).find_first_not_of('-') != kNone) return run;
    const Token& unit = *(number + 1);
    const string_view word = text_.substr(unit.begin, unit.end - unit.begin);
    const bool is_unit = unit.mark == Mark::kName && (IsUnitLetter(word) || IsUnit(LowerAscii(word)));
    if (!is_unit || text_.substr(unit.end, run.end - unit.end).find_first_of("+-*=<>(") != kNone) return run;
    return {run.begin, number->end};
  }

  string_view text_;
  size_t end_;
  std::vector<Token> tokens_;
};

// "1 million": with the word that multiplies the number that `run` ends in.
Phrase WithMultiplier(string_view text, Phrase run) {
  if (run.end == 0 || !IsAsciiDigit(text[run.end - 1]) || text.substr(run.end, 1) != " ") return run;
  size_t end = run.end + 1;
  while (end < text.size() && IsAsciiLetter(text[end])) ++end;
  if (text.substr(end).starts_with('-')) return run;  // "5 hundred-dollar bills"
  const auto multiplier = MultiplierOf(LowerAscii(text.substr(run.end + 1, end - run.end - 1)));
  return multiplier.has_value() ? Phrase{run.begin, end} : run;
}

}  // namespace

std::optional<Phrase> LastPlain(string_view text, size_t from, size_t limit) {
  limit = std::min(limit, text.size());
  if (from >= limit) return std::nullopt;
  auto number = LastPlainNumber(text.substr(from), limit - from);
  if (number.has_value()) number = Phrase{number->begin + from, number->end + from};
  // The last line with a digit in it.
  size_t digit = limit;
  const auto fraction = [&](size_t end) {
    return (end >= 2 && FractionMark(text.substr(end - 2, 2)) == 2) ||
           (end >= 3 && FractionMark(text.substr(end - 3)) == 3);
  };
  while (digit > from && !IsAsciiDigit(text[digit - 1]) && !fraction(digit)) --digit;
  if (digit == from) {
    const size_t power = std::min(text.rfind("\u00b2", limit - 1), text.rfind("\u00b3", limit - 1));  // "n²" alone
    if (power == kNone || power < from) return std::nullopt;
    digit = std::min(power + 2, limit);
  }
  const size_t line = text.rfind('\n', digit - 1) == kNone ? 0 : text.rfind('\n', digit - 1) + 1;
  const size_t begin = std::max({from, line, digit > kLineBytes ? digit - kLineBytes : 0});
  const size_t end = std::min({text.find('\n', digit), digit + kLineBytes, limit});
  bool again = false;
  const auto run = PlainLine(text, begin, end).Last(again);
  if (run.has_value() && (again || !number.has_value())) return WithMultiplier(text, *run);
  if (!number.has_value()) return std::nullopt;
  const Phrase whole = AroundNumber(text, *number);
  if (whole.begin < number->begin || whole.end > number->end) return whole;
  // A number in a name ("x2") is in no expression.
  return WithMultiplier(text, !run.has_value() || run->end < number->end ? *number : *run);
}

}  // namespace iha::scoring::math
