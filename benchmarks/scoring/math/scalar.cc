// Single values: percent and degree readings, exact comparison, the decimal rule, balls.
#include "benchmarks/scoring/math/compare.h"
#include "benchmarks/scoring/math/exact.h"
#include "benchmarks/scoring/math/radicals.h"

namespace iha::scoring::math {
namespace {

constexpr int32_t kDecimalRuleDigits = 4;

bool IsTerminatingDecimal(const Rational& value) {
  Rational rest = value;
  fmpz* den = fmpq_denref(rest.mutable_raw());
  fmpz_t factor;
  fmpz_init(factor);
  for (const ulong prime : {2ul, 5ul}) {
    fmpz_set_ui(factor, prime);
    fmpz_remove(den, den, factor);
  }
  fmpz_clear(factor);
  return fmpz_is_one(den) != 0;
}

Rational PowerOfTen(int32_t exponent) {
  Rational out(10);
  fmpq_pow_si(out.mutable_raw(), out.raw(), exponent);
  return out;
}

}  // namespace

bool Comparer::IsScalar(Ref ref) const {
  switch (tree_.kind(ref)) {
    case Kind::kNumber:
    case Kind::kSymbol:
    case Kind::kConstant:
    case Kind::kAdd:
    case Kind::kMul:
    case Kind::kPow:
    case Kind::kFunction:
    case Kind::kApply:
    case Kind::kBig:
    case Kind::kPercent:
    case Kind::kDegree:
      return true;
    default:
      return false;
  }
}

int Comparer::InfinitySign(Ref ref) const {
  if (tree_.IsConstant(ref, "inf")) return 1;
  if (!tree_.Is(ref, Kind::kMul) || tree_[ref].kids.size() != 2) return 0;
  const std::vector<Ref>& kids = tree_[ref].kids;
  if (tree_.IsConstant(kids[1], "inf") && tree_.Is(kids[0], Kind::kNumber)) return tree_[kids[0]].value.Sign();
  return 0;
}

// A decimal literal of at least four digits equals a value that is no terminating decimal within one unit of its last
// digit (docs/grading.md, rule `decimal`).
bool Comparer::DecimalEqual(Ref literal, Ref value) {
  const Node& node = tree_[literal];
  if (node.kind != Kind::kNumber || node.digits < kDecimalRuleDigits) return false;
  if (tree_.Is(value, Kind::kNumber) && IsTerminatingDecimal(tree_[value].value)) return false;
  return Within(tree_, literal, value, PowerOfTen(node.unit), work_).value_or(false);
}

// What `ref` holds that is not evaluated, "" for nothing.
std::string Comparer::Unevaluated(Ref ref) const {
  const Node& node = tree_[ref];
  if (node.kind == Kind::kDots) return "an ellipsis";
  if (node.kind == Kind::kSymbol && (node.text.starts_with("d/d") || node.text.starts_with("d^"))) {
    return "a derivative";
  }
  if (node.kind == Kind::kBig) {
    const bool bounded = !tree_.Is(node.kids[1], Kind::kText) && !tree_.Is(node.kids[2], Kind::kText);
    const bool infinite = InfinitySign(node.kids[1]) != 0 || InfinitySign(node.kids[2]) != 0;
    const bool sum = node.text == "sum";
    if (node.text.starts_with("lim")) return "a limit";
    if (sum || node.text == "prod") {
      if (infinite) return sum ? "an infinite sum" : "an infinite product";
    } else if (!bounded || infinite) {
      return bounded ? "an improper integral" : "an indefinite integral";
    }
  }
  for (const Ref kid : node.kids) {
    if (std::string found = Unevaluated(kid); !found.empty()) return found;
  }
  return "";
}

// Why ball arithmetic says nothing of two values: what they hold that is not evaluated.
std::string Comparer::WhyNot(Ref a, Ref b) const {
  for (const Ref ref : {a, b}) {
    if (const std::string what = Unevaluated(ref); !what.empty()) return what + " is not evaluated";
  }
  return "no point tells them apart or proves them equal";
}

Result Comparer::CompareValues(Ref a, Ref b) {
  if (a == kNoRef || b == kNoRef) return Undecided("budget");
  const int left = InfinitySign(a);
  const int right = InfinitySign(b);
  if (left != 0 || right != 0) return left == right ? Equal("infinity") : Different("infinity");
  if (tree_.IsConstant(a, "undefined") || tree_.IsConstant(b, "undefined")) {
    return tree_.kind(a) == tree_.kind(b) && tree_[a].text == tree_[b].text ? Equal("undefined")
                                                                            : Different("undefined");
  }
  if (DecimalEqual(a, b) || DecimalEqual(b, a)) return Equal("decimal");
  if (const auto x = ExactValue(tree_, a, work_)) {
    if (const auto y = ExactValue(tree_, b, work_)) return *x == *y ? Equal("exact") : Different("exact");
  }
  // What an operator does to what follows is no product.
  const bool derivative = Unevaluated(a) == "a derivative" || Unevaluated(b) == "a derivative";
  switch (CompareExactly(tree_, a, b)) {
    case Exact::kEqual:
      return Equal("exact");
    case Exact::kDifferent:
      return derivative ? Undecided(WhyNot(a, b)) : Different("exact");
    case Exact::kUnknown:
      break;
  }
  const Exact radicals = CompareRadicals(tree_, a, b);
  if (radicals != Exact::kUnknown) return radicals == Exact::kEqual ? Equal("radicals") : Different("radicals");
  if (derivative) return Undecided(WhyNot(a, b));
  const bool logs = Contains(tree_, a, Kind::kFunction) || Contains(tree_, b, Kind::kFunction);
  const Ball natural = CompareBalls(tree_, a, b, {}, work_);
  if (natural == Ball::kEqual) return Equal("balls");
  const Ball decimal = logs ? CompareBalls(tree_, a, b, {.log_is_decimal = true}, work_) : natural;
  if (decimal == Ball::kEqual) return Equal("log base");
  if (natural == Ball::kDifferent && decimal == Ball::kDifferent) return Different("balls");
  return Undecided(work_ <= 0 ? "budget: ball arithmetic" : WhyNot(a, b));
}

// p% is p or p/100, an angle in degrees is its number or that many pi/180.
Result Comparer::CompareScalars(Ref a, Ref b) {
  const auto strip = [this](Ref ref, Kind kind, Ref& inner) {
    if (!tree_.Is(ref, kind)) return false;
    inner = tree_[ref].kids[0];
    return true;
  };
  for (const Kind kind : {Kind::kPercent, Kind::kDegree}) {
    Ref x = a;
    Ref y = b;
    const bool left = strip(a, kind, x);
    const bool right = strip(b, kind, y);
    if (!left && !right) continue;
    Result plain = CompareScalars(x, y);
    if (plain.outcome == MathOutcome::kEqual || (left && right)) return plain;
    const Ref marked = left ? x : y;
    const Ref other = left ? y : x;
    Result scaled;
    if (kind == Kind::kPercent) {
      const Node node = tree_[marked];
      const Ref hundredth = node.kind == Kind::kNumber
                                ? tree_.Literal(node.value / Rational(100), node.digits, node.unit - 2)
                                : tree_.Div(marked, tree_.Number(Rational(100)));
      scaled = CompareValues(hundredth, other);
    } else {
      scaled = CompareValues(
          tree_.Div(tree_.Mul({marked, tree_.New(Kind::kConstant, "pi", {})}), tree_.Number(Rational(180))), other);
    }
    const char* rule = kind == Kind::kPercent ? "percent" : "degrees";
    if (scaled.outcome == MathOutcome::kEqual) return Equal(rule);
    return plain.outcome == MathOutcome::kDifferent && scaled.outcome == MathOutcome::kDifferent ? Different(rule)
                                                                                                 : scaled;
  }
  return CompareValues(a, b);
}

}  // namespace iha::scoring::math
