#include "benchmarks/scoring/math/balls.h"

#include <algorithm>

#include "benchmarks/scoring/math/ball_eval.h"
#include "benchmarks/scoring/math/exact.h"

namespace iha::scoring::math {
namespace {

constexpr slong kDigitsBits = 200;     // 60 decimal digits
constexpr slong kMaxMagnitude = 8192;  // bits in front of the point
constexpr int kEnoughPoints = 6;

enum class AtPoint : uint8_t { kAgree, kApart, kUnknown };

// |difference| < 2^-200, for a difference that contains zero. Not relative to the values: 60 digits behind the point
// tell e^200 from e^200 + 0.001.
bool Tight(const Complex& difference) {
  mag_t radius;
  mag_init(radius);
  acb_get_mag(radius, difference.get());
  const bool tight = mag_cmp_2exp_si(radius, -kDigitsBits) < 0;
  mag_clear(radius);
  return tight;
}

// Bits in front of the point; kMaxMagnitude + 1 for more than kMaxMagnitude.
slong MagnitudeBits(const Complex& value) {
  mag_t size;
  mag_init(size);
  acb_get_mag(size, value.get());
  slong bits = 0;
  if (mag_cmp_2exp_si(size, kMaxMagnitude) >= 0) {
    bits = kMaxMagnitude + 1;
  } else {
    while (mag_cmp_2exp_si(size, bits) >= 0) bits += 64;
  }
  mag_clear(size);
  return bits;
}

// Rising precisions up to the budget's, and then one more for values that have many digits in front of the point.
class Precisions {
 public:
  explicit Precisions(const Tree& tree) : most_(static_cast<slong>(tree.budget().precision)) {}
  slong current() const { return current_; }
  void Saw(const Complex& value) { magnitude_ = MagnitudeBits(value); }
  // False when no more follows.
  bool Next() {
    const slong next = current_ == 64 ? 256 : 2 * current_;
    if (next <= most_) {
      current_ = next;
      return true;
    }
    const bool more = !raised_ && magnitude_ > 0 && magnitude_ <= kMaxMagnitude;
    raised_ = true;
    if (more) current_ = most_ + magnitude_;
    return more;
  }

 private:
  const slong most_;
  slong current_ = 64;
  slong magnitude_ = 0;
  bool raised_ = false;
};

AtPoint CompareAt(BallEvaluator& evaluator, Ref a, Ref b, Precisions precisions, bool reals) {
  do {
    const slong precision = precisions.current();
    Complex left;
    Complex right;
    evaluator.TakeOutside();
    const bool left_known = evaluator.Eval(a, precision, left);
    const bool left_outside = evaluator.TakeOutside();
    if (!left_known || !evaluator.Eval(b, precision, right)) {
      // Higher precision may tell a pole or a sign apart from zero; a value that is undefined stays so.
      continue;
    }
    // Logarithms of negative numbers on both sides: neither is a real function there ("\ln x^3", "3 \ln x").
    if (reals && left_outside && evaluator.TakeOutside()) return AtPoint::kUnknown;
    Complex difference;
    acb_sub(difference.get(), left.get(), right.get(), precision);
    if (!acb_contains_zero(difference.get())) return AtPoint::kApart;
    if (Tight(difference)) return AtPoint::kAgree;
    precisions.Saw(left);
  } while (precisions.Next());
  return AtPoint::kUnknown;
}

}  // namespace

Ball CompareBalls(const Tree& tree, Ref a, Ref b, const BallOptions& options, int64_t& work) {
  if (a == kNoRef || b == kNoRef) return Ball::kUndecided;
  const std::set<std::string> whole = WholeSymbols(tree, a, b);
  BallEvaluator evaluator(tree, options, whole, work);
  const Precisions precision(tree);
  if (!HasSymbols(tree, a) && !HasSymbols(tree, b)) {
    const AtPoint at = CompareAt(evaluator, a, b, precision, false);
    return at == AtPoint::kAgree ? Ball::kEqual : at == AtPoint::kApart ? Ball::kDifferent : Ball::kUndecided;
  }
  int agreed = 0;
  for (int64_t point = 0; point < tree.budget().points && work > 0; ++point) {
    evaluator.SetPoint(point);
    const AtPoint at = CompareAt(evaluator, a, b, precision, true);
    if (at == AtPoint::kApart) return Ball::kDifferent;
    if (at == AtPoint::kAgree && ++agreed >= kEnoughPoints) return Ball::kEqual;
  }
  return Ball::kUndecided;
}

std::optional<int> OrderOf(const Tree& tree, Ref a, Ref b, int64_t& work) {
  if (a == kNoRef || b == kNoRef) return std::nullopt;
  if (tree.Is(a, Kind::kNumber) && tree.Is(b, Kind::kNumber)) {
    const auto order = tree[a].value <=> tree[b].value;
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (HasSymbols(tree, a) || HasSymbols(tree, b)) return std::nullopt;
  if (const auto x = ExactValue(tree, a, work)) {
    if (const auto y = ExactValue(tree, b, work)) return *x < *y ? -1 : *y < *x ? 1 : 0;
  }
  const std::set<std::string> whole;
  const BallOptions options;
  BallEvaluator evaluator(tree, options, whole, work);
  Precisions precisions(tree);
  do {
    const slong precision = precisions.current();
    Complex left;
    Complex right;
    if (!evaluator.Eval(a, precision, left) || !evaluator.Eval(b, precision, right)) continue;
    Complex difference;
    acb_sub(difference.get(), left.get(), right.get(), precision);
    if (!arb_contains_zero(difference.im())) return std::nullopt;
    if (arb_is_positive(difference.re())) return 1;
    if (arb_is_negative(difference.re())) return -1;
    if (Tight(difference)) return 0;
    precisions.Saw(left);
  } while (precisions.Next());
  return std::nullopt;
}

std::optional<bool> Within(const Tree& tree, Ref a, Ref b, const Rational& bound, int64_t& work) {
  if (a == kNoRef || b == kNoRef || HasSymbols(tree, a) || HasSymbols(tree, b)) return std::nullopt;
  const std::set<std::string> whole;
  const BallOptions options;
  BallEvaluator evaluator(tree, options, whole, work);
  constexpr slong kPrecision = 256;
  Complex left;
  Complex right;
  if (!evaluator.Eval(a, kPrecision, left) || !evaluator.Eval(b, kPrecision, right)) return std::nullopt;
  acb_sub(left.get(), left.get(), right.get(), kPrecision);
  arb_t distance;
  arb_t limit;
  arb_init(distance);
  arb_init(limit);
  acb_abs(distance, left.get(), kPrecision);
  arb_set_fmpq(limit, bound.raw(), kPrecision);
  const bool yes = arb_le(distance, limit) != 0;
  arb_clear(distance);
  arb_clear(limit);
  return yes;
}

}  // namespace iha::scoring::math
