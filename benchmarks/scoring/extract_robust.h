// extract_robust.h: the answer rule of `gsm8k.robust`: numeric, on exact rationals, with the rule that decided named.
//
// Tried in order; the first that yields a number decides:
//   1. the last line that holds "#### " and a number (models that recite exemplars put theirs first)
//   2. the last balanced \boxed{...} or \fbox{...} that holds a number
//   3. the last "answer is x", "answer: x", "answer = x", "answer to the question is x" (any case; also was,
//      would be, will be, should be)
//   4. the last number of the text
// In 1 to 3 the number is the first of the rest of that line (of the braces), or what stands behind the last "=" when
// the line is a calculation ("#### 5 + 3 = 8"). Numbers: number.h. Pure, thread-safe; linear in the text's length.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "benchmarks/scoring/rational.h"

namespace iha::scoring {

struct RobustAnswer {
  Rational value;
  std::string rule;     // "last '####'", "last \boxed", "last 'answer is'", "last number"
  std::string written;  // the number as it stands in the text
};

std::optional<RobustAnswer> RobustNumber(std::string_view text);

// The content of the last balanced `\boxed{...}` or `\fbox{...}` that starts before `limit`, and where it starts.
struct Boxed {
  size_t begin = 0;
  std::string_view content;
};
// `escapes`: a brace behind a backslash neither opens nor closes ("\boxed{\left\{ ... \right.}").
std::optional<Boxed> LastBoxed(std::string_view text, size_t limit, bool escapes = false);

}  // namespace iha::scoring
