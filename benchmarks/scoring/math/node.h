// node.h: the expression tree of a mathematical answer.
//
// Nodes live in one Tree for both sides of a comparison and are named by Ref; they never change once made and stay
// where they are: a reference to a node, or a view of its text, holds as long as the tree. Builders fold numbers
// exactly as long as they stay below the budget's bits. When the node budget is spent, every builder returns kNoRef and
// full() holds; readers treat kNoRef as "can't be decided". Thread: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/scoring/math/math_robust.h"
#include "benchmarks/scoring/rational.h"

namespace iha::scoring::math {

using Ref = int32_t;
inline constexpr Ref kNoRef = 0;

enum class Kind : uint8_t {
  kNone = 0,
  kNumber,      // value; a decimal literal also has digits >= 0
  kSymbol,      // text
  kConstant,    // text: pi, e, i, inf, undefined
  kAdd,         // kids
  kMul,         // kids
  kPow,         // base, exponent
  kFunction,    // text: sin, ln, abs, fact, binom, ...; kids
  kApply,       // text: an unknown function's name; kids
  kBig,         // text: sum, prod, int, lim, ...; kids: variable, low, high, body (any may be a kText)
  kPlusMinus,   // text: "+" for +-, "-" for -+; kid
  kPercent,     // kid
  kDegree,      // kid
  kRatio,       // kids; text "h:m" when it can be a time of day
  kTime,        // text: minutes of the day
  kDate,        // text: year-month-day, parts that aren't given empty
  kMod,         // value, modulus
  kMatrix,      // kids in row order; rows; text: p, b, v, B, V or ""
  kBracket,     // text: opening and closing mark; kids
  kSet,         // kids
  kSetBuilder,  // element, condition
  kNamedSet,    // text: R, Q, Z, N, C
  kUnion,       // kids
  kIntersect,   // kids
  kMinus,       // kids: set without set
  kList,        // kids; text: "," "and" "or" ";"
  kRelation,    // kids; text: one operator mark between each two: = < > l(<=) g(>=) !(/=) ~(about) e(in) n(not in)
                // %(congruent) s(subset) o(any other)
  kText,        // text
  kDots,        // an ellipsis
};

struct Node {
  Kind kind = Kind::kNone;
  std::string text;
  std::vector<Ref> kids;
  Rational value;
  int32_t digits = -1;  // decimal literal: digits written behind the point
  int32_t unit = 0;     // decimal literal: the last digit counts 10^unit
  int32_t rows = 0;
};

class Tree {
 public:
  explicit Tree(const MathBudget& budget);

  const Node& operator[](Ref ref) const { return nodes_[static_cast<size_t>(ref)]; }
  Kind kind(Ref ref) const { return (*this)[ref].kind; }
  bool Is(Ref ref, Kind kind) const { return (*this)[ref].kind == kind; }
  bool IsNumber(Ref ref, int64_t value) const;
  bool IsConstant(Ref ref, std::string_view name) const;
  bool full() const { return full_; }
  const MathBudget& budget() const { return budget_; }

  Ref New(Kind kind, std::string text, std::vector<Ref> kids);
  Ref Matrix(std::string delimiter, int32_t rows, std::vector<Ref> kids);
  Ref Number(Rational value);
  Ref Literal(Rational value, int32_t digits, int32_t unit);
  Ref Add(const std::vector<Ref>& kids);
  Ref Mul(const std::vector<Ref>& kids);
  Ref Pow(Ref base, Ref exponent);
  Ref Neg(Ref a);
  Ref Div(Ref a, Ref b);
  Ref Sub(Ref a, Ref b) { return Add({a, Neg(b)}); }
  // The same node with other kids; rebuilt through the folding builders.
  Ref WithKids(Ref ref, std::vector<Ref> kids);
  // `symbol` (a kSymbol's text) replaced by `by` everywhere below.
  Ref Substitute(Ref ref, std::string_view symbol, Ref by);

  // One text per value of the tree up to the order of sums, products, sets and unions. `ref` may be kNoRef: "?".
  std::string Key(Ref ref) const;

 private:
  bool BitsFit(const Rational& value) const;
  Ref PowNumbers(const Rational& base, const Rational& exponent);

  MathBudget budget_;
  std::deque<Node> nodes_;  // not a vector: callers keep references while builders add nodes
  bool full_ = false;
};

// Whether a node of that kind stands at or below `ref`.
bool Contains(const Tree& tree, Ref ref, Kind kind);
// Whether the value depends on more than numbers, constants and the running variables of its sums and integrals.
bool HasSymbols(const Tree& tree, Ref ref);

}  // namespace iha::scoring::math
