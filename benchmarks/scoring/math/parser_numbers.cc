// Numbers: thousands marks, decimal commas, repeating digits, mixed numbers.
#include <algorithm>

#include "benchmarks/scoring/math/parser_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

bool AllDigits(string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == string_view::npos; }

Rational TenTo(int64_t exponent) {
  const Rational ten(10);
  Rational out(1);
  for (int64_t i = 0; i < exponent; ++i) out *= ten;
  return out;
}

}  // namespace

// "1.234,56": behind a group of three a comma that can only be a decimal one.
bool Parser::TakeEuropean(std::string& digits) {
  const size_t point = digits.find('.');
  const bool grouped = point != std::string::npos && point >= 1 && point <= 3 && digits.size() == point + 4 &&
                       digits.find_first_of("eE") == std::string::npos;
  if (!grouped || !IsChar(',') || At().gap != Gap::kNone || !IsInteger(1) || At(1).gap != Gap::kNone) return false;
  out_.decimal_commas = true;
  if (commas_ != Commas::kDecimal) return false;
  digits.erase(point, 1);
  digits += "." + At(1).text;
  pos_ += 2;
  return true;
}

// "12,34,567": groups of two, then one of three, as in India; read so where the other side is one number.
bool Parser::TakeIndian(std::string& digits) {
  size_t ahead = 0;
  size_t pairs = 0;
  std::string more;
  const auto group = [&](size_t size) {
    return IsChar(',', ahead) && At(ahead).gap == Gap::kNone && IsInteger(ahead + 1) &&
           At(ahead + 1).gap == Gap::kNone && At(ahead + 1).text.size() == size;
  };
  if (digits.size() > 2) return false;
  for (; group(2); ahead += 2, ++pairs) more += At(ahead + 1).text;
  if (pairs == 0 || !group(3)) return false;
  more += At(ahead + 1).text;
  out_.decimal_commas = true;
  if (commas_ != Commas::kDecimal) return false;
  digits += more;
  pos_ += ahead + 2;
  return true;
}

// The digits of the number token at hand, with the groups behind thousands marks; moves behind them. A decimal comma
// becomes a point.
std::string Parser::TakeGroupedDigits() {
  std::string digits = At().text;
  const bool integer = IsInteger();
  Next();
  if (!integer) {
    TakeEuropean(digits);
    return digits;
  }
  if (TakeIndian(digits)) return digits;
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
  bool any_comma = false;
  if (digits.size() > 3) {
    // fall through to the decimal comma
  } else {
    while (const size_t length = mark()) {
      const bool comma = IsChar(',');
      if (!group(length - 1)) break;
      // "0,125" groups nothing.
      if (comma && digits[0] == '0') break;
      any_comma = any_comma || comma || length == 2;
      if (length == 1 && digits.size() + 3 > 40) break;
      if (comma) {
        out_.thousands_commas = true;
        if (commas_ == Commas::kSeparators) break;
      }
      digits += At(length - 1).text;
      pos_ += length;
      if (digits.find('.') != std::string::npos) return digits;
    }
    if (digits.size() > 3 && any_comma) return digits;
  }
  const bool decimal =
      (IsChar(',') && tight(0) && IsInteger(1) && tight(1)) || (At().kind == Tok::kThousands && IsInteger(1));
  if (decimal && !group(At().kind == Tok::kThousands ? 9999 : 1)) {
    out_.decimal_commas = true;
    if (commas_ == Commas::kDecimal || At().kind == Tok::kThousands) {
      digits += "." + At(1).text;
      pos_ += 2;
    }
  } else if (decimal && (digits.size() > 3 || digits[0] == '0')) {
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

}  // namespace iha::scoring::math
