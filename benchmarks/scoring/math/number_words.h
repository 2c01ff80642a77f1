// number_words.h: numbers written in English words (docs/grading.md, rule `words`). Pure lookups over lower case text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "benchmarks/scoring/rational.h"

namespace iha::scoring::math {

// "twenty-one", "three hundred and five", "twelve hundred", "two million", "thousand": below 10^15.
std::optional<int64_t> NumberWord(std::string_view text);
// "fifth", "twenty-first", "one hundred and third" -> 5, 21, 103.
std::optional<int64_t> OrdinalWord(std::string_view text);
// "half", "thirds", "twenty-fifths" -> 2, 3, 25.
std::optional<int64_t> DenominatorWord(std::string_view text);
// What a text counts, without its articles: numbers, fractions ("two thirds", "three and half"), groups ("three dozen",
// "half dozen", "two and half million"), "twice", "fivefold", a sign in words.
std::optional<Rational> CountInWords(std::string_view key);
// The last count that a text without digits states in words ("She needs three dozen eggs."), articles included; "" for
// none. A lone "one", and ordinals, count nothing.
std::string_view LastCountInWords(std::string_view text);

}  // namespace iha::scoring::math
