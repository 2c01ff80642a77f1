#include "benchmarks/scoring/number.h"

#include <array>
#include <string>

namespace iha::scoring {
namespace {

using std::string_view;

// Longer ones are no numbers (Rational::ParseDecimal refuses them); reading on would cost without end.
constexpr size_t kMaxGroupedDigits = 1000;
constexpr std::array<string_view, 4> kSigns = {"-", "+", "\u2212", "\u2013"};
constexpr std::array<string_view, 5> kCurrencies = {"\\$", "$", "\u20ac", "\u00a3", "\u00a5"};
constexpr std::array<string_view, 5> kSeparators = {",", "{,}", "\\,", "\u2009", "\u202f"};
constexpr std::array<string_view, 4> kTimes = {"x", "*", "\u00d7", "\\times"};
constexpr std::array<string_view, 3> kFractions = {"\\frac", "\\dfrac", "\\tfrac"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsWord(char c) { return IsDigit(c) || IsLetter(c); }
bool DigitAt(string_view text, size_t pos) { return pos < text.size() && IsDigit(text[pos]); }

// Length of the first of `words` that stands at `pos`; 0 when none does.
template <size_t N>
size_t LengthOfAny(string_view text, size_t pos, const std::array<string_view, N>& words) {
  for (const string_view word : words) {
    if (text.substr(pos).starts_with(word)) return word.size();
  }
  return 0;
}

size_t DigitsEnd(string_view text, size_t pos) {
  while (DigitAt(text, pos)) ++pos;
  return pos;
}

size_t SkipSpaces(string_view text, size_t pos) {
  while (pos < text.size() && text[pos] == ' ') ++pos;
  return pos;
}

// Digits at `pos`, thousands separators removed; moves `pos` behind them.
std::string GroupedDigits(string_view text, size_t& pos) {
  size_t end = DigitsEnd(text, pos);
  std::string digits(text.substr(pos, end - pos));
  if (digits.empty() || digits.size() > 3) {
    pos = end;
    return digits;
  }
  while (const size_t separator = LengthOfAny(text, end, kSeparators)) {
    const size_t group = end + separator;
    if (DigitsEnd(text, group) != group + 3 || digits.size() > kMaxGroupedDigits) break;
    digits += text.substr(group, 3);
    end = group + 3;
  }
  pos = end;
  return digits;
}

// " x 10^3" and its spellings, or "e-3", at `pos`: appended to `decimal` as "e3"; moves `pos`.
void Exponent(string_view text, size_t& pos, std::string& decimal) {
  size_t at = pos;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t end = DigitsEnd(text, at);
    if (end == at || (end < text.size() && IsLetter(text[end]))) return;
    decimal += text.substr(pos, end - pos);
    pos = end;
    return;
  }
  at = SkipSpaces(text, at);
  const size_t times = LengthOfAny(text, at, kTimes);
  if (times == 0) return;
  at = SkipSpaces(text, at + times);
  if (!text.substr(at).starts_with("10^")) return;
  at += 3;
  const bool braced = at < text.size() && text[at] == '{';
  if (braced) ++at;
  const size_t sign = LengthOfAny(text, at, kSigns);
  const bool negative = sign != 0 && text[at] != '+';
  at += sign;
  const size_t end = DigitsEnd(text, at);
  if (end == at || (braced && (end == text.size() || text[end] != '}'))) return;
  decimal += (negative ? "e-" : "e") + std::string(text.substr(at, end - at));
  pos = end + (braced ? 1 : 0);
}

// "/d" at `pos` with a non-zero denominator that no further "/", digit group or decimals follow (a date, a decimal).
std::optional<Rational> SlashDenominator(string_view text, size_t& pos) {
  if (pos >= text.size() || text[pos] != '/' || !DigitAt(text, pos + 1)) return std::nullopt;
  const size_t end = DigitsEnd(text, pos + 1);
  if (end < text.size() && (text[end] == '/' || (text[end] == '.' && DigitAt(text, end + 1)))) return std::nullopt;
  auto den = Rational::ParseDecimal(text.substr(pos + 1, end - pos - 1));
  if (!den.has_value() || den->Sign() == 0) return std::nullopt;
  pos = end;
  return den;
}

// `whole` was read from `begin` up to `pos`: a slash fraction, a mixed number or the integer itself.
Rational WithFraction(string_view text, Rational whole, size_t begin, size_t& pos) {
  if (begin > 0 && text[begin - 1] == '/') return whole;  // "2/3/2020": a date
  if (const auto den = SlashDenominator(text, pos)) return whole / *den;
  if (pos < text.size() && text[pos] == ' ' && DigitAt(text, pos + 1)) {
    size_t at = DigitsEnd(text, pos + 1);
    const auto num = Rational::ParseDecimal(text.substr(pos + 1, at - pos - 1));
    const auto den = SlashDenominator(text, at);
    if (num.has_value() && den.has_value() && *num < *den) {
      pos = at;
      return whole + *num / *den;
    }
  }
  return whole;
}

// "{digits}" at `pos`.
std::optional<Rational> Braced(string_view text, size_t& pos) {
  if (pos >= text.size() || text[pos] != '{') return std::nullopt;
  size_t at = pos + 1;
  const auto value = Rational::ParseDecimal(GroupedDigits(text, at));
  if (!value.has_value() || at >= text.size() || text[at] != '}') return std::nullopt;
  pos = at + 1;
  return value;
}

std::optional<Rational> Magnitude(string_view text, size_t& pos) {
  if (const size_t command = LengthOfAny(text, pos, kFractions)) {
    size_t at = pos + command;
    const auto num = Braced(text, at);
    if (!num.has_value()) return std::nullopt;
    const auto den = Braced(text, at);
    if (!den.has_value() || den->Sign() == 0) return std::nullopt;
    pos = at;
    return *num / *den;
  }
  size_t at = pos;
  std::string decimal = GroupedDigits(text, at);
  bool integer = true;
  if (at < text.size() && text[at] == '.' && DigitAt(text, at + 1)) {
    const size_t end = DigitsEnd(text, at + 1);
    decimal += text.substr(at, end - at);
    at = end;
    integer = false;
  }
  if (decimal.empty()) return std::nullopt;
  const size_t before_exponent = at;
  Exponent(text, at, decimal);
  integer = integer && at == before_exponent;
  auto value = Rational::ParseDecimal(decimal);
  if (!value.has_value()) return std::nullopt;
  const size_t begin = pos;
  pos = at;
  return integer ? WithFraction(text, *std::move(value), begin, pos) : value;
}

// True when a sign at `pos` joins two operands ("10-7", "(3)-2", "x-1", "5 - 3") instead of starting a number.
bool SignIsOperator(string_view text, size_t pos) {
  if (pos == 0) return false;
  size_t before = pos;
  while (before > 0 && text[before - 1] == ' ') --before;
  if (before == 0) return false;
  const char c = text[before - 1];
  const bool operand = IsDigit(c) || c == ')' || c == '%' || c == ']' || c == '}';
  return operand || (before == pos && IsLetter(c));
}

}  // namespace

std::optional<NumberMatch> NumberAt(string_view text, size_t pos) {
  size_t at = pos;
  bool negative = false;
  bool signed_already = false;
  const auto read_sign = [&] {
    const size_t length = LengthOfAny(text, at, kSigns);
    if (length == 0 || signed_already) return;
    negative = text[at] != '+';
    signed_already = true;
    at += length;
  };
  read_sign();
  if (signed_already && SignIsOperator(text, pos)) return std::nullopt;
  if (const size_t currency = LengthOfAny(text, at, kCurrencies)) {
    const size_t behind = SkipSpaces(text, at + currency);
    at = behind;
    read_sign();
  }
  // ".5" starts a number only where no digit stands before the point; otherwise "1.2.3" would end in 0.3.
  if (at < text.size() && text[at] == '.' && at > 0 && IsDigit(text[at - 1])) return std::nullopt;
  auto value = Magnitude(text, at);
  if (!value.has_value()) return std::nullopt;
  at += text.substr(at).starts_with("%") ? 1 : text.substr(at).starts_with("\\%") ? 2 : 0;
  return NumberMatch{pos, at, negative ? Rational(0) - *value : *std::move(value)};
}

std::optional<NumberMatch> NextNumber(string_view text, size_t pos) {
  for (; pos < text.size(); ++pos) {
    if (auto match = NumberAt(text, pos)) return match;
    // What looks like a number but is none (too long) is skipped whole: its tail is not the number that was written.
    if (!IsDigit(text[pos])) continue;
    while (pos + 1 < text.size() && IsWord(text[pos + 1])) ++pos;
  }
  return std::nullopt;
}

std::optional<NumberMatch> LastNumber(string_view text) {
  std::optional<NumberMatch> last;
  for (size_t pos = 0; auto match = NextNumber(text, pos); pos = last->end) last = std::move(match);
  return last;
}

}  // namespace iha::scoring
