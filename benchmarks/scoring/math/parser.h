// parser.h: a cleaned answer (clean.h) as an expression tree. The grammar is in docs/grading.md, "Grammar".
//
// Total: what can't be read whole is not read in part (`ok` is false and `error` says where), since a shortened answer
// would be another answer. Depth and nodes are bounded by the tree's budget. Pure apart from the nodes it adds.
#pragma once

#include <string>
#include <string_view>

#include "benchmarks/scoring/math/node.h"

namespace iha::scoring::math {

// What a comma between digits means (docs/grading.md, rule `commas`).
enum class Commas : uint8_t {
  kThousands,   // before groups of three digits a thousands mark, else a separator
  kSeparators,  // always a separator
  kDecimal,     // between two digits without a blank a decimal comma, unless it is a thousands mark
};

struct Parsed {
  Ref root = kNoRef;
  bool ok = false;
  std::string error;
  bool thousands_commas = false;  // the text has a comma that kThousands and kSeparators read differently
  bool decimal_commas = false;    // the text has a comma that kDecimal reads differently
};

Parsed ParseAnswer(Tree& tree, std::string_view cleaned, Commas commas);

// Whole answers that are no formulas: dates, times of day with am/pm, number words, "no solution", single words.
// kNoRef when the text is none of them.
Ref ParseSpecialForm(Tree& tree, std::string_view cleaned);

}  // namespace iha::scoring::math
