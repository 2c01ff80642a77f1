// math_robust.h: `math.robust`: are two written mathematical answers the same? Conventions and cases: docs/grading.md.
//
// Pure and total: any bytes give a verdict. Symmetric: JudgeMath(a, b) and JudgeMath(b, a) have the same outcome and
// rule. Work is bounded by counters, never by a clock, so a verdict is the same on every machine. Thread: any (FLINT
// keeps its caches per thread). Blocking: no I/O; at most a few milliseconds for hostile input under default budgets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace iha::scoring {

// Bump when any verdict may change: old rows keep the version that graded them.
inline constexpr std::string_view kMathRobustVersion = "math.robust/8";

struct MathBudget {
  int64_t answer_bytes = 8192;     // a longer extracted answer is only compared as text
  int64_t nodes = 40000;           // nodes made for one pair: parsing and every rewriting
  int64_t depth = 120;             // nesting of braces, powers, signs
  int64_t bignum_bits = 40000;     // largest exact integer; beyond it a value is a ball
  int64_t poly_terms = 4000;       // largest exact polynomial
  int64_t ball_work = 40'000'000;  // sum over evaluated nodes of precision in bits
  int64_t points = 24;             // random points of one comparison
  int64_t precision = 1024;        // bits
  int64_t comparisons = 20000;     // element against element, in lists, sets and matrices
};

enum class MathOutcome { kDifferent = 0, kEqual, kUndecided };
const char* NameOf(MathOutcome outcome);  // "different", "equal", "undecided"

struct MathVerdict {
  MathOutcome outcome = MathOutcome::kUndecided;
  std::string rule;  // the named rule that decided (docs/grading.md), or why nothing did
  bool equal() const { return outcome == MathOutcome::kEqual; }
};

struct MathAnswer {
  std::string text;  // what is compared; "" when nothing was found
  // "answer tag", "boxed", "unclosed box", "final answer", "whole text", "answer is", "last sentence",
  // "last expression", "none"
  std::string step;
  bool found() const { return !text.empty(); }
};

// The answer that a text states. A bare answer is itself. Linear in the text's length.
MathAnswer ExtractMathAnswer(std::string_view text);

// What JudgeMath compares with `gold`: the letter that the text chooses where `gold` is one (step "choice"), else
// ExtractMathAnswer's; of a last expression that is an equation the last member, where `gold` is one value.
MathAnswer GradedAnswer(std::string_view gold, std::string_view output);

// Both sides pass through ExtractMathAnswer.
MathVerdict JudgeMath(std::string_view gold, std::string_view answer, const MathBudget& budget = {});

}  // namespace iha::scoring
