// Relations of one variable as parts of the real line (docs/grading.md, rule `region`).
#include <algorithm>

#include "benchmarks/scoring/math/compare.h"
#include "benchmarks/scoring/math/exact.h"
#include "benchmarks/scoring/math/sign_table.h"

namespace iha::scoring::math {
namespace {

constexpr size_t kMaxPoints = 40;

End Infinite(int sign) { return {.infinite = sign, .value = kNoRef, .closed = false}; }

// The mark of a relation whose sides change places.
char Turned(char mark) { return mark == '<' ? '>' : mark == '>' ? '<' : mark == 'l' ? 'g' : mark == 'g' ? 'l' : mark; }

// Whether a difference of that sign satisfies "difference MARK 0".
bool Holds(int sign, char mark) {
  switch (mark) {
    case '<':
      return sign < 0;
    case '>':
      return sign > 0;
    case 'l':
      return sign <= 0;
    case 'g':
      return sign >= 0;
    default:
      return sign != 0;
  }
}

}  // namespace

std::optional<Region> Comparer::Solve(Ref left, char mark, Ref right) {
  if (mark != '=') {
    if (auto region = SolveAbsolute(left, mark, right)) return region;
    if (auto region = SolveAbsolute(right, Turned(mark), left)) return region;
  }
  const bool in_left = HasSymbols(tree_, left);
  if (in_left != HasSymbols(tree_, right)) {
    if (!in_left) return Solve(right, Turned(mark), left);
    if (tree_.Is(left, Kind::kSymbol) || tree_.Is(left, Kind::kApply)) return RayOf(tree_.Key(left), mark, right);
  }
  if (mark != '=') {
    if (auto region = SolveRational(left, mark, right)) return region;
  }
  if (!in_left || HasSymbols(tree_, right)) return std::nullopt;
  // u^2 < c is |u| < \sqrt{c}.
  if (mark != '=' && mark != '!' && tree_.Is(left, Kind::kPow) && tree_.IsNumber(tree_[left].kids[1], 2)) {
    if (OrderOf(tree_, right, tree_.Number(Rational(0)), work_).value_or(-1) < 0) return std::nullopt;
    const Ref root = tree_.Pow(right, tree_.Number(Rational(1, 2)));
    return SolveAbsolute(tree_.New(Kind::kFunction, "abs", {tree_[left].kids[0]}), mark, root);
  }
  return SolveLinear(left, mark, right);
}

// |u| < v is -v < u < v; |u| > v is what lies outside; 2|u| < v as |u| < v/2. nullopt where `left` is no absolute
// value.
std::optional<Region> Comparer::SolveAbsolute(Ref left, char mark, Ref right) {
  if (tree_.Is(left, Kind::kMul) && tree_[left].kids.size() == 2 && tree_.Is(tree_[left].kids[0], Kind::kNumber)) {
    const std::vector<Ref> kids = tree_[left].kids;
    const bool turns = tree_[kids[0]].value.Sign() < 0;
    return SolveAbsolute(kids[1], turns ? Turned(mark) : mark, tree_.Div(right, kids[0]));
  }
  if (!tree_.Is(left, Kind::kFunction) || tree_[left].text != "abs" || mark == '!') return std::nullopt;
  const Ref inner = tree_[left].kids[0];
  const auto above = Solve(inner, mark, right);
  const auto below = above.has_value() ? Solve(inner, Turned(mark), tree_.Neg(right)) : std::nullopt;
  return below.has_value() ? Join(*above, *below, mark == '<' || mark == 'l') : std::nullopt;
}

// P(x)/Q(x) against another: between the zeros of both polynomials the difference keeps its sign.
std::optional<Region> Comparer::SolveRational(Ref left, char mark, Ref right) {
  const auto table = SignsOf(tree_, tree_.Sub(left, right));
  if (!table.has_value() || table->points.size() > kMaxPoints) return std::nullopt;
  std::vector<SignPoint> points;
  for (const SignPoint& point : table->points) {
    size_t at = points.size();
    while (at > 0) {
      const auto order = OrderOf(tree_, points[at - 1].at, point.at, work_);
      if (!order.has_value() || *order == 0) return std::nullopt;
      if (*order < 0) break;
      --at;
    }
    points.insert(points.begin() + static_cast<ptrdiff_t>(at), point);
  }
  Region region;
  region.variable = table->symbol;
  region.explicit_set = true;
  int sign = table->sign;
  End high = Infinite(1);
  for (size_t i = points.size() + 1; i-- > 0;) {
    const End low = i > 0 ? End{.infinite = 0, .value = points[i - 1].at, .closed = false} : Infinite(-1);
    if (Holds(sign, mark)) region.pieces.push_back({low, high});
    if (i == 0) break;
    const End point{.infinite = 0, .value = low.value, .closed = true};
    if (points[i - 1].defined && Holds(0, mark)) region.pieces.push_back({point, point});
    if (points[i - 1].flips) sign = -sign;
    high = low;
  }
  return Canonical(std::move(region));
}

// a x + b against c: the values at 0 and 1 give a and b; that it is linear is proved exactly.
std::optional<Region> Comparer::SolveLinear(Ref left, char mark, Ref right) {
  Ref symbol = left;
  while (!tree_.Is(symbol, Kind::kSymbol)) {
    const std::vector<Ref>& kids = tree_[symbol].kids;
    const auto with = std::find_if(kids.begin(), kids.end(), [&](Ref kid) { return HasSymbols(tree_, kid); });
    if (with == kids.end() || tree_.Is(symbol, Kind::kApply)) return std::nullopt;
    symbol = *with;
  }
  const std::string name = tree_[symbol].text;
  const Ref at0 = tree_.Substitute(left, name, tree_.Number(Rational(0)));
  const Ref at1 = tree_.Substitute(left, name, tree_.Number(Rational(1)));
  const Ref slope = tree_.Sub(at1, at0);
  if (slope == kNoRef || !tree_.Is(slope, Kind::kNumber) || tree_[slope].value.Sign() == 0) return std::nullopt;
  if (HasSymbols(tree_, at0)) return std::nullopt;
  if (CompareExactly(tree_, left, tree_.Add({tree_.Mul({slope, symbol}), at0})) != Exact::kEqual) return std::nullopt;
  const Ref bound = tree_.Div(tree_.Sub(right, at0), slope);
  if (bound == kNoRef) return std::nullopt;
  return RayOf(name, tree_[slope].value.Sign() < 0 ? Turned(mark) : mark, bound);
}

// `variable` MARK bound.
std::optional<Region> Comparer::RayOf(const std::string& variable, char mark, Ref bound) {
  Region region;
  region.explicit_set = mark != '=';
  region.variable = variable;
  End end{.infinite = InfinitySign(bound), .value = bound, .closed = mark == 'l' || mark == 'g'};
  if (end.infinite != 0) end.closed = false;
  if (!IsScalar(bound)) return std::nullopt;
  if (mark == '<' || mark == 'l') region.pieces.push_back({Infinite(-1), end});
  if (mark == '>' || mark == 'g') region.pieces.push_back({end, Infinite(1)});
  if (mark == '=' || mark == '!') {
    if (end.infinite != 0) return std::nullopt;
    end.closed = true;
    Region point;
    point.pieces.push_back({end, end});
    if (mark == '=') {
      region.pieces = std::move(point.pieces);
      return region;
    }
    region.pieces.push_back({Infinite(-1), Infinite(1)});
    return Without(region, point);
  }
  if (region.pieces.empty()) return std::nullopt;
  return Canonical(std::move(region));
}

}  // namespace iha::scoring::math
