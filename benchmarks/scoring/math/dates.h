// dates.h: dates and times of day as whole answers (docs/grading.md, rules `time` and `date`). Pure apart from the
// nodes they add.
#pragma once

#include <string_view>
#include <vector>

#include "benchmarks/scoring/math/node.h"

namespace iha::scoring::math {

// "June 20", "Friday, 20th of June, 2008", "June 2008", "1776-07-04": `words` are those of the answer's TextKey. kNoRef
// when it is none.
Ref ParseDate(Tree& tree, std::vector<std::string_view> words, std::string_view cleaned);

// "6:30pm", "12 noon", "8 o'clock", "half past three". kNoRef when it is none.
Ref ParseTime(Tree& tree, const std::vector<std::string_view>& words, std::string_view cleaned);

// The dates that "03/2020", "2020-03", "3/5/2020" or "5.3.2020" can be read as where the other side is a date.
std::vector<Ref> NumericDates(Tree& tree, std::string_view cleaned);

}  // namespace iha::scoring::math
