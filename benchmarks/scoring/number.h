// number.h: the full grammar of a written number, for the robust answer rules.
//
//   number   = [sign] [currency] [sign] magnitude ["%" | "\%"]
//   magnitude= digits grouped in threes by "," "{,}" "\," or U+2009/U+202F, or plain digits; ["." digits] [exponent]
//            | "." digits | integer "/" integer | integer " " integer "/" integer (mixed, proper fraction)
//            | "\frac{" integer "}{" integer "}" (also \dfrac, \tfrac)
//   sign     = "-" "+" U+2212 U+2013; only where it can't be a subtraction or a range ("10-7" is 10 and 7)
//   currency = "$" "\$" and the signs of euro, pound and yen; exponent = "e-3" | " x 10^3" | "\times 10^{3}"
// A percent sign is dropped (50% is 50, as GSM8K answers write it). Digits are ASCII. A trailing "." or "," is never
// part of the number. Pure, thread-safe, linear in the text's length.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "benchmarks/scoring/rational.h"

namespace iha::scoring {

struct NumberMatch {
  size_t begin = 0;  // byte range of the text
  size_t end = 0;
  Rational value;
};

// The number that starts at `pos`, sign and currency included.
std::optional<NumberMatch> NumberAt(std::string_view text, size_t pos);
// First number that starts at or behind `pos`.
std::optional<NumberMatch> NextNumber(std::string_view text, size_t pos);
std::optional<NumberMatch> LastNumber(std::string_view text);

}  // namespace iha::scoring
