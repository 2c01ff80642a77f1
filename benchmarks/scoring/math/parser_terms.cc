#include <algorithm>

#include "benchmarks/scoring/math/parser_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

// Each mark nests the operand once more: bounded like any nesting.
constexpr int kMaxPostfix = 40;

bool Among(string_view word, std::initializer_list<string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

bool Parser::MultiElement(Ref ref) const {
  const Kind kind = tree_.kind(ref);
  return kind == Kind::kBracket || kind == Kind::kSet || kind == Kind::kUnion || kind == Kind::kSetBuilder ||
         kind == Kind::kNamedSet || kind == Kind::kIntersect || kind == Kind::kMinus;
}

Ref Parser::ParseAdditive() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  std::vector<Ref> terms;
  bool first = true;
  SkipEmptyGroups();
  while (!failed_) {
    char sign = '+';
    if (IsChar('+') || IsChar('-')) {
      sign = At().text[0];
      Next();
    } else if (IsCommand("pm") || IsCommand("mp")) {
      sign = IsCommand("pm") ? 'p' : 'm';
      Next();
    } else if (IsChar('+', 0) || first) {
      sign = '+';
    } else {
      break;
    }
    first = false;
    // "+-5" and "--5": signs follow signs.
    const bool signs = IsChar('+') || IsChar('-') || IsCommand("pm") || IsCommand("mp");
    Ref term = kNoRef;
    if (signs) {
      const bool negative = IsChar('-');
      if (!IsChar('+') && !IsChar('-')) return Fail("two signs");
      // "+/-" is plus or minus; otherwise the second sign belongs to the term.
      Next();
      term = ParseTerm();
      if (term != kNoRef && negative) term = tree_.Neg(term);
    } else if (sign == '+' && IsChar('/') && IsChar('-', 1)) {
      pos_ += 2;
      sign = 'p';
      term = ParseTerm();
    } else {
      term = ParseTerm();
    }
    if (term == kNoRef) return failed_ ? kNoRef : Fail("term");
    if (sign == '-') term = tree_.Neg(term);
    if (sign == 'p' || sign == 'm') term = tree_.New(Kind::kPlusMinus, sign == 'p' ? "+" : "-", {term});
    terms.push_back(term);
    if (IsChar('-') && (tree_.Is(term, Kind::kNamedSet) || tree_.Is(term, Kind::kBracket)) && IsCommand("{", 1)) break;
    if (IsCommand("choose") || IsCommand("over")) {
      const bool binomial = IsCommand("choose");
      Next();
      const Ref lower = ParseAdditive();
      if (lower == kNoRef) return Fail("lower part");
      const Ref upper = tree_.Add(terms);
      terms = {binomial ? tree_.New(Kind::kFunction, "binom", {upper, lower}) : tree_.Div(upper, lower)};
    }
    if (terms.size() > 1000) return Fail("too many terms");
  }
  if (failed_) return kNoRef;
  // A sum that has a decimal literal alone stays that literal.
  return terms.size() == 1 ? terms[0] : tree_.Add(terms);
}

bool Parser::StartsFactorCommand(string_view name) const {
  size_t tokens = 0;
  if (RelationMark(tokens) != '\0') return false;
  return !Among(name, {"cup",   "cap",    "bigcup", "bigcap", "setminus", "smallsetminus", "backslash", "pm",
                       "mp",    "times",  "cdot",   "div",    "ast",      "star",          "pmod",      "mod",
                       "bmod",  "choose", "over",   "}",      "rangle",   "rfloor",        "rceil",     "rvert",
                       "rVert", "rbrace", "%",      "colon",  "to",       "mid",           "wedge",     "vee",
                       "land",  "lor",    "&",      "circ",   "degree",   "bullet",        "{",         "lbrace",
                       "#",     "not",    "_",      "|",      "prime",    "implies",       "Vert"}) ||
         ((name == "|" || name == "Vert") && bars_ == 0);
}

// "[" behind which nothing can stand that a bracket holds: the end of "[2, 5[".
bool Parser::ClosesHalfOpen() const {
  const Token& next = At(1);
  const bool set = next.kind == Tok::kCommand &&
                   Among(next.text, {"cup", "cap", "bigcup", "bigcap", "setminus", "backslash", "smallsetminus"});
  return next.kind == Tok::kEnd || set ||
         (next.kind == Tok::kChar && string_view(",;)]}").find(next.text[0]) != string_view::npos) ||
         AtSeparatorWord(1);
}

bool Parser::StartsFactor() const {
  const Token& token = At();
  switch (token.kind) {
    case Tok::kNumber:
    case Tok::kBegin:
      return true;
    case Tok::kWord:
      return !AtSeparatorWord() && token.text != "mod" && !(token.text == "to" && IsNumber(1));
    case Tok::kCommand:
      return StartsFactorCommand(token.text);
    case Tok::kChar:
      if (token.text[0] == '(') {
        return !IsCommand("mod", 1) && !IsCommand("bmod", 1) && !(At(1).kind == Tok::kWord && At(1).text == "mod");
      }
      if (token.text[0] == '|') return bars_ == 0 && !bar_stops_;
      return token.text[0] == '{' || (token.text[0] == '[' && !reversed_ && !ClosesHalfOpen());
    default:
      return false;
  }
}

bool Parser::IsUnitToken(bool behind_number) const {
  const Token& token = At();
  if (token.kind == Tok::kText) {
    const std::string word = LowerAscii(token.text);
    return !IsConnective(word) && !IsPercentWord(word) && !MultiplierOf(word).has_value();
  }
  if (token.kind == Tok::kOther && behind_number) {
    return !IsConnective(token.text) && !MultiplierOf(token.text).has_value();
  }
  if (behind_number && token.kind == Tok::kCommand) {
    // Ohm, and micro in front of a unit.
    return (token.text == "Omega" && At(1).kind == Tok::kEnd) || (token.text == "mu" && At(1).kind == Tok::kText);
  }
  if (token.kind != Tok::kWord || !behind_number || token.text.size() < 2) return false;
  // "230 GB"
  if (Among(token.text, {"KB", "kB", "MB", "GB", "TB", "Gb", "Mb"})) return true;
  return IsUnit(LowerAscii(token.text)) && !PlainCommand(token.text).has_value();
}

// "3,50 €": a sign behind a number that no number follows.
bool Parser::AtCurrencyBehind() const { return IsCommand("$") && !IsNumber(1) && !IsCommand("frac", 1); }

// Units behind a number, and any text behind a value, are dropped (docs/grading.md, rule `units`). A text behind a lone
// symbol says something about it ("n is odd"): then nothing is read. Returns false after Fail.
bool Parser::SkipUnits(std::vector<Ref>& factors) {
  const Ref last = factors.back();
  const bool numeric = !HasSymbols(tree_, last);
  const size_t begin = pos_;
  // "12/\text{hour}"
  if (numeric && IsChar('/') && At(1).kind == Tok::kText && IsUnit(LowerAscii(At(1).text))) pos_ += 2;
  while (IsUnitToken(numeric) || (numeric && AtCurrencyBehind())) {
    if (factors.size() == 1 && (tree_.Is(last, Kind::kSymbol) || tree_.Is(last, Kind::kText))) {
      Fail("words behind a symbol");
      return false;
    }
    Next();
    if (IsChar('^')) {
      Next();
      if (ParseScript() == kNoRef) return false;
    }
    const bool rate = IsChar('/') || IsCommand("cdot") || IsChar('.');
    if (rate && (At(1).kind == Tok::kText || At(1).kind == Tok::kOther ||
                 (At(1).kind == Tok::kWord && (At(1).text.size() == 1 || IsUnit(At(1).text))))) {
      Next();
      if (At().kind == Tok::kWord || At().kind == Tok::kOther) Next();
      if (IsChar('^')) {
        Next();
        if (ParseScript() == kNoRef) return false;
      }
    }
  }
  // "2 hours 30 minutes" is neither 60 nor 32.
  if (pos_ > begin && tree_.Is(last, Kind::kNumber) && IsNumber()) {
    Fail("two quantities side by side");
    return false;
  }
  return true;
}

// literal x 10^k stays a literal whose last digit counts 10^(unit + k).
Ref Parser::ApplyScientific(Ref literal, Ref power) {
  const std::string text = tree_[power].value.ToString();
  const size_t slash = text.find('/');
  const std::string zeros = slash == std::string::npos ? text : text.substr(slash + 1);
  if (zeros[0] != '1' || zeros.find_first_not_of('0', 1) != std::string::npos) return tree_.Mul({literal, power});
  const auto exponent = static_cast<int32_t>(zeros.size() - 1) * (slash == std::string::npos ? 1 : -1);
  return tree_.Literal(tree_[literal].value * tree_[power].value, tree_[literal].digits,
                       tree_[literal].unit + exponent);
}

// "1/2%" is half a percent.
bool Parser::IsPartOfPercent(Ref above, Ref below) const {
  const auto whole = [&](Ref ref) { return tree_.Is(ref, Kind::kNumber) && tree_[ref].value.IsInteger(); };
  return whole(above) && tree_.Is(below, Kind::kPercent) && whole(tree_[below].kids[0]);
}

Ref Parser::ParseTerm() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Ref first = ParseFactor();
  if (first == kNoRef) return failed_ ? kNoRef : Fail("factor");
  std::vector<Ref> factors = {first};
  int composed = 0;
  while (!failed_ && SkipUnits(factors)) {
    bool divide = false;
    bool explicit_times = true;
    const bool letter_x = At().kind == Tok::kWord && At().text == "x" && IsNumber(1) && At(1).text == "10" &&
                          IsChar('^', 2) && tree_.Is(factors.back(), Kind::kNumber);
    if (IsCommand("times") || IsCommand("cdot") || IsCommand("ast") || IsCommand("star") || IsCommand("bullet") ||
        letter_x || (IsChar('*') && !IsChar('*', 1))) {
      Next();
    } else if (IsChar('/') || IsCommand("div")) {
      divide = true;
      Next();
    } else if (IsCommand("circ")) {
      Next();
      const Ref inner = ParseFactor();
      if (inner == kNoRef) return failed_ ? kNoRef : Fail("factor");
      factors.back() = tree_.New(Kind::kFunction, "compose", {factors.back(), inner});
      if (++composed > kMaxPostfix) return Fail("too many compositions");
      continue;
    } else if (StartsFactor()) {
      explicit_times = false;
      if (MultiElement(factors.back())) break;
      if (At().gap == Gap::kQuad) break;
      // Of a word ("xy") the first letter is taken in place: then nothing may stand in front.
      const bool glued = (pos_ > 0 && tokens_[pos_ - 1].kind == Tok::kNumber) ||
                         (pos_ > 1 && tokens_[pos_ - 1].text == "}" && tokens_[pos_ - 2].text == "{");
      if (IsNumber() && tree_.Is(factors.back(), Kind::kNumber) && glued) {
        return Fail("two numbers side by side");
      }
    } else {
      break;
    }
    const bool power_of_ten = IsNumber() && At().text == "10" && IsChar('^', 1);
    bool negative = false;
    while (explicit_times && (IsChar('-') || IsChar('+'))) {
      negative = negative != IsChar('-');
      Next();
    }
    Ref factor = ParseFactor();
    if (factor == kNoRef) return failed_ ? kNoRef : Fail("factor");
    if (negative) factor = tree_.Neg(factor);
    const Ref last = factors.back();
    if (divide && IsPartOfPercent(last, factor)) {
      factors.back() = tree_.New(Kind::kPercent, "", {tree_.Div(last, tree_[factor].kids[0])});
      continue;
    }
    if (divide) factor = tree_.Pow(factor, tree_.Number(Rational(-1)));
    if (power_of_ten && explicit_times && tree_.Is(factor, Kind::kNumber) && tree_[last].digits >= 0) {
      factors.back() = ApplyScientific(last, factor);
    } else {
      factors.push_back(factor);
    }
    if (factors.size() > 1000) return Fail("too many factors");
  }
  if (failed_) return kNoRef;
  return factors.size() == 1 ? factors[0] : tree_.Mul(factors);
}

Ref Parser::ParseFactor() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  SkipEmptyGroups();
  const bool currency = IsCommand("$");
  if (currency) Next();
  const bool negative = currency && IsChar('-');
  if (negative) Next();
  const bool number = IsNumber();
  Ref base = ParsePrimary();
  if (base != kNoRef) base = ParsePostfix(base, number);
  if (base == kNoRef) return failed_ ? kNoRef : Fail("operand");
  return negative ? tree_.Neg(base) : base;
}

Ref Parser::ParseScript() {
  if (IsChar('{')) return ParseGroup();
  if (IsChar('(')) return ParseBracket();
  if (IsChar('-') || IsChar('+')) {
    const bool negative = IsChar('-');
    Next();
    const Ref inner = ParseScript();
    return inner == kNoRef ? kNoRef : negative ? tree_.Neg(inner) : inner;
  }
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  return ParseArgument(true);
}

Ref Parser::ParseExponent(Ref base) {
  // Degrees, primes, ordinals and the adjoint are no powers.
  const size_t brace = IsChar('{') ? 1 : 0;
  const Token& token = At(brace);
  const bool closes = brace == 0 || IsChar('}', 2);
  if (closes && token.kind == Tok::kCommand && (token.text == "circ" || token.text == "degree")) {
    pos_ += brace == 0 ? 1 : 3;
    if (At().kind == Tok::kWord && (At().text == "C" || At().text == "F")) Next();
    return tree_.New(Kind::kDegree, "", {base});
  }
  const bool letter_o = (token.kind == Tok::kWord || token.kind == Tok::kText) && token.text == "o";
  if (closes && letter_o && tree_.Is(base, Kind::kNumber)) {
    pos_ += brace == 0 ? 1 : 3;
    return tree_.New(Kind::kDegree, "", {base});
  }
  const bool ordinal_word = token.kind == Tok::kText || token.kind == Tok::kWord;
  if (closes && ordinal_word && Among(token.text, {"th", "st", "nd", "rd"})) {
    pos_ += brace == 0 ? 1 : 3;
    return base;
  }
  if (closes && token.kind == Tok::kCommand && token.text == "prime") {
    pos_ += brace == 0 ? 1 : 3;
    return tree_.Is(base, Kind::kSymbol) ? ParseSymbol(tree_[base].text + "'") : Fail("prime");
  }
  if (tree_.Is(base, Kind::kSymbol) && IsChar('*', brace) && closes) {
    pos_ += brace == 0 ? 1 : 3;
    return ParseSymbol(tree_[base].text + "*");
  }
  const Ref exponent = ParseScript();
  if (exponent == kNoRef) return failed_ ? kNoRef : Fail("exponent");
  if (IsChar('^') || (IsChar('*') && IsChar('*', 1))) {
    // 2^3^2 is 2^(3^2).
    const Depth depth(*this);
    if (TooDeep()) return Fail("nested too deep");
    pos_ += IsChar('^') ? 1 : 2;
    const Ref tower = ParseExponent(exponent);
    return tower == kNoRef ? kNoRef : tree_.Pow(base, tower);
  }
  return tree_.Pow(base, exponent);
}

// The tokens of the primes at `ahead`, written ' or ^\prime or ^{\prime\prime}; `marks` counts them.
size_t Parser::Primes(size_t ahead, int& marks) const {
  marks = 0;
  size_t end = ahead;
  while (IsChar('\'', end)) ++end, ++marks;
  if (marks > 0 || !IsChar('^', ahead)) return end - ahead;
  const bool braced = IsChar('{', ahead + 1);
  end = ahead + (braced ? 2 : 1);
  while (IsCommand("prime", end) && (braced || marks == 0)) ++end, ++marks;
  if (marks == 0 || (braced && !IsChar('}', end))) return 0;
  return end - ahead + (braced ? 1 : 0);
}

// 30^\circ 15' 36'': minutes and seconds of arc, where the degrees are a number.
Ref Parser::ParseArcMinutes(Ref degrees) {
  Rational total = tree_[tree_[degrees].kids[0]].value;
  for (int part = 1; part <= 2 && IsNumber(); ++part) {
    int marks = 0;
    const size_t tokens = Primes(1, marks);
    const auto value = Rational::ParseDecimal(At().text);
    if (tokens == 0 || marks != part || !value.has_value()) break;
    total += *value / Rational(part == 1 ? 60 : 3600);
    pos_ += 1 + tokens;
  }
  return tree_.New(Kind::kDegree, "", {tree_.Number(total)});
}

Ref Parser::ParsePostfix(Ref base, bool from_number) {
  for (int marks = 0; base != kNoRef && !failed_; ++marks) {
    if (marks > kMaxPostfix) return Fail("too many marks behind an operand");
    SkipEmptyGroups();
    if (IsChar('^') || (IsChar('*') && IsChar('*', 1))) {
      pos_ += IsChar('^') ? 1 : 2;
      base = ParseExponent(base);
    } else if (IsChar('!')) {
      if (IsChar('=', 1) && (At().gap != Gap::kNone || !from_number)) break;
      Next();
      const bool twice = IsChar('!');
      if (twice) Next();
      base = tree_.New(Kind::kFunction, twice ? "fact2" : "fact", {base});
    } else if (IsCommand("%") || IsChar('%') ||
               ((At().kind == Tok::kText || At().kind == Tok::kWord) && IsPercentWord(LowerAscii(At().text)))) {
      Next();
      base = tree_.New(Kind::kPercent, "", {base});
    } else if (IsCommand("degree")) {
      Next();
      base = tree_.New(Kind::kDegree, "", {base});
    } else if ((At().kind == Tok::kText || At().kind == Tok::kOther) &&
               MultiplierOf(LowerAscii(At().text)).has_value()) {
      base = tree_.Mul({base, tree_.Number(Rational(*MultiplierOf(LowerAscii(At().text))))});
      Next();
    } else if (const size_t braced = IsChar('{', 1) ? 1 : 0;
               IsChar('_') && (IsCommand("max", 1 + braced) || IsCommand("min", 1 + braced)) &&
               (braced == 0 || IsChar('}', 3))) {
      pos_ += braced == 0 ? 2 : 4;  // "f(x)_{\max}": the value that the function has there
    } else if (IsChar('_') && tree_.Is(base, Kind::kBracket)) {
      return Fail("subscript of a bracket");
    } else if (int minutes = 0; tree_.Is(base, Kind::kDegree) && tree_.Is(tree_[base].kids[0], Kind::kNumber) &&
                                IsNumber() && Primes(1, minutes) > 0 && minutes == 1) {
      base = ParseArcMinutes(base);
    } else if (IsChar('\'') && tree_.Is(base, Kind::kDegree)) {
      Next();
    } else if (from_number && At().kind == Tok::kWord && At().gap == Gap::kNone &&
               Among(At().text, {"st", "nd", "rd", "th"})) {
      Next();
    } else {
      break;
    }
  }
  return failed_ ? kNoRef : base;
}

}  // namespace iha::scoring::math
