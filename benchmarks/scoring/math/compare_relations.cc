// Equations, inequalities and named values (docs/grading.md, rules `name`, `equation`, `inequality`).
#include <algorithm>

#include "benchmarks/scoring/math/compare.h"
#include "benchmarks/scoring/math/exact.h"

namespace iha::scoring::math {
namespace {

bool IsCapitals(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool IsTrigName(const std::string& name) {
  return name == "sin" || name == "cos" || name == "tan" || name == "cot" || name == "sec" || name == "csc";
}

}  // namespace

// A name, f(n), |AB|, \angle ABC, \cos A, AB:CD, or a tuple of names.
bool Comparer::IsName(Ref ref) const {
  const Node& node = tree_[ref];
  const auto names = [&] {
    return !node.kids.empty() && std::all_of(node.kids.begin(), node.kids.end(), [&](Ref kid) { return IsName(kid); });
  };
  switch (node.kind) {
    case Kind::kSymbol:
    case Kind::kApply:
    case Kind::kText:
      return true;
    case Kind::kNamedSet:
      return node.text.size() == 1 && std::string_view("RQZNC").find(node.text[0]) == std::string_view::npos;
    case Kind::kConstant:
      return node.text == "e" || node.text == "i";
    case Kind::kFunction:
      return (names() && node.text != "fact" && node.text != "binom") ||
             (IsTrigName(node.text) && HasSymbols(tree_, ref));
    case Kind::kPow:
      // \cos^2 A
      return tree_.Is(node.kids[0], Kind::kFunction) && tree_.Is(node.kids[1], Kind::kNumber) && IsName(node.kids[0]);
    case Kind::kBracket:
    case Kind::kRatio:
    case Kind::kUnion:
    case Kind::kIntersect:
    case Kind::kMinus:
      return names();
    case Kind::kMul:
      // m\angle ABC, f^{-1}(x), (f \circ g)(x)
      if (node.kids.size() == 2 && tree_[node.kids[0]].text == "compose" && IsName(node.kids[1])) return true;
      return std::all_of(node.kids.begin(), node.kids.end(),
                         [&](Ref kid) {
                           const bool inverse = tree_.Is(kid, Kind::kPow) &&
                                                tree_.Is(tree_[kid].kids[0], Kind::kSymbol) &&
                                                tree_.IsNumber(tree_[kid].kids[1], -1);
                           return IsName(kid) || inverse;
                         }) &&
             std::any_of(node.kids.begin(), node.kids.end(), [&](Ref kid) {
               const Node& inner = tree_[kid];
               return inner.text.starts_with("angle ") || IsCapitals(inner.text) ||
                      (inner.kind == Kind::kPow &&
                       std::string_view("fgh").find(tree_[inner.kids[0]].text) != std::string_view::npos);
             });
    default:
      return false;
  }
}

// m + n, AB + CD, a - b, \frac{a}{b}, \sin A + \cos^2 B: names, each as it is, joined by signs and fraction bars.
bool Comparer::IsNameSum(Ref ref) const {
  const Node& node = tree_[ref];
  if (node.kind == Kind::kSymbol || node.kind == Kind::kApply) return true;
  if (node.kind == Kind::kFunction) return IsTrigName(node.text) && HasSymbols(tree_, ref);
  if (node.kind == Kind::kPow) {
    const bool of_trig = tree_.Is(node.kids[0], Kind::kFunction) && tree_.Is(node.kids[1], Kind::kNumber);
    return (of_trig || tree_.IsNumber(node.kids[1], -1)) && IsNameSum(node.kids[0]);
  }
  if (node.kind != Kind::kAdd && node.kind != Kind::kMul) return false;
  return std::all_of(node.kids.begin(), node.kids.end(),
                     [&](Ref kid) { return IsNameSum(kid) || (node.kind == Kind::kMul && tree_.IsNumber(kid, -1)); });
}

Ref Comparer::ValueOf(Ref ref) const {
  if (!tree_.Is(ref, Kind::kRelation)) return kNoRef;
  const Node& node = tree_[ref];
  if (node.text.size() != 1) return kNoRef;
  if (node.text != "=" && node.text != "e" && node.text != "%") return kNoRef;
  if (IsName(node.kids[0])) return node.kids[1];
  if (node.text == "=" && tree_.Is(node.kids[0], Kind::kBig)) return node.kids[1];
  const bool plain = !HasSymbols(tree_, node.kids[1]) && IsScalar(node.kids[1]);
  if (node.text == "=" && plain && IsNameSum(node.kids[0])) return node.kids[1];
  const bool swapped = node.text == "=" && IsName(node.kids[1]) && !HasSymbols(tree_, node.kids[0]);
  return swapped ? node.kids[0] : kNoRef;
}

// Of an equation that holds for all values, x^2 - 1 = (x - 1)(x + 1), the right side.
Ref Comparer::ValueOfIdentity(Ref ref) const {
  const Node& node = tree_[ref];
  if (node.text != "=" || !IsScalar(node.kids[0]) || !IsScalar(node.kids[1])) return kNoRef;
  return CompareExactly(tree_, node.kids[0], node.kids[1]) == Exact::kEqual ? node.kids[1] : kNoRef;
}

// Each pair of neighbours as a relation of its own, pointing from small to large.
std::vector<Ref> Comparer::Links(Ref relation) {
  const Node node = tree_[relation];
  std::vector<Ref> links;
  for (size_t i = 0; i < node.text.size(); ++i) {
    const char mark = node.text[i];
    const bool turn = mark == '>' || mark == 'g';
    const std::string shown(1, mark == '>' ? '<' : mark == 'g' ? 'l' : mark);
    const Ref first = node.kids[turn ? i + 1 : i];
    const Ref second = node.kids[turn ? i : i + 1];
    links.push_back(tree_.New(Kind::kRelation, shown, {first, second}));
  }
  return links;
}

// name = value against name = value: the same name, or functions of one variable each by its own letter.
Result Comparer::CompareNamed(Ref a, Ref b) {
  const Node left = tree_[a];
  const Node right = tree_[b];
  const Node f = tree_[left.kids[0]];
  const Node g = tree_[right.kids[0]];
  if (tree_.Key(left.kids[0]) == tree_.Key(right.kids[0])) return Compare(left.kids[1], right.kids[1]);
  const bool calls = f.kind == Kind::kApply && g.kind == Kind::kApply && f.text == g.text && f.kids.size() == 1 &&
                     g.kids.size() == 1 && tree_.Is(f.kids[0], Kind::kSymbol) && tree_.Is(g.kids[0], Kind::kSymbol);
  // y = x^2 says f(x) = x^2.
  const auto is_y = [&](const Node& node) { return node.kind == Kind::kSymbol && node.text == "y"; };
  const auto calls_x = [&](const Node& node) {
    return node.kind == Kind::kApply && node.kids.size() == 1 && tree_.Key(node.kids[0]) != "y" &&
           tree_.Is(node.kids[0], Kind::kSymbol);
  };
  if ((is_y(f) && calls_x(g)) || (is_y(g) && calls_x(f))) return Compare(left.kids[1], right.kids[1]);
  if (!calls) return Undecided("names");
  const Ref variable = tree_.New(Kind::kSymbol, "#", {});
  const Ref x = tree_.Substitute(left.kids[1], tree_[f.kids[0]].text, variable);
  const Ref y = tree_.Substitute(right.kids[1], tree_[g.kids[0]].text, variable);
  return x == kNoRef || y == kNoRef ? Undecided("budget") : Compare(x, y);
}

// The same up to a constant factor of (left side - right side).
Result Comparer::CompareEquations(Ref a, Ref b) {
  const Node left = tree_[a];
  const Node right = tree_[b];
  const bool scalars =
      IsScalar(left.kids[0]) && IsScalar(left.kids[1]) && IsScalar(right.kids[0]) && IsScalar(right.kids[1]);
  if (IsName(left.kids[0]) && IsName(right.kids[0])) {
    Result named = CompareNamed(a, b);
    if (named.outcome == MathOutcome::kEqual) return Equal("name = value: " + named.rule);
    const bool same = tree_.Key(left.kids[0]) == tree_.Key(right.kids[0]);
    const bool numbers = !HasSymbols(tree_, left.kids[1]) && !HasSymbols(tree_, right.kids[1]);
    if (same && (numbers || !scalars)) return named;
    if (!same && numbers) return Different("values of different names");
  }
  if (!scalars) {
    const Result straight = CompareInOrder(left.kids, right.kids, "equation");
    if (straight.outcome == MathOutcome::kEqual) return straight;
    const Result crossed = CompareInOrder(left.kids, {right.kids[1], right.kids[0]}, "equation");
    return crossed.outcome == MathOutcome::kEqual ? crossed : straight;
  }
  const Ref x = tree_.Sub(left.kids[0], left.kids[1]);
  const Ref y = tree_.Sub(right.kids[0], right.kids[1]);
  if (x == kNoRef || y == kNoRef) return Undecided("budget");
  switch (ProportionOf(tree_, x, y)) {
    case Proportion::kPositive:
    case Proportion::kNegative:
      return Equal("equation");
    case Proportion::kNone:
      return Different("equation");
    case Proportion::kUnknown:
      break;
  }
  const Result straight = CompareValues(x, y);
  if (straight.outcome == MathOutcome::kEqual) return Equal("equation");
  const Result crossed = CompareValues(x, tree_.Neg(y));
  if (crossed.outcome == MathOutcome::kEqual) return Equal("equation");
  // A constant factor: x / y against its own value with one symbol fixed can't be proved; both sides may still match.
  const Result sides = CompareInOrder(left.kids, right.kids, "equation");
  if (sides.outcome == MathOutcome::kEqual) return sides;
  const Ref ratio = tree_.Div(x, y);
  const Ref symbol = [&] {
    Ref at = x;
    while (at != kNoRef && !tree_.Is(at, Kind::kSymbol)) {
      const std::vector<Ref>& kids = tree_[at].kids;
      const auto with = std::find_if(kids.begin(), kids.end(), [&](Ref kid) { return HasSymbols(tree_, kid); });
      at = with == kids.end() ? kNoRef : *with;
    }
    return at;
  }();
  if (symbol == kNoRef || ratio == kNoRef) return Different("equation");
  const Ref moved = tree_.Substitute(ratio, tree_[symbol].text, tree_.Add({symbol, tree_.Number(Rational(3, 7))}));
  const Result constant = moved == kNoRef ? Undecided("budget") : CompareValues(ratio, moved);
  if (constant.outcome == MathOutcome::kDifferent) return Different("equation");
  return Undecided("equation");
}

Result Comparer::CompareLinks(Ref a, Ref b) {
  const Node left = tree_[a];
  const Node right = tree_[b];
  if (left.text != right.text) return Different("relation");
  if (left.text == "=") return CompareEquations(a, b);
  if (left.text == "!") {
    const Ref x = tree_.New(Kind::kRelation, "=", left.kids);
    const Ref y = tree_.New(Kind::kRelation, "=", right.kids);
    return x == kNoRef || y == kNoRef ? Undecided("budget") : CompareEquations(x, y);
  }
  const bool scalars =
      IsScalar(left.kids[0]) && IsScalar(left.kids[1]) && IsScalar(right.kids[0]) && IsScalar(right.kids[1]);
  const Result sides = CompareInOrder(left.kids, right.kids, "relation");
  const bool symmetric = std::string_view("pqcS").find(left.text[0]) != std::string_view::npos;
  if (symmetric && sides.outcome != MathOutcome::kEqual) {
    return CompareInOrder(left.kids, {right.kids[1], right.kids[0]}, "relation");
  }
  if (sides.outcome == MathOutcome::kEqual || !scalars || (left.text != "<" && left.text != "l")) return sides;
  const Ref x = tree_.Sub(left.kids[0], left.kids[1]);
  const Ref y = tree_.Sub(right.kids[0], right.kids[1]);
  const Proportion proportion = ProportionOf(tree_, x, y);
  if (proportion == Proportion::kPositive) return Equal("inequality");
  if (proportion == Proportion::kUnknown) {
    const Result same = CompareValues(x, y);
    return same.outcome == MathOutcome::kEqual ? Equal("inequality") : Different("inequality");
  }
  return Different("inequality");
}

Result Comparer::CompareRelations(Ref a, Ref b) {
  const std::vector<Ref> left = Links(a);
  const std::vector<Ref> right = Links(b);
  if (left.size() != right.size()) return Different("relation");
  if (left.size() == 1) {
    if (left[0] == kNoRef || right[0] == kNoRef) return Undecided("budget");
    return CompareLinks(left[0], right[0]);
  }
  return CompareUnordered(left, right, "chain of relations");
}

}  // namespace iha::scoring::math
