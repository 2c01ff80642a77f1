#include <algorithm>

#include "benchmarks/scoring/math/parser_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

constexpr size_t kMaxElements = 2000;  // of one bracket or matrix

bool AllDigits(string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == string_view::npos; }
bool AllUpper(string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

Rational TenTo(int64_t exponent) {
  const Rational ten(10);
  Rational out(1);
  for (int64_t i = 0; i < exponent; ++i) out *= ten;
  return out;
}

}  // namespace

Ref Parser::ParsePrimary() {
  const Token& token = At();
  switch (token.kind) {
    case Tok::kNumber:
      return ParseNumber();
    case Tok::kWord:
      return ParseWord();
    case Tok::kCommand:
      return ParseCommand();
    case Tok::kChar:
      return ParseCharPrimary();
    case Tok::kBegin:
      return ParseMatrix();
    case Tok::kText: {
      const std::string text = token.text;
      if (IsConnective(LowerAscii(text))) return Fail("a connective");
      Next();
      return tree_.New(Kind::kText, LowerAscii(text), {});
    }
    default:
      return Fail("no operand");
  }
}

// The digits of the number token at hand, with the groups behind thousands marks; moves behind them. A decimal comma
// becomes a point.
std::string Parser::TakeGroupedDigits() {
  std::string digits = At().text;
  const bool integer = IsInteger();
  Next();
  if (!integer) return digits;
  const auto tight = [&](size_t ahead) { return At(ahead).gap == Gap::kNone || At(ahead).gap == Gap::kJoined; };
  // How many tokens the mark in front of the next group takes, 0 for none.
  const auto mark = [&]() -> size_t {
    if (At().kind == Tok::kThousands && IsNumber(1)) return 2;
    if ((IsChar(',') || IsChar('\'')) && IsNumber(1) && tight(0) && tight(1)) return 2;
    if (IsNumber() && (At().gap == Gap::kThin || At().gap == Gap::kWide || At().gap == Gap::kJoined)) return 1;
    return 0;
  };
  const auto group = [&](size_t ahead) {
    const string_view text = At(ahead).text;
    return text.size() >= 3 && AllDigits(text.substr(0, 3)) && (text.size() == 3 || text[3] == '.');
  };
  if (digits.size() > 3) {
    // fall through to the decimal comma
  } else {
    while (const size_t length = mark()) {
      const bool comma = IsChar(',');
      if (!group(length - 1)) break;
      if (length == 1 && digits.size() + 3 > 40) break;
      if (comma) {
        out_.thousands_commas = true;
        if (commas_ == Commas::kSeparators) break;
      }
      digits += At(length - 1).text;
      pos_ += length;
      if (digits.find('.') != std::string::npos) return digits;
    }
    if (digits.size() > 3) return digits;
  }
  const bool decimal =
      (IsChar(',') && tight(0) && IsInteger(1) && tight(1)) || (At().kind == Tok::kThousands && IsInteger(1));
  if (decimal && !group(At().kind == Tok::kThousands ? 9999 : 1)) {
    out_.decimal_commas = true;
    if (commas_ == Commas::kDecimal || At().kind == Tok::kThousands) {
      digits += "." + At(1).text;
      pos_ += 2;
    }
  } else if (decimal && digits.size() > 3) {
    out_.decimal_commas = true;
    if (commas_ == Commas::kDecimal) {
      digits += "." + At(1).text;
      pos_ += 2;
    }
  }
  return digits;
}

// 0.\overline{3}, 0.1\overline{23}, 0.\dot{3}: `digits` has a point.
Ref Parser::ParseRepeating(std::string digits) {
  Next();
  const bool braced = IsChar('{');
  if (braced) Next();
  if (!IsInteger() || At().text.size() > 60) return Fail("repeating digits");
  const std::string period = At().text;
  Next();
  if (braced) {
    if (!IsChar('}')) return Fail("repeating digits");
    Next();
  }
  const size_t places = digits.size() - digits.find('.') - 1;
  if (digits.back() == '.') digits += '0';
  const auto prefix = Rational::ParseDecimal(digits);
  const auto repeated = Rational::ParseDecimal(period);
  if (!prefix.has_value() || !repeated.has_value()) return Fail("number too long");
  const Rational nines = TenTo(static_cast<int64_t>(period.size())) - Rational(1);
  return tree_.Number(*prefix + *repeated / nines / TenTo(static_cast<int64_t>(places)));
}

// "1\frac{1}{10}" and "1 1/2": a whole number in front of a proper fraction is their sum.
Ref Parser::ParseMixed(Ref whole) {
  if (IsNumber() && IsInteger() && IsChar('/', 1) && IsInteger(2) && At().gap == Gap::kWide) {
    const auto num = Rational::ParseDecimal(At().text);
    const auto den = Rational::ParseDecimal(At(2).text);
    if (!num.has_value() || !den.has_value() || !(*num < *den)) return whole;
    pos_ += 3;
    return tree_.Number(tree_[whole].value + *num / *den);
  }
  if (!IsCommand("frac") && !IsCommand("dfrac") && !IsCommand("tfrac")) return whole;
  const size_t begin = pos_;
  const std::vector<Token> saved(tokens_.begin() + static_cast<ptrdiff_t>(pos_),
                                 tokens_.begin() + static_cast<ptrdiff_t>(std::min(pos_ + 8, tokens_.size())));
  Next();
  const Ref fraction = ParseFraction();
  if (fraction == kNoRef) return kNoRef;
  const bool plain = std::none_of(
      tokens_.begin() + static_cast<ptrdiff_t>(begin + 1), tokens_.begin() + static_cast<ptrdiff_t>(pos_),
      [](const Token& token) { return token.kind != Tok::kNumber && token.text != "{" && token.text != "}"; });
  const Node& node = tree_[fraction];
  if (node.kind == Kind::kNumber && node.value.Sign() > 0 && node.value < Rational(1) && plain) {
    return tree_.Number(tree_[whole].value + node.value);
  }
  // A product: read the fraction again where the term expects it.
  pos_ = begin;
  std::copy(saved.begin(), saved.end(), tokens_.begin() + static_cast<ptrdiff_t>(begin));
  return whole;
}

Ref Parser::ParseNumber() {
  if (AtBaseNumber()) return ParseBaseNumber();
  if (const Ref based = ParseBaseWord(); based != kNoRef || failed_) return based;
  const std::string first = At().text;
  const bool point = IsChar('.', 1) && At(1).gap == Gap::kNone;
  const auto repeats = [&](size_t ahead) {
    return (IsCommand("overline", ahead) || IsCommand("dot", ahead) || IsCommand("bar", ahead)) &&
           At(ahead).gap == Gap::kNone;
  };
  if (point && repeats(2)) {
    pos_ += 2;
    return ParseRepeating(first + ".");
  }
  if (first.find('.') != std::string::npos && first.find_first_of("eE") == std::string::npos && repeats(1)) {
    Next();
    return ParseRepeating(first);
  }
  const std::string digits = TakeGroupedDigits();
  const auto value = Rational::ParseDecimal(digits);
  if (!value.has_value()) return Fail("number too long");
  const size_t dot = digits.find('.');
  const size_t exponent = digits.find_first_of("eE");
  if (dot == std::string::npos && exponent == std::string::npos) {
    const Ref whole = tree_.Number(*value);
    return whole == kNoRef ? kNoRef : ParseMixed(whole);
  }
  const size_t end = std::min(exponent, digits.size());
  const auto places = dot == std::string::npos ? 0 : static_cast<int32_t>(end - dot - 1);
  const int32_t shift = exponent == std::string::npos ? 0 : std::stoi(digits.substr(exponent + 1));
  return tree_.Literal(*value, places, shift - places);
}

Ref Parser::ParseSymbol(std::string name) {
  while (IsChar('\'')) {
    name += '\'';
    Next();
  }
  if (IsChar('_')) {
    Next();
    const Ref script = ParseScript();
    if (script == kNoRef) return failed_ ? kNoRef : Fail("subscript");
    // An index that is computed with makes the symbol a function of it: F_{n-k-1}.
    if (tree_.Is(script, Kind::kAdd) || tree_.Is(script, Kind::kMul)) {
      return tree_.New(Kind::kApply, name + "_", {script});
    }
    name += "_" + tree_.Key(script);
    while (IsChar('\'')) {
      name += '\'';
      Next();
    }
  }
  return tree_.New(Kind::kSymbol, std::move(name), {});
}

// "(1, 2)" behind the name of a point: a comma at the level of the bracket.
bool Parser::IsPointBehind() const {
  int depth = 0;
  for (size_t ahead = 0; ahead < 60; ++ahead) {
    const Token& token = At(ahead);
    if (token.kind == Tok::kEnd) return false;
    if (token.kind != Tok::kChar) continue;
    const char c = token.text[0];
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (depth == 0) return false;
    if (c == ',' && depth == 1) return true;
  }
  return false;
}

// f(x), P(A), W(n), A(1, 2): a call; x(x+1) a product. f, g, h, F, G, H always call; other capitals when the argument
// is one name or number.
Ref Parser::ParseCall(std::string name) {
  const bool callable = string_view("fghFGH").find(name[0]) != string_view::npos;
  const bool capital = name[0] >= 'A' && name[0] <= 'Z';
  const bool single =
      (At(1).kind == Tok::kWord && (At(1).text.size() == 1 || AllUpper(At(1).text))) || (At(1).kind == Tok::kNumber);
  if (!callable && !(capital && (IsPointBehind() || (single && IsChar(')', 2))))) return kNoRef;
  if (callable && IsChar(')', 1)) return kNoRef;
  const Ref arguments = ParseBracket();
  if (arguments == kNoRef) return Fail("arguments");
  std::vector<Ref> kids = {arguments};
  if (tree_.Is(arguments, Kind::kBracket)) kids = tree_[arguments].kids;
  return tree_.New(Kind::kApply, std::move(name), std::move(kids));
}

Ref Parser::ParseWord() {
  if (AtBaseNumber()) return ParseBaseNumber();
  const std::string word = At().text;
  const std::string lower = LowerAscii(word);
  const auto command = PlainCommand(word.size() > 2 && !AllUpper(word) ? lower : word);
  if (command.has_value() && word.size() > 1) {
    Next();
    return ParseCommandNamed(std::string(*command));
  }
  if (AllUpper(word) && word.size() > 1) {
    Next();
    return ParseSymbol(word);  // AB, ABC: a segment, a triangle
  }
  // "xy" is x times y: the rest of the run stays for the next factor.
  const std::string name = TakeCharacter();
  const bool subscript = IsChar('_') && word.size() == 1;
  if (!subscript && name == "e") return tree_.New(Kind::kConstant, "e", {});
  if (!subscript && name == "i") return tree_.New(Kind::kConstant, "i", {});
  if (word.size() > 1) return tree_.New(Kind::kSymbol, name, {});
  const Ref symbol = ParseSymbol(name);
  if (symbol != kNoRef && tree_.Is(symbol, Kind::kSymbol) && IsChar('(')) {
    const Ref call = ParseCall(tree_[symbol].text);
    if (call != kNoRef || failed_) return call;
  }
  return symbol;
}

Ref Parser::ParseCharPrimary() {
  switch (At().text[0]) {
    case '(':
      UnwrapBaseNumber();
      if (AtBaseNumber()) return ParseBaseNumber();
      return ParseBracket();
    case '[':
    case ']':
      return ParseBracket();
    case '{':
      return ParseGroup();
    case '|':
      return ParseBars();
    case '.':
      if (IsCommand("overline", 1) || IsCommand("dot", 1)) {
        Next();
        return ParseRepeating("0.");
      }
      return Fail("point");
    case '?':
      Next();
      return tree_.New(Kind::kSymbol, "?", {});
    default:
      return Fail("no operand");
  }
}

Ref Parser::ParseBracket() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  const char open = At().kind == Tok::kCommand ? '<' : At().text[0];
  Next();
  if (IsChar(',')) return Fail("an empty element");
  const bool bar = std::exchange(bar_stops_, false);
  const bool colon = std::exchange(colon_stops_, false);
  const bool reversed = std::exchange(reversed_, open == ']');
  const int bars = std::exchange(bars_, 0);
  const Ref inside = ParseList(false);
  bar_stops_ = bar;
  colon_stops_ = colon;
  reversed_ = reversed;
  bars_ = bars;
  if (failed_) return kNoRef;
  char close = '\0';
  if (IsChar(')') || IsChar(']')) close = At().text[0];
  if ((open == ']' || open == '[') && IsChar('[')) close = '[';
  if (open == '<' && (IsCommand("rangle") || IsChar('>'))) close = '>';
  if (close == '\0') return Fail("unclosed bracket");
  Next();
  if (inside == kNoRef) return tree_.New(Kind::kBracket, {open, close}, {});
  // A single element in plain brackets is a group.
  if (!tree_.Is(inside, Kind::kList)) {
    if (open == '<') return tree_.New(Kind::kBracket, "<>", {inside});
    return inside;
  }
  std::vector<Ref> kids = tree_[inside].kids;
  if (kids.size() > kMaxElements) return Fail("too many elements");
  if (tree_[inside].text == "or" || tree_[inside].text == "and") return inside;
  // French style: ]a, b] and [a, b[ are half open.
  if (close == '[') close = ')';
  const char shown = open == ']' ? '(' : open;
  return tree_.New(Kind::kBracket, {shown, close}, std::move(kids));
}

Ref Parser::ParseGroup() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Next();
  if (IsChar('}')) {
    Next();
    return tree_.Number(Rational(1));
  }
  const int bars = std::exchange(bars_, 0);
  const Ref inside = ParseList(false);
  bars_ = bars;
  if (inside == kNoRef) return failed_ ? kNoRef : Fail("group");
  if (!IsChar('}')) return Fail("unclosed brace");
  Next();
  return inside;
}

Ref Parser::ParseSet() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Next();
  const auto closes = [&] { return IsCommand("}") || IsCommand("rbrace") || IsChar('}'); };
  if (closes()) {
    Next();
    return tree_.New(Kind::kSet, "", {});
  }
  const bool bar = std::exchange(bar_stops_, true);
  const bool colon = std::exchange(colon_stops_, true);
  const int bars = std::exchange(bars_, 0);
  const Ref inside = ParseList(false);
  Ref condition = kNoRef;
  const bool builder = !failed_ && (IsChar('|') || IsCommand("mid") || IsChar(':') || IsCommand("colon"));
  if (builder) {
    Next();
    bar_stops_ = false;
    condition = ParseList(false);
  }
  bar_stops_ = bar;
  colon_stops_ = colon;
  bars_ = bars;
  if (inside == kNoRef || (builder && condition == kNoRef)) return failed_ ? kNoRef : Fail("set");
  if (!closes()) return Fail("unclosed set");
  Next();
  if (builder) return tree_.New(Kind::kSetBuilder, "", {inside, condition});
  std::vector<Ref> kids = {inside};
  if (tree_.Is(inside, Kind::kList)) kids = tree_[inside].kids;
  if (kids.size() > kMaxElements) return Fail("too many elements");
  return tree_.New(Kind::kSet, "", std::move(kids));
}

Ref Parser::ParseDelimited(string_view close, std::string function) {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Next();
  const Ref inside = ParseList(false);
  if (inside == kNoRef) return failed_ ? kNoRef : Fail("operand");
  if (!IsCommand(close)) return Fail("unclosed delimiter");
  Next();
  return tree_.New(Kind::kFunction, std::move(function), {inside});
}

Ref Parser::ParseBars() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  Next();
  ++bars_;
  const bool bar = std::exchange(bar_stops_, false);
  const Ref inside = ParseSetExpression();
  bar_stops_ = bar;
  --bars_;
  if (inside == kNoRef) return failed_ ? kNoRef : Fail("operand");
  if (!IsChar('|') && !IsCommand("vert")) return Fail("unclosed bar");
  Next();
  return tree_.New(Kind::kFunction, "abs", {inside});
}

Ref Parser::ParseMatrix() {
  const Depth depth(*this);
  if (TooDeep()) return Fail("nested too deep");
  const std::string name = At().text;
  Next();
  std::vector<Ref> elements;
  std::vector<Ref> row;
  size_t columns = 0;
  int32_t rows = 0;
  const auto finish_row = [&] {
    if (row.empty()) return true;
    if (rows > 0 && row.size() != columns) return false;
    columns = row.size();
    elements.insert(elements.end(), row.begin(), row.end());
    row.clear();
    ++rows;
    return elements.size() <= kMaxElements;
  };
  while (!failed_ && At().kind != Tok::kEndEnv) {
    if (At().kind == Tok::kEnd) return Fail("unclosed environment");
    if (IsCommand("hline") || IsChar('&')) {
      Next();
      continue;
    }
    if (At().kind == Tok::kNewRow) {
      Next();
      if (!finish_row()) return Fail("uneven rows");
      continue;
    }
    const Ref element = ParseList(false);
    if (element == kNoRef) return failed_ ? kNoRef : Fail("element");
    row.push_back(element);
    if (!IsChar('&') && At().kind != Tok::kNewRow && At().kind != Tok::kEndEnv) return Fail("element");
  }
  if (failed_ || !finish_row()) return failed_ ? kNoRef : Fail("uneven rows");
  Next();
  if (elements.empty()) return Fail("an empty environment");
  const bool matrix = name.find("matrix") != std::string::npos || name == "array" || name == "tabular";
  if (!matrix) {
    // cases, align, equation: rows of statements; one cell is itself.
    if (elements.size() == 1) return elements[0];
    if (name == "cases") return tree_.Matrix("cases", rows, std::move(elements));
    return tree_.New(Kind::kList, ",", std::move(elements));
  }
  const std::string delimiter = name == "vmatrix" ? "v" : name == "Vmatrix" ? "V" : "p";
  return tree_.Matrix(delimiter, rows, std::move(elements));
}

}  // namespace iha::scoring::math
