// Numbers in other bases: 1011_2, 3.2_5, \text{2A}_{16}, (1011)_2, 1011 base 2.
#include <algorithm>
#include <utility>

#include "benchmarks/scoring/math/number_words.h"
#include "benchmarks/scoring/math/parser_impl.h"
#include "benchmarks/scoring/math/words.h"

namespace iha::scoring::math {
namespace {

using std::string_view;

bool AllUpper(string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

int DigitValue(char c) {
  if (IsAsciiDigit(c)) return c - '0';
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

}  // namespace

// Digits and capitals without a gap, then "_": a number in another base.
bool Parser::AtBaseNumber() const {
  size_t ahead = 0;
  bool digit = false;
  for (;; ++ahead) {
    const Token& token = At(ahead);
    if (ahead > 0 && token.gap != Gap::kNone) return false;
    if (token.kind == Tok::kNumber && token.text.find_first_not_of("0123456789.") == std::string::npos) {
      digit = true;
    } else if (token.kind != Tok::kWord || !AllUpper(token.text)) {
      break;
    }
    if (ahead > 40) return false;
  }
  if (ahead == 0 || !IsChar('_', ahead)) return false;
  // Letters alone are a name, unless they are two or more hexadecimal digits with a 16.
  const bool hexadecimal =
      !digit && ahead == 1 && At().text.size() > 1 && At().text.find_first_not_of("ABCDEF") == std::string::npos;
  if (!digit && !(hexadecimal && (At(2).text == "16" || At(3).text == "16"))) return false;
  size_t base = ahead + (IsChar('{', ahead + 1) ? 2 : 1);
  if (At(base).kind == Tok::kText && At(base).text == "base") ++base;
  if (At(base).kind == Tok::kText) return NumberWord(LowerAscii(At(base).text)).has_value();
  return IsInteger(base);
}

Ref Parser::ParseBaseNumber() {
  std::string digits;
  while (!IsChar('_')) {
    digits += At().text;
    Next();
  }
  Next();
  const bool braced = IsChar('{');
  if (braced) Next();
  if (At().kind == Tok::kText && At().text == "base") Next();
  const Token& token = At();
  const auto base = token.kind == Tok::kText ? NumberWord(LowerAscii(token.text))
                    : token.text.size() < 4  ? std::optional<int64_t>(std::stoll(token.text))
                                             : std::nullopt;
  Next();
  while (braced && At().kind == Tok::kText) Next();  // "_{5\text{ base}}"
  if (braced) {
    if (!IsChar('}')) return Fail("base");
    Next();
  }
  if (!base.has_value() || *base < 2 || *base > 36 || digits.size() > 1000) return Fail("base");
  return BaseValue(digits, *base);
}

// The number that `digits`, with a point perhaps, are in base 2 to 36.
Ref Parser::BaseValue(const std::string& digits, int64_t base) {
  Rational value(0);
  Rational scale(1);
  bool behind = false;
  for (const char c : digits) {
    if (c == '.') {
      if (std::exchange(behind, true)) return Fail("base");
      continue;
    }
    if (DigitValue(c) >= base) return Fail("a digit beyond the base");
    value = value * Rational(base) + Rational(DigitValue(c));
    if (behind) scale *= Rational(base);
  }
  return tree_.Number(value / scale);
}

// "1011 base 2", "1011 (base two)"; kNoRef, with nothing read, for anything else.
Ref Parser::ParseBaseWord() {
  if (!IsInteger()) return kNoRef;
  size_t ahead = IsChar('(', 1) ? 2 : 1;
  const bool bracket = ahead == 2;
  if (At(ahead).kind == Tok::kText && LowerAscii(At(ahead).text) == "in") ++ahead;
  const std::string word = LowerAscii(At(ahead).text);
  if (At(ahead).kind != Tok::kText && At(ahead).kind != Tok::kWord) return kNoRef;
  std::optional<int64_t> base;
  if (word == "base" || word == "in base") {
    ++ahead;
    if (IsInteger(ahead) && At(ahead).text.size() < 3) base = std::stoll(At(ahead).text);
    if (At(ahead).kind == Tok::kText) base = NumberWord(LowerAscii(At(ahead).text));
  } else if (word.starts_with("base ")) {
    base = NumberWord(word.substr(5));
  }
  if (!base.has_value() || *base < 2 || *base > 36 || (bracket && !IsChar(')', ahead + 1))) return kNoRef;
  const std::string digits = At().text;
  pos_ += ahead + (bracket ? 2 : 1);
  return BaseValue(digits, *base);
}

// "(1011)_2" is 1011_2: the brackets go.
void Parser::UnwrapBaseNumber() {
  size_t ahead = 1;
  while (At(ahead).kind == Tok::kNumber || (At(ahead).kind == Tok::kWord && AllUpper(At(ahead).text))) ++ahead;
  if (ahead == 1 || !IsChar(')', ahead) || !IsChar('_', ahead + 1)) return;
  tokens_.erase(tokens_.begin() + static_cast<ptrdiff_t>(pos_ + ahead));
  tokens_.erase(tokens_.begin() + static_cast<ptrdiff_t>(pos_));
  tokens_[pos_].gap = Gap::kNone;
}

}  // namespace iha::scoring::math
